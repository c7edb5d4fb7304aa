"""Traces an input row from a stream up to the outputs: the rows that it may have contributed to.

The other direction of `audit.trace`, with the same rules: the recorded input runs again with a tap on each edge, and a
row above is found if the row below may have contributed to it. A trace down from an output narrows the lifetimes of
events on the way; this one uses whole lifetimes.

Law: if a trace down from an output row reaches a stream row, the trace up from that row reaches the output row.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.errors import AnalysisException, PySparkException

from rowtime.audit.read_back import tables
from rowtime.audit.replay import replay
from rowtime.audit.taps import Taps, at_places, first_in_order, names_quoted
from rowtime.audit.taps import where as kept_where
from rowtime.audit.trace import Tracing, detailed, recorded_by_tick
from rowtime.audit.trace_edges import with_edges
from rowtime.audit.traced import MOST, Trace, Traced
from rowtime.core.columns import (
    ABOVE_ROW,
    ABOVE_TICK,
    ASKED_FROM,
    ASKED_UPTO,
    POSITION,
    ROWTIME,
    STOP,
    TRACE_ROW,
    TRACE_TICK,
    WRITER,
)
from rowtime.core.errors import refuse
from rowtime.core.stores import ObjectPlace, place_of
from rowtime.core.time import BEGINNING, to_micros
from rowtime.frames.queries import Uncomputed
from rowtime.operators.contract import Operator, quoted, walk
from rowtime.operators.rows.lifetimes import BEGINS
from rowtime.plan.program import Program
from rowtime.runtime.analysis import words_of
from rowtime.runtime.plain_rows import plain_rows
from rowtime.state.checkpoint import Checkpoint
from rowtime.state.refused_files import tick_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.api.pipeline import Pipeline
    from rowtime.frames.frame import Frame


GATE: Final = "gate"
"""The kind of a gate that is no operator, in a trace."""


def forward(pipeline: Pipeline, checkpoint: str | Path | ObjectPlace, stream: str, where: str) -> Trace:
    """Trace the first row of a stream that matches a condition over its columns and ``rowtime``.

    The items are the stream's first, the outputs' last. Raises ``Refused``: R409 for a missing row or stream, and what
    `replay` raises.
    """
    streams = [node.name for node in pipeline.compile(checkpoint, imports=True).streams]
    if stream.lower() not in streams:
        raise refuse("R409", f"there is no stream {stream}", f"There are {', '.join(streams)}.")
    place = Checkpoint(place_of(checkpoint))
    parts = recorded_by_tick(place)
    with tempfile.TemporaryDirectory(prefix="rowtime-trace-") as folder:
        engine = replay(pipeline, place, Path(folder), _kept_in_memory)
        taps = engine.tap = Taps(engine.spark, Path(folder) / "taps")
        try:
            for part in engine.run(parts):
                taps.ticks.append(part.until["tick"])
            following = Following(engine.program, taps, place)
            upward = with_edges(following.follow(stream.lower(), where), engine.program, following.tracing)
            return replace(upward, items=(*upward.items, *following.refused))
        finally:
            engine.stop()


def _kept_in_memory(program: Program) -> Program:
    """Return the program with outputs that are discarded."""
    return replace(program, sinks=detailed(replace(sink, format="memory", options=()) for sink in program.sinks))


class Following:
    """Follows a row of a stream up the edges of ``taps``; ``refused`` says which gates refused it, and why."""

    def __init__(self, program: Program, taps: Taps, place: Checkpoint) -> None:
        self._program, self._taps, self._place = program, taps, place
        self.refused: list[Traced] = []
        self.tracing = Tracing(program, program.sinks[0], taps)

    def follow(self, stream: str, where: str) -> Trace:
        """Return the rows to which the chosen one may have contributed, operator by operator."""
        chosen = self._chosen(stream, where)
        if chosen is None:
            return Trace(stream, 0, (), {item.operator: GATE for item in self.refused})
        self.refused += refused_of(self._place, self._program, stream, chosen)
        reached = self.tracing.reached
        reached[stream] = chosen
        items: list[Traced] = []
        cut: list[str] = []
        for node in self._program.operators:
            rows = chosen if node.name == stream else self._above(node, reached)
            if rows is None or not rows.num_rows:
                continue
            cut += [node.name] if rows.num_rows > MOST else []
            reached[node.name] = rows.slice(0, MOST)
            plain = plain_rows(reached[node.name])
            last = max(row[TRACE_TICK] for row in plain)
            items += [*self.tracing.items(node, plain), *self.tracing.bound(node, last)]
        kinds = {item.operator: GATE for item in self.refused}
        kinds |= {node.name: node.kind for node in self._program.operators}
        return Trace(stream, 0, tuple(items), kinds, tuple(cut))

    def _chosen(self, stream: str, where: str) -> pa.Table | None:
        """Return the rows of the stream that match; ``None`` if its own gate refused those that do."""
        rows = self._rows(stream)
        try:
            if rows is not None:
                times = [f"{ROWTIME} AS rowtime"] if "rowtime" not in rows.columns else []
                fits = first_in_order(kept_where(rows.selectExpr("*", *times), where), [TRACE_TICK, TRACE_ROW])
                table = fits.select(*map(quoted, rows.columns)).toArrow()
                if table.num_rows:
                    return table
            self.refused += refused_where(self._taps.spark, self._place, self._program, stream, where)
        except AnalysisException as wrong:
            message = words_of(wrong).split(" Did you mean", 1)[0]  # of hidden columns
            names = [] if rows is None else [name for name in rows.columns if not name.startswith("__")]
            raise refuse(
                "R409", f"no row can be found with this condition: {message}", f"There are {', '.join(names)}."
            ) from None
        if rows is None and not self.refused:
            raise refuse("R409", f"{stream} has no rows", "Choose another stream.")
        if not self.refused:
            raise refuse("R409", f"{stream} has no row where {where}", "Write a condition over its columns.")
        return None

    def _above(self, node: Operator, reached: dict[str, pa.Table]) -> pa.Table | None:
        """Return the rows of an operator to which the rows reached below may have contributed."""
        if node in self._program.sinks:
            return reached.get(node.inputs[0].name)
        rows = self._rows(node.name)
        below = [n for n, child in enumerate(node.inputs) if child.name in reached]
        if rows is None or not below:
            return None
        try:
            parts = [*self._places(node, below, rows, reached)]
            if not parts:
                return None
            places = reduce(lambda one, other: one.unionByName(other), parts).distinct()
            return at_places(rows, places).select(*map(quoted, rows.columns)).toArrow()
        except (Uncomputed, PySparkException):
            if not self.refused:
                raise
            return None  # the row is refused because it cannot be computed

    def _places(
        self, node: Operator, below: Sequence[int], rows: Frame, reached: dict[str, pa.Table]
    ) -> Iterator[Frame]:
        for n in below:
            mine = reached[node.inputs[n].name]
            places = list(zip(mine[TRACE_TICK].to_pylist(), mine[TRACE_ROW].to_pylist(), strict=True))
            only = self._taps.places(places)
            pairs = self.tracing.pairs(node, n, rows, f"{TRACE_ROW} AS {ABOVE_ROW}", only=only)
            if pairs is not None:
                yield pairs.selectExpr(f"{ABOVE_TICK} AS {TRACE_TICK}", f"{ABOVE_ROW} AS {TRACE_ROW}")

    def _rows(self, name: str) -> Frame | None:
        """Return all rows of an operator, each with its whole span."""
        rows = self._taps.rows(name)
        if rows is None:
            return None
        until = STOP if STOP in rows.columns else f"{BEGINS} + 1"
        return rows.selectExpr("*", f"{BEGINS} AS {ASKED_FROM}", f"{until} AS {ASKED_UPTO}")


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
            yield from (
                _traced(gate, tick, row)
                for row in named.where(names_quoted(where)).drop("rowtime").toArrow().to_pylist()
            )


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
