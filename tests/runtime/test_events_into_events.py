"""A pump writes events into a stream of events, which another pipeline reads: none of them is late there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import rowtime as rt
from rowtime.core.time import to_micros

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

STREAMS = """
    CREATE STREAM e (kind STRING, a TIMESTAMP, b TIMESTAMP, k INT) EVENT SHAPE BY kind (a, b);
    CREATE STREAM o (since TIMESTAMP, until TIMESTAMP, k INT) EVENT SHAPE INTERVAL (since, until);
    CREATE STREAM m (since TIMESTAMP, until TIMESTAMP, k INT) EVENT SHAPE EDGE (since, until);
"""
PUMPS = """
    CREATE VIEW moves AS SELECT STREAM k FROM e EMIT EDGES (edge, since, until);
    CREATE PUMP whole AS INSERT INTO o SELECT STREAM k FROM e EMIT INTERVALS (since, until) FULLY ORDERED;
    CREATE PUMP edges AS INSERT INTO m SELECT STREAM since, until, k FROM moves;
"""
READ = """
    CREATE VIEW w AS SELECT STREAM MIN(o.ROWTIME) AS first, COUNT(*) AS n FROM o GROUP BY TUMBLE(INTERVAL '10' MICROSECOND);
    CREATE PUMP windows AS INSERT INTO counted SELECT STREAM first, n FROM w;
    CREATE PUMP again AS INSERT INTO found SELECT STREAM k FROM m EMIT INTERVALS (since, until);
"""  # noqa: E501
EVENTS = [("interval", 0, 9, 1), ("interval", 1, None, 2), ("interval", 2, 3, 3), ("end", 1, 8, 2)]


def run(spark: SparkSession, folder: Path, sql: str, check: str, *sinks: str) -> list[list[tuple[object, ...]]]:
    got: list[list[tuple[object, ...]]] = [[] for _ in sinks]
    pipeline = rt.Pipeline(spark, home=folder / "home").sql(sql)
    for name, rows in zip(sinks, got, strict=True):
        pipeline.sink(name, lambda batch, rows=rows: rows.extend(map(_values, batch.table().to_pylist())))
    query = pipeline.run_available(folder / check)
    assert not {"LATE", "UNMATCHED_EDGE"} & {reason for counts in query.ledger.values() for reason in counts}
    return got


def _values(row: dict[str, object]) -> tuple[object, ...]:
    values = (value for name, value in row.items() if name != "rowtime")
    return tuple(to_micros(value) if hasattr(value, "tzinfo") else value for value in values)  # type: ignore[arg-type]


@pytest.mark.slow
def test_events_from_a_pump_were_late(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(STREAMS)
    for stream in pipeline.compile().defines:
        pipeline.home.define(stream.name, stream.as_json())
    with rt.writer("e", home=tmp_path / "home") as log:
        log.insert([dict(zip(("kind", "a", "b", "k"), event, strict=True)) for event in EVENTS])
        log.set_rowtime_bound(20)
    run(spark, tmp_path, STREAMS + PUMPS, "write")
    counted, found = run(spark, tmp_path, STREAMS + READ, "read", "counted", "found")
    assert counted == [(0, 10, 0, 3)]
    assert found == [(2, 3, 3), (1, 8, 2), (0, 9, 1)]
