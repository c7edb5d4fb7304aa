"""Rows on the driver: frames that understand the part of Spark SQL which DuckDB computes in the same way."""
