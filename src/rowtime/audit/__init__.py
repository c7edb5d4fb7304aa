"""Inspection of a run: traces, replays, verification, and re-admission of rows."""
