"""Spark finds this package by its name, and ``spark.read.format("rowtime")`` in it (`rowtime.api.data_source`)."""

from rowtime.api.data_source import RowtimeDataSource as DefaultSource

__all__ = ["DefaultSource"]
