"""Writers and readers of the embedded stream log, and the home directory, without Spark."""
