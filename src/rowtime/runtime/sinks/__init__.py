"""Sinks, one file per kind; `contract.py` defines what a sink is."""
