"""Stream order: the operators that make it, check it, and count in it."""
