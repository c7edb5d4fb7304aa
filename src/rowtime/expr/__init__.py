"""Expressions: their order, inverses, aggregates, and their values at a bound."""
