"""Real flights as intervals [departure, landing), delivered when they land, compared with a sweep in numpy.

The queries count the aircraft from each airport in the air, and find pairs of flights that are on the same route at the
same time. Edges, two records per flight, give the same answers as intervals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import rowtime as rt
from examples.flights import records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(8)

DAYS = [pytest.param(2, id="two days"), pytest.param(366, marks=pytest.mark.slow, id="the year")]
BEHIND = timedelta(hours=12)  # no flight lasts longer, so no start is below a bound with this delay
FILES = 3
DECLARE = """
CREATE STREAM flights (number INT, origin STRING, dest STRING, departure TIMESTAMP, landing TIMESTAMP)
  EVENT SHAPE {shape} (departure, landing) BOUND EVERY 100 ROWS DELAY INTERVAL '12' HOUR
  USING parquet OPTIONS (path '{folder}');
CREATE STREAM answers ({columns}, start TIMESTAMP, stop TIMESTAMP) USING memory;
CREATE VIEW ended AS {query};
CREATE PUMP p AS INSERT INTO answers ({names}, start, stop) SELECT STREAM {names}, start, stop FROM ended;
"""
IN_THE_AIR = "SELECT STREAM origin, COUNT(*) AS n FROM flights GROUP BY SNAPSHOT(), origin EMIT INTERVALS (start, stop)"
TOGETHER = """SELECT STREAM a.number AS a, b.number AS b FROM flights AS a JOIN flights AS b
  ON a.origin = b.origin AND a.dest = b.dest AND a.number < b.number EMIT INTERVALS (start, stop)"""


def flights(days: int) -> pa.Table:
    """The landed flights of the first days, in the order of their landing."""
    table = pa.concat_tables(records.by_airport().values()).sort_by([("rowtime", "ascending"), ("flight", "ascending")])
    last = pa.scalar(datetime(2013, 1, 1, tzinfo=UTC) + timedelta(days=days), records.INSTANT)
    flown = table.filter(pc.and_(pc.less(table["departure"], table["rowtime"]), pc.less(table["rowtime"], last)))
    numbers = pa.array(range(flown.num_rows), pa.int32())
    return (
        flown.select(["origin", "dest", "departure"])
        .append_column("landing", flown["rowtime"])
        .add_column(0, "number", numbers)
    )


def as_edges(table: pa.Table) -> pa.Table:
    """Each flight as a record at its departure, without an end, and one at its landing."""
    starts = table.set_column(4, "landing", pa.nulls(table.num_rows, records.INSTANT))
    both = pa.concat_tables(
        [starts.append_column("at", table["departure"]), table.append_column("at", table["landing"])]
    )
    return both.sort_by([("at", "ascending"), ("number", "ascending")]).drop_columns("at")


def answers(spark: SparkSession, folder: Path, table: pa.Table, shape: str, columns: str, query: str) -> Counter[Any]:
    """The results of the pipeline, which reads its input in several ticks."""
    source = folder / "source"
    source.mkdir(parents=True)
    step = -(-table.num_rows // FILES)
    for number in range(FILES):
        pq.write_table(table.slice(number * step, step), source / f"{number}.parquet")
    names = ", ".join(column.split()[0] for column in columns.split(", "))
    sql = DECLARE.format(shape=shape, folder=source, columns=columns, names=names, query=query)
    pipeline = rt.Pipeline(spark, home=folder / "home").sql(sql)
    made = pipeline.run_available(checkpoint=folder / "checkpoint", end=True, limits=rt.Limits(files=1))
    assert made.ledger["flights"]["in"] == made.ledger["flights"]["accepted"] == table.num_rows
    rows = made.table("answers").select([*names.split(", "), "start", "stop"])
    return Counter(zip(*(_plain(rows[name]) for name in rows.column_names), strict=True))


def _plain(column: pa.ChunkedArray) -> list[Any]:
    return (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()


def sweep(table: pa.Table) -> Iterator[tuple[str, int, int, int]]:
    """By airport: the number of flights in the air between two changes, if it is not zero."""
    for origin in pc.unique(table["origin"]).to_pylist():
        mine = table.filter(pc.equal(table["origin"], origin))
        times = np.concatenate([mine[name].cast(pa.int64()).to_numpy() for name in ("departure", "landing")])
        changes = np.repeat([1, -1], mine.num_rows)
        at, group = np.unique(times, return_inverse=True)
        alive = np.cumsum(np.bincount(group, weights=changes)).astype(int)
        yield from (
            (origin, n, start, stop)
            for n, start, stop in zip(alive.tolist(), at.tolist(), at[1:].tolist(), strict=False)
            if n
        )


def pairs(table: pa.Table) -> Iterator[tuple[int, int, int, int]]:
    """By route: each flight with those that departed earlier and had not landed at its departure."""
    rows = zip(*(_plain(table[name]) for name in table.column_names), strict=True)
    routes: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
    for number, origin, dest, start, stop in rows:
        routes.setdefault((origin, dest), []).append((start, stop, number))
    for route in routes.values():
        route.sort()
        for n, (_, stop, number) in enumerate(route):
            for start, end, other in route[n + 1 :]:
                if start >= stop:
                    break
                yield min(number, other), max(number, other), start, min(stop, end)


@pytest.mark.parametrize("days", DAYS)
@pytest.mark.parametrize("shape", ["INTERVAL", pytest.param("EDGE", marks=pytest.mark.slow)])
def test_the_number_in_the_air_equals_a_sweep(spark: SparkSession, tmp_path: Path, shape: str, days: int) -> None:
    table = flights(days)
    expected = Counter(sweep(table))
    given = table if shape == "INTERVAL" else as_edges(table)
    assert answers(spark, tmp_path, given, shape, "origin STRING, n BIGINT", IN_THE_AIR) == expected


@pytest.mark.parametrize("days", DAYS[:1])
@pytest.mark.parametrize("shape", [pytest.param("INTERVAL", marks=pytest.mark.slow), "EDGE"])
def test_flights_on_the_same_route_at_once_equal_a_sweep(
    spark: SparkSession, tmp_path: Path, shape: str, days: int
) -> None:
    table = flights(days)
    expected = Counter(pairs(table))
    assert expected
    given = table if shape == "INTERVAL" else as_edges(table)
    assert answers(spark, tmp_path, given, shape, "a INT, b INT", TOGETHER) == expected
