"""Schemas of a registry, and the records that are read and written with them."""
