"""Loops that are ours: numpy over whole columns, no Python call per row."""
