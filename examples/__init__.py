"""Pipelines to run and to learn from."""
