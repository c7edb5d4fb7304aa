"""The language: text to statements, and bound expressions to Spark SQL."""
