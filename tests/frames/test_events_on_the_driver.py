"""Snapshots and joins of events from edges give the same rows on the driver as in Spark."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
EDGES = """CREATE STREAM {name} (k STRING, v INT, a TIMESTAMP, b TIMESTAMP)
  EVENT SHAPE EDGE (a, b) BOUND EVERY INTERVAL '1' SECOND DELAY INTERVAL '20' SECOND;
"""
SNAPSHOTS = """SELECT STREAM k, COUNT(*) AS n, SUM(v) AS s, AVG(v) AS m FROM x AS x
  GROUP BY SNAPSHOT(), k HAVING COUNT(*) < 4 EMIT INTERVALS (a, b)"""
WHOLE = "SELECT STREAM COUNT(*) AS n FROM x AS x GROUP BY SNAPSHOT() EMIT INTERVALS (a, b)"
JOIN = "SELECT STREAM x.k AS k, x.v AS v, y.v AS w FROM x AS x JOIN y AS y ON x.k = y.k EMIT INTERVALS (a, b)"
THEMSELVES = "SELECT STREAM k, v FROM x AS x EMIT INTERVALS (a, b)"
AS_EDGES = "SELECT STREAM k, v FROM x AS x EMIT EDGES (edge, a, b)"
QUERIES = {
    "snapshots of keys": SNAPSHOTS,
    "snapshots of all": WHOLE,
    "a join": JOIN,
    "the events themselves": THEMSELVES,
    "the events as edges": AS_EDGES,
}


def edges(seed: int, count: int) -> list[dict[str, Any]]:
    """Starts, each with a later end, in the order of the judged times; some without an end, some of no length."""
    chance, found = random.Random(seed), list[tuple[int, dict[str, Any]]]()
    for number in range(count):
        begins = number // 2
        lasts = chance.choice([0, 1, 1, 3, 9, 15, None])
        row = {"k": chance.choice(["a", "b", "c", None]), "v": chance.choice([1, 2, 3, None])}
        at = START + dt.timedelta(seconds=begins)
        found.append((2 * begins, {**row, "a": at, "b": None}))
        if lasts is not None:
            found.append((2 * (begins + lasts) + 1, {**row, "a": at, "b": at + dt.timedelta(seconds=lasts)}))
    return [row for _, row in sorted(found, key=lambda one: one[0])]


def rows_of(
    spark: SparkSession, folder: Path, query: str, cut: int, small_ticks: str = "driver"
) -> list[tuple[Any, ...]]:
    names = ("x", "y") if query == JOIN else ("x",)
    home, found = folder / "home", list[dict[str, Any]]()
    pipeline = rt.Pipeline(spark, home=home, small_ticks=small_ticks)
    pipeline.sql("".join(EDGES.format(name=name) for name in names) + query)
    pipeline.sink("result", lambda batch: found.extend(batch.table().to_pylist()) if batch.count else None)
    for one in pipeline.compile().defines:
        pipeline.home.define(one.name, one.as_json(), replace=True)
    for number, name in enumerate(names):
        with rt.writer(name, home=home, writer="w") as log:
            log.insert(edges(number, 60))
            log.end()
    pipeline.run_available(folder / "check", limits=rt.Limits(rows=cut))
    return sorted((tuple(row.values()) for row in found), key=repr)


@pytest.mark.slow
@pytest.mark.parametrize("name", QUERIES)
def test_events_from_edges_are_the_same_on_the_driver_and_in_spark(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    here = [rows_of(spark, tmp_path / f"here{cut}", QUERIES[name], cut) for cut in (13, 1000)]
    assert here == [rows_of(spark, tmp_path / "there", QUERIES[name], 40, "spark")] * 2
    assert len(here[0]) > 20
