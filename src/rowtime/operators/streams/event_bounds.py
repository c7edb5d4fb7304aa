"""Bounds of an event time, sent by a stream's writers and passed among the rows.

Semantics 8.1, mode MANUAL. Such a bound says nothing about the rowtime. In the merged order it is after the rows before
it: its rowtime is the clock of its writer (semantics 3).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa

from rowtime.core.clock import NOBODY, Clocks
from rowtime.core.columns import ARRIVAL, BOUND, GIVEN, POSITION, ROWTIME, SHOWN, WRITER
from rowtime.core.time import BEGINNING, END, MAX_MICROS, MIN_MICROS
from rowtime.frames.frame import Frame
from rowtime.operators.contract import Column, Delta, Tick, micros, quoted
from rowtime.operators.contract.intake import Intake
from rowtime.operators.contract.state import Keeper
from rowtime.operators.rows.by_writer import beside
from rowtime.operators.streams.stream_clocks import StreamClocks

Item = tuple[str, int, int]  # writer, position, µs


class Given(NamedTuple):
    """The bounds of a tick, and each writer's clock before it."""

    items: Sequence[Item]
    before: Mapping[str, int]


def without_bounds(tick: Tick, stream: Keeper[StreamClocks], intake: Intake) -> tuple[Intake, Given]:
    """Return the rest of an intake for the clocks, and the bounds of the event time; an end is in both.

    A bound for the stream as a whole is not in a writer's order; it stays in the scalars of the stream. Of bounds among
    the rows only the end is kept: a query that needs them cannot read such a source (R190).
    """
    control = tick.control(stream)
    if intake.in_band and intake.rows is not None:
        intake = replace(intake, rows=intake.rows.where(f"{BOUND} IS NULL OR {BOUND} >= {micros(END)}"))
    given = [item for item in intake.bounds if item[2] < END]
    if BEGINNING < intake.bound < END:
        control = tick.remember(stream, given=max(intake.bound, BEGINNING if control.given is None else control.given))
        intake = replace(intake, bound=BEGINNING)
    ends = [item for item in intake.bounds if item[2] >= END]
    return replace(intake, bounds=ends), Given(given, dict(control.clocks))


def with_bounds(
    tick: Tick, stream: Keeper[StreamClocks], delta: Delta, columns: Sequence[Column], given: Given
) -> Delta:
    """Return the rows of a stream with the bounds among them."""
    senders = {writer for writer, _, _ in given.items}
    # A writer that sent only a bound gets a clock, so that the bound is not held forever.
    clocks = with_clocks_of(tick, stream, delta.clocks, senders)
    if not given.items:
        rows = None if delta.rows is None else delta.rows.selectExpr("*", f"CAST(NULL AS BIGINT) AS {GIVEN}")
        return replace(delta, rows=rows, clocks=clocks)
    rows = _among(bound_rows(tick, stream, columns, given.items), delta.rows, given.before)
    return replace(delta, rows=rows, clocks=clocks, lowest=BEGINNING)


def with_clocks_of(
    tick: Tick, stream: Keeper[StreamClocks], clocks: Clocks, senders: Collection[str]
) -> dict[str, int]:
    """Return the clocks of a stream, where each writer in ``senders`` has one; so has a stream that all have left."""
    after = {w: max(at, MIN_MICROS) if w in senders or (senders and w == NOBODY) else at for w, at in clocks.items()}
    shown = tick.control(stream).shown
    tick.remember(stream, clocks=after, shown=max(MIN_MICROS, shown) if senders else shown)
    return after


def bound_rows(
    tick: Tick, node: Keeper[Any], columns: Sequence[Column], given: Sequence[Item], clocks: Sequence[int] | None = None
) -> Frame:
    """Return bounds as rows of NULLs, at the rowtimes ``clocks`` (µs) or without one."""
    clock_column = {} if clocks is None else {ROWTIME: pa.array(clocks, pa.timestamp("us", "UTC"))}
    return item_rows(tick, node, columns, given, {GIVEN: pa.int64()}, clock_column)


def item_rows(  # noqa: PLR0913 - the parts of an item
    tick: Tick,
    node: Keeper[Any],
    columns: Sequence[Column],
    items: Sequence[tuple[str, int, Any]],
    third: Mapping[str, pa.DataType],
    further: Mapping[str, pa.Array],
) -> Frame:
    """Return items (writer, position, and the column ``third``) as rows of NULLs, with some ``further`` columns."""
    values = (WRITER, pa.string()), (POSITION, pa.int64()), *third.items()
    arrays = {name: pa.array(of, kind) for (name, kind), of in zip(values, zip(*items, strict=True), strict=True)}
    nulls = [f"CAST(NULL AS {column.type}) AS {quoted(column.name)}" for column in columns]
    nulls += [f"CAST(NULL AS TIMESTAMP) AS {name}" for name in (ROWTIME, ARRIVAL) if name not in further]
    return tick.frame(node, pa.table({**arrays, **further})).selectExpr("*", *nulls)


def _among(bounds: Frame, rows: Frame | None, before: Mapping[str, int]) -> Frame:
    both = bounds if rows is None else rows.selectExpr("*", f"CAST(NULL AS BIGINT) AS {GIVEN}").unionByName(bounds)
    in_calendar = {writer: at for writer, at in before.items() if MIN_MICROS < at <= MAX_MICROS}
    return behind(beside(both, in_calendar, SHOWN), GIVEN, f"coalesce({SHOWN}, {micros(MIN_MICROS)})").drop(SHOWN)


def behind(both: Frame, item: str, clock: str) -> Frame:
    """Return each item (rows have none) at the rowtime of its writer's last row before it, or at its ``clock``."""
    frame = f"PARTITION BY {WRITER} ORDER BY {POSITION} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    clock = f"greatest({clock}, max({ROWTIME}) OVER ({frame}))"
    others = [quoted(name) for name in both.columns if name != ROWTIME]
    return both.selectExpr(*others, f"CASE WHEN {item} IS NULL THEN {ROWTIME} ELSE {clock} END AS {ROWTIME}")
