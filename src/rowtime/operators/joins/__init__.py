"""Joins of streams, and of a stream with a table."""
