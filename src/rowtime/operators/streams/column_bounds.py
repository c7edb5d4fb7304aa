"""Bounds of columns of declared order, sent by a stream's writers and passed among the rows.

Such a bound says nothing about the rowtime. In the merged order it is after the writer's earlier items: its rowtime is
the clock of its writer (semantics 3).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowtime.core.columns import COLUMN_BOUND, POSITION, SINCE, WRITER
from rowtime.core.time import BEGINNING, END, MAX_MICROS, MIN_MICROS
from rowtime.operators.contract import Column, Delta, Tick
from rowtime.operators.contract.intake import Intake
from rowtime.operators.contract.state import Keeper
from rowtime.operators.streams.event_bounds import behind, item_rows, with_clocks_of
from rowtime.operators.streams.stream_clocks import StreamClocks

if TYPE_CHECKING:
    from rowtime.frames.frame import Frame
    from rowtime.operators.order.ordered import Ordered
    from rowtime.operators.streams.stream import Stream


def with_column_bounds(  # noqa: PLR0913 - a stream's tick
    tick: Tick,
    stream: Keeper[StreamClocks],
    delta: Delta,
    columns: Sequence[Column],
    intake: Intake,
    before: Mapping[str, int],
) -> Delta:
    """Return the rows of a stream with the bounds of its columns among them; ``before``: the clocks before the tick."""
    if not intake.columns:
        rows = None if delta.rows is None else delta.rows.selectExpr("*", f"CAST(NULL AS STRING) AS {COLUMN_BOUND}")
        return replace(delta, rows=rows)
    control = tick.control(stream)
    tick.remember(stream, said=control.said + len(intake.columns))
    senders = {writer for writer, _, _ in intake.columns}
    # A writer that sent only such a bound gets a clock, so that the bound is not held forever.
    clocks = with_clocks_of(tick, stream, delta.clocks, senders)
    since = [_since(intake, before, control.floors, writer, place) for writer, place, _ in intake.columns]
    arrivals = {SINCE: pa.array(since, pa.timestamp("us", "UTC"))}
    rows = _among(item_rows(tick, stream, columns, intake.columns, {COLUMN_BOUND: pa.string()}, arrivals), delta.rows)
    return replace(delta, rows=rows, clocks=clocks, lowest=BEGINNING, highest=END)


def _since(intake: Intake, before: Mapping[str, int], floors: Mapping[str, int], writer: str, place: int) -> int:
    """Return the clock of a writer at an item, ignoring the rows of the tick."""
    bounds = (at for name, position, at in intake.bounds if name == writer and position < place)
    at = max(before.get(writer, BEGINNING), floors.get(writer, BEGINNING), *bounds)
    return min(max(at, MIN_MICROS), MAX_MICROS)


def _among(items: Frame, rows: Frame | None) -> Frame:
    nulls = [f"CAST(NULL AS STRING) AS {COLUMN_BOUND}", f"CAST(NULL AS TIMESTAMP) AS {SINCE}"]
    both = items if rows is None else rows.selectExpr("*", *nulls).unionByName(items)
    return behind(both, COLUMN_BOUND, SINCE).drop(SINCE)


def heard(tick: Tick, gate: Stream, rows: Frame, order: Ordered) -> pa.Table | None:
    """Return writer, position and text of the bounds that the merge releases, in order; ``None``: there can be none.

    It takes a job of its own, only while bounds from the stream ``gate`` are on their way.
    """
    heard_before = tick.control(order).heard
    if heard_before >= tick.control(gate).said:
        return None
    items = rows.where(f"{COLUMN_BOUND} IS NOT NULL").selectExpr(WRITER, POSITION, COLUMN_BOUND).toArrow()
    tick.remember(order, heard=heard_before + items.num_rows)
    return items


def about(items: pa.Table, column: str) -> Iterator[tuple[str, int, Any]]:
    """Yield writer, position and value of the bounds of one column."""
    for item in items.to_pylist():
        bound = json.loads(item[COLUMN_BOUND])
        if bound["column"] == column:
            yield item[WRITER], item[POSITION], bound["at"]
