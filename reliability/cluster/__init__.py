"""Pipelines on a Spark cluster whose workers are killed, against the same in local mode (``make cluster``)."""
