"""Panes of panes in a large pipeline: two regions, a union, a table, restarts, the trace and `verify`."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.audit.trace import trace

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SQL = """
    CREATE STREAM s (k INT, v INT, at TIMESTAMP) EVENT TIME (at, MINIMUM GAP INTERVAL '0' SECOND);
    CREATE STREAM r (k INT, v INT, at TIMESTAMP) EVENT TIME (at, MINIMUM GAP INTERVAL '0' SECOND);
    CREATE TABLE names (v INT, name STRING) USING parquet OPTIONS (path '{}');
    CREATE VIEW a AS SELECT STREAM PANE_END AS e, v, COUNT(*) AS n FROM s
      GROUP BY PANES(at, DURATION INTERVAL '10' SECOND), v;
    CREATE VIEW b AS SELECT STREAM PANE_END AS e, v, COUNT(*) AS n FROM r
      GROUP BY PANES(at, DURATION INTERVAL '10' SECOND, DISCARD AGE INTERVAL '10' SECOND), v
      HAVING PANE_TIMING = 'COMPLETE';
    CREATE VIEW u AS SELECT STREAM * FROM a UNION ALL SELECT STREAM e, v, n FROM b WHERE n > 0;
    CREATE VIEW named AS SELECT STREAM u.e AS e, name, n FROM u JOIN names ON names.v = u.v;
    CREATE VIEW minutes AS SELECT STREAM PANE_END AS minute, name, SUM(n) AS n, COUNT(*) AS fires FROM named
      GROUP BY PANES(e, DURATION INTERVAL '30' SECOND), name;
    CREATE VIEW longer AS SELECT STREAM PANE_START AS start, name, SUM(n) AS n, SUM(fires) AS fires FROM minutes
      GROUP BY PANES(minute, DURATION INTERVAL '1' MINUTE), name;
    CREATE PUMP p AS INSERT INTO out SELECT STREAM * FROM longer;
"""
START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)


def rows_of(seed: int) -> list[dict[str, Any]]:
    return [{"k": k, "v": (k * seed) % 3, "at": START + dt.timedelta(seconds=k * seed % 7 + 4 * k)} for k in range(40)]


def expected() -> dict[tuple[dt.datetime, str], int]:
    """The counts of the complete fires, by minute; a fire belongs to the minute in which its pane ends."""
    found: Counter[tuple[dt.datetime, str]] = Counter()
    for seed, age in ((2, 0), (5, 10)):
        bound, groups, fired = START, Counter[tuple[dt.datetime, int]](), dict[tuple[dt.datetime, int], int]()
        for row in rows_of(seed):
            if row["at"] >= bound - dt.timedelta(seconds=age):
                groups[_next(row["at"], 10), row["v"]] += 1
            if row["at"] > bound:
                bound = row["at"]
                fired = {group: n for group, n in groups.items() if group[0] <= bound} | fired
        for (end, v), n in (groups | fired).items():
            found[_next(end, 30).replace(second=0), "abc"[v]] += n
    return dict(found)


def _next(at: dt.datetime, seconds: int) -> dt.datetime:
    return START + dt.timedelta(seconds=((at - START).seconds // seconds + 1) * seconds)


@pytest.mark.slow
def test_what_is_made_of_panes_of_panes_is_counted_once_traced_and_proved(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "names").mkdir()
    pq.write_table(
        pa.table({"v": pa.array([0, 1, 2], pa.int32()), "name": ["a", "b", "c"]}), tmp_path / "names/1.parquet"
    )
    got: list[dict[str, Any]] = []

    def made() -> rt.Pipeline:
        pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(SQL.format(tmp_path / "names"))
        return pipeline.sink("out", lambda batch: got.extend(batch.table().to_pylist() if batch.count else []))

    for stream in made().compile().defines:
        made().home.define(stream.name, stream.as_json())
    for begin in range(0, 40, 20):
        for name, seed in (("s", 2), ("r", 5)):
            with rt.writer(name, home=tmp_path / "home", writer="w") as log:
                log.insert(rows_of(seed)[begin : begin + 20])
        made().run_available(tmp_path / "check")
    for name in "sr":
        with rt.writer(name, home=tmp_path / "home", writer="w") as log:
            log.end()
    made().run_available(tmp_path / "check")
    assert {(row["start"].replace(tzinfo=dt.UTC), row["name"]): row["n"] for row in got} == expected()
    assert len(got) == len(expected())
    assert rt.verify(tmp_path / "check", made())
    found = trace(made(), tmp_path / "check", "name = 'a'", sink="p")
    rows = [item.columns for name in "sr" for item in found.of(name) if item.kind == "row"]
    assert rows
    assert {row["v"] for row in rows} == {0}
