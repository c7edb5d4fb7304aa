"""The language: parses text to statements, and turns bound expressions into Spark SQL."""
