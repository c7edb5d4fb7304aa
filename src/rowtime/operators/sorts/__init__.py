"""ORDER BY inside each value of something that ascends."""
