"""What survives a tick: the journal, the segments, the checkpoint that holds both."""
