"""Windows of rows: those that overlap, sessions, and such as open with a first row."""
