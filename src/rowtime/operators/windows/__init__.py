"""Windows of rows: overlapping windows, sessions, and windows that open with a first row."""
