"""Bounds of an event time that a stream's writers send, on their way among the rows.

SPEC 8.1, mode MANUAL. Such a bound says nothing about the rowtime. It stands in the merged
order behind the rows before it: its rowtime is the clock of its writer (SPEC 3).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from rowtime.core.clock import NOBODY, Clocks
from rowtime.core.columns import ARRIVAL, BOUND, GIVEN, POSITION, ROWTIME, SHOWN, WRITER
from rowtime.core.time import BEGINNING, END, MAX_MICROS, MIN_MICROS
from rowtime.operators.contract import Column, Delta, Tick, micros, quoted
from rowtime.operators.contract.intake import Intake
from rowtime.operators.contract.state import Keeper
from rowtime.operators.rows.by_writer import beside
from rowtime.operators.streams.stream_clocks import StreamClocks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


Item = tuple[str, int, int]  # writer, position, µs


class Given(NamedTuple):
    """The bounds of a tick, and each writer's clock before it."""

    items: Sequence[Item]
    before: Mapping[str, int]


def without_bounds(tick: Tick, stream: Keeper[StreamClocks], intake: Intake) -> tuple[Intake, Given]:
    """What is left of an intake for the clocks, and the bounds of the event time; the end is both.

    A bound for the stream as a whole is not in a writer's order; it stays in the
    scalars of the stream. Of bounds
    among the rows only the end is left: who needs them reads no such source (R190).
    """
    control = tick.control(stream)
    if intake.in_band and intake.rows is not None:
        intake = replace(intake, rows=intake.rows.where(f"{BOUND} IS NULL OR {BOUND} >= {micros(END)}"))
    given = [item for item in intake.bounds if item[2] < END]
    if BEGINNING < intake.bound < END:
        control = tick.remember(stream, given=max(intake.bound, BEGINNING if control.given is None else control.given))
        intake = replace(intake, bound=BEGINNING)
    ends = [item for item in intake.bounds if item[2] >= END]
    return replace(intake, bounds=ends, peek=None), Given(given, dict(control.clocks))


def with_bounds(
    tick: Tick, stream: Keeper[StreamClocks], delta: Delta, columns: Sequence[Column], given: Given
) -> Delta:
    """The rows of a stream with the bounds among them."""
    spoke = {writer for writer, _, _ in given.items}
    # A writer that sent nothing but a bound has a clock, so that the bound is not held for ever.
    clocks = speaking(tick, stream, delta.clocks, spoke)
    if not given.items:
        rows = None if delta.rows is None else delta.rows.selectExpr("*", f"CAST(NULL AS BIGINT) AS {GIVEN}")
        return replace(delta, rows=rows, clocks=clocks, peek=None)
    rows = _among(bound_rows(tick, columns, given.items), delta.rows, given.before)
    count = None if delta.rows is not None and delta.count is None else (delta.count or 0) + len(given.items)
    return replace(delta, rows=rows, clocks=clocks, count=count, lowest=BEGINNING, peek=None)


def speaking(tick: Tick, stream: Keeper[StreamClocks], clocks: Clocks, spoke: Collection[str]) -> dict[str, int]:
    """The clocks of a stream, where those in ``spoke`` have one; so has a stream that they have left."""
    after = {w: max(at, MIN_MICROS) if w in spoke or (spoke and w == NOBODY) else at for w, at in clocks.items()}
    shown = tick.control(stream).shown
    tick.remember(stream, clocks=after, shown=max(MIN_MICROS, shown) if spoke else shown)
    return after


def bound_rows(
    tick: Tick, columns: Sequence[Column], given: Sequence[Item], clocks: Sequence[int] | None = None
) -> DataFrame:
    """Bounds as rows of NULLs, under the rowtimes ``clocks`` (µs) or none."""
    writers, positions, times = zip(*given, strict=True)
    times_of = pa.array([None] * len(given) if clocks is None else clocks, pa.timestamp("us", "UTC"))
    table = pa.table(
        {
            WRITER: pa.array(writers),
            POSITION: pa.array(positions, pa.int64()),
            ROWTIME: times_of,
            GIVEN: pa.array(times, pa.int64()),
        }
    )
    nulls = [f"CAST(NULL AS {column.type}) AS {quoted(column.name)}" for column in columns]
    return tick.spark.createDataFrame(table).selectExpr(
        *nulls, WRITER, POSITION, ROWTIME, f"CAST(NULL AS TIMESTAMP) AS {ARRIVAL}", GIVEN
    )


def _among(bounds: DataFrame, rows: DataFrame | None, before: Mapping[str, int]) -> DataFrame:
    """Each bound under the rowtime of the last row before it in its writer, or of the writer's clock."""
    both = bounds if rows is None else rows.selectExpr("*", f"CAST(NULL AS BIGINT) AS {GIVEN}").unionByName(bounds)
    known = {writer: at for writer, at in before.items() if MIN_MICROS < at <= MAX_MICROS}
    both = beside(both, known, SHOWN)
    clock = f"coalesce({SHOWN}, {micros(MIN_MICROS)})"
    frame = f"PARTITION BY {WRITER} ORDER BY {POSITION} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    clock = f"greatest({clock}, max({ROWTIME}) OVER ({frame}))"
    time = f"CASE WHEN {GIVEN} IS NULL THEN {ROWTIME} ELSE {clock} END AS {ROWTIME}"
    others = [quoted(name) for name in both.columns if name not in (ROWTIME, SHOWN)]
    return both.selectExpr(*others, time)
