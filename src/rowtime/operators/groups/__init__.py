"""GROUP BY: groups that end, and their rows."""
