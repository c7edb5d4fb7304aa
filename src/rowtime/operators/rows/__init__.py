"""Operators on single rows, and computations that operators of every family use."""
