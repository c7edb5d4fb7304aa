"""Expressions: their order, their inverses, their aggregates, their value at a bound."""
