"""Refused rows are the same by masks and by a join, for all positions."""

from __future__ import annotations

import datetime as dt
import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from rowtime.core.errors import Failure
from rowtime.core.time import BEGINNING, END
from rowtime.frames.frame import Frame
from rowtime.runtime.refusal import Refusal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WRITERS = ("a", "b'", "é")
PLACES = [-5, 0, 1, 2, 3, 9, 2_000_000, 2_000_001, (1 << 40) - 1, 1 << 40, (1 << 40) + 7, 1 << 61]
Row = tuple[object, ...]


def split(spark: SparkSession, chosen: list[tuple[str, int]], clock: str | None = None) -> tuple[set[Row], set[Row]]:
    """The accepted and the refused rows; ``clock``: as in `Refusal`."""
    given = {"v": [f"{w}{p}" for w in WRITERS for p in PLACES], "__w": [w for w in WRITERS for _ in PLACES]}
    table = pa.table({**given, "__p": PLACES * len(WRITERS)})
    frame = Frame.of(spark, table, [("v", "string"), ("__w", "string"), ("__p", "bigint")])
    assert frame is not None
    rows = frame.selectExpr("*", "timestamp_micros(5L) AS __g", "timestamp_micros(least(__p, 9L)) AS __t")
    marks = [(BEGINNING, 7, END)[n % 3] for n in range(len(chosen))]
    writers, places = zip(*chosen, strict=True)
    columns = {"__w": pa.array(writers), "__p": pa.array(places), "reason": pa.array(["LATE"] * len(chosen))}
    found = Refusal(spark, pa.table({**columns, "mark": pa.array(marks)}))
    rejection = found.of(rows, "__g", clock)
    table = rejection.rows if isinstance(rejection.rows, pa.Table) else rejection.rows.toArrow()
    assert table.column_names[: len(rejection.schema.names)] == rejection.schema.names
    names = ("v", "reason", "refused_time", "refused_by", "writer", "position", "raw_record", "__t", "__n")
    refused = {tuple(row[name] for name in names) for row in table.to_pylist()}
    return {tuple(row) for row in found.others(rows).select("__w", "__p").collect()}, refused


@pytest.mark.parametrize("seed", range(3))
def test_the_refused_rows_are_told_from_the_others(spark: SparkSession, seed: int) -> None:
    chance = random.Random(seed)
    everything = [(w, p) for w in WRITERS for p in PLACES]
    chosen = chance.sample(everything, chance.randrange(1, len(everything)))
    masked = split(spark, chosen)
    assert masked[0] == set(everything) - set(chosen)
    assert {row[4:6] for row in masked[1]} == set(chosen)


def test_refused_rows_have_the_times_of_a_clock_column(spark: SparkSession) -> None:
    chosen = [("a", 0), ("a", 9), ("é", 3)]
    _, marked = split(spark, chosen)
    others, timed = split(spark, chosen, clock="__t")
    assert len(others) == len(WRITERS) * len(PLACES) - len(chosen)
    at = {("a", 0): 0, ("a", 9): 9, ("é", 3): 3}
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    assert {row[4:6]: row[3] for row in timed} == {of: epoch + dt.timedelta(microseconds=us) for of, us in at.items()}
    assert {(*row[:3], *row[4:7], row[8]) for row in timed} == {(*row[:3], *row[4:7], row[8]) for row in marked}


def test_a_refused_row_that_is_not_among_the_rows_stops_the_tick(spark: SparkSession) -> None:
    with pytest.raises(Failure, match="R901"):
        split(spark, [("a", 0), ("a", 4)])
