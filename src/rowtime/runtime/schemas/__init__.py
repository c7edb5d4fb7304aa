"""Schemas: what a registry knows of the records of topics, and how records are read and written by it."""
