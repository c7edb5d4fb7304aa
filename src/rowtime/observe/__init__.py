"""Observation of a run: listeners, logs, metrics, lineage."""
