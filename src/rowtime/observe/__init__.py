"""What others see of a run: listeners, logs, metrics, lineage."""
