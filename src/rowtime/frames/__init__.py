"""The rows that operators step over: Spark SQL computed by DuckDB, and values that only Catalyst computes."""
