"""Writers and readers of the embedded stream log, and the home directory: no Spark in here."""
