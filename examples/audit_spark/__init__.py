"""Three jobs of Spark Structured Streaming, with a few rows each, to audit."""
