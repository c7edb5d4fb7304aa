"""GROUP BY: groups that close, and their rows."""
