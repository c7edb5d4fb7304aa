"""Refused rows in a trace from a stream: which gate refused a row, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowtime.audit.read_back import tables
from rowtime.audit.traced import Traced
from rowtime.core.columns import POSITION, WRITER
from rowtime.core.time import BEGINNING, to_micros
from rowtime.operators.contract import walk
from rowtime.operators.rows.collected import collected
from rowtime.plan.program import Program
from rowtime.state.checkpoint import Checkpoint
from rowtime.state.refused_files import tick_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KIND = "refused"


def refused_of(place: Checkpoint, program: Program, stream: str, chosen: pa.Table) -> Iterator[Traced]:
    """Yield where rows of a stream were refused by the gates above it; ``chosen`` has their writers and positions."""
    places = {*zip(chosen[WRITER].to_pylist(), chosen[POSITION].to_pylist(), strict=True)}
    for gate, tick, rows in _files(place, program, stream):
        named = zip(rows["writer"].to_pylist(), rows["position"].to_pylist(), strict=True)
        met = pa.array([one in places for one in named], pa.bool_())
        yield from (_traced(gate, tick, row) for row in rows.filter(met).to_pylist())


def refused_where(
    spark: SparkSession, place: Checkpoint, program: Program, stream: str, where: str
) -> Iterator[Traced]:
    """Yield rows that the stream's own gate refused, which match a condition over its columns and ``rowtime``."""
    for gate, tick, rows in _files(place, program, stream):
        if gate == stream:
            named = spark.createDataFrame(rows).selectExpr("*", "refused_time AS rowtime")
            yield from (_traced(gate, tick, row) for row in collected(named.where(where).drop("rowtime")).to_pylist())


def _files(place: Checkpoint, program: Program, stream: str) -> Iterator[tuple[str, int, pa.Table]]:
    """Yield the gates above a stream with the rows that they have refused, file by file, and the tick of each."""
    last = place.journal.last() or {"totals": ()}
    for gate in last["totals"]:
        nodes = [node for node in program.operators if node.name == gate or node.name.startswith(f"{gate}.")]
        if any(below.name == stream for node in nodes for below in walk(node)):
            for file in place.rejected(gate, last["tick"]):
                yield gate, tick_of(file), tables([file])


def _traced(gate: str, tick: int, row: dict[str, Any]) -> Traced:
    at = row.get("refused_time") or row.get("refused_by")
    columns = {name: value for name, value in row.items() if not name.startswith("__")}
    judgement: dict[str, Any] = {name: columns.pop(name, None) for name in ("reason", "refused_by", "raw_record")}
    judgement = {name: value for name, value in judgement.items() if value is not None}
    rest = {name: value for name, value in columns.items() if name not in ("refused_time", "writer", "position")}
    return Traced(gate, tick, KIND, BEGINNING if at is None else to_micros(at), columns={**judgement, **rest})
