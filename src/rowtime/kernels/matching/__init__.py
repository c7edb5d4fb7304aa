"""Row patterns: their text, their automaton, and matches in the rows of many keys at once."""
