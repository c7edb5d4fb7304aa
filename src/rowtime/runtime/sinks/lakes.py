"""The formats of lake tables: which module knows which."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowtime.runtime.sinks.delta_log import delta_log, delta_sink
from rowtime.runtime.sinks.iceberg_table import iceberg_sink, iceberg_table

if TYPE_CHECKING:
    from rowtime.operators.sinks.sink import Sink as SinkNode
    from rowtime.runtime.sinks.lake import LakeSink, LakeTable


def lake_sink(node: SinkNode) -> LakeSink:
    """The sink of a pump into a lake table."""
    return delta_sink(node) if node.format == "delta" else iceberg_sink(node)


def lake_table(node: SinkNode) -> LakeTable:
    """Its table, to look into."""
    return delta_log(node) if node.format == "delta" else iceberg_table(node)
