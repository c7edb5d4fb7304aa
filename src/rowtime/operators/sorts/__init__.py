"""ORDER BY within each value of an ascending expression."""
