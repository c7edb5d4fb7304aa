"""Stream order: what makes it, checks it, and counts in it."""
