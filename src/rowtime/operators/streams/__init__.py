"""Sources of rows: streams of writers, tables, several streams as one; and their bounds."""
