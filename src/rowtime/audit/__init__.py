"""What looks back at a run: traces, replays, verification, and rows that are admitted again."""
