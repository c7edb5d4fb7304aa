"""Time, bounds, errors: the words that everything else is made of."""
