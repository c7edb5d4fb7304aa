"""Row patterns: their text, the automaton that it stands for, and the matches of rows of many keys at once."""
