"""Comparisons with other systems: their own test suites, and random pipelines."""
