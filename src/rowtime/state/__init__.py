"""State that survives a tick: the journal, the segments, and the checkpoint that has both."""
