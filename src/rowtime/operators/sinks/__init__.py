"""Sinks, where rows leave a plan."""
