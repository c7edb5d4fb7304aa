"""The formats of lake tables, and their modules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rowtime.runtime.delta_places import delta_place
from rowtime.runtime.sinks.delta_log import DeltaLog, delta_sink
from rowtime.runtime.sinks.iceberg_table import iceberg_sink, iceberg_table

if TYPE_CHECKING:
    from rowtime.operators.sinks.sink import Sink as SinkNode
    from rowtime.runtime.sinks.lake import LakeSink, LakeTable


def lake_sink(node: SinkNode) -> LakeSink:
    """Return the sink of a pump into a lake table."""
    return delta_sink(node) if node.format == "delta" else iceberg_sink(node)


def lake_table(kind: str, options: Mapping[str, str], pump: str) -> LakeTable:
    """Return the table that a pump writes, for reading its state; ``kind``: its format."""
    return DeltaLog(delta_place(options["path"]), pump) if kind == "delta" else iceberg_table(options, pump)
