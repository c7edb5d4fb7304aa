"""Rows on the driver: frames for the part of Spark SQL that DuckDB computes in the same way."""
