"""Time, bounds and errors: the terms on which all other packages build."""
