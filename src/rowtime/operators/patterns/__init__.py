"""MATCH_RECOGNIZE: patterns of rows."""
