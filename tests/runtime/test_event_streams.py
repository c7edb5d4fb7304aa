"""Event streams over real sources: only bounds make a row late, not its arrival."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.operators.events.emit_lifetimes import EmitLifetimes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EPOCH = datetime(2013, 1, 1, tzinfo=UTC)
SQL = """
CREATE STREAM flights (departure TIMESTAMP, landing TIMESTAMP, origin STRING) EVENT SHAPE INTERVAL (departure, landing);
CREATE STREAM answers (origin STRING, start TIMESTAMP, stop TIMESTAMP) USING memory;
CREATE PUMP p AS INSERT INTO answers (start, stop, origin) SELECT STREAM * FROM flights;
"""


def _flight(departs: int, lands: int) -> dict[str, object]:
    return {"departure": EPOCH + timedelta(hours=departs), "landing": EPOCH + timedelta(hours=lands), "origin": "JFK"}


def test_events_of_long_ago_are_not_late_until_a_bound_says_so(spark: SparkSession, tmp_path: Path) -> None:
    home, checkpoint = tmp_path / "home", tmp_path / "checkpoint"
    pipeline = rt.Pipeline(spark, home=home).sql(SQL)
    pipeline.run_available(checkpoint)
    with rt.writer("flights", home=home) as writer:
        writer.insert([_flight(5, 9)])
    pipeline.run_available(checkpoint)
    with rt.writer("flights", home=home) as writer:
        writer.insert([_flight(1, 4)])
        writer.set_rowtime_bound(EPOCH + timedelta(hours=6))
        writer.insert([_flight(2, 7)])
    query = pipeline.run_available(checkpoint)
    assert query.ledger["flights"] == {"in": 3, "accepted": 2, "LATE": 1}
    rows = query.table("answers")
    assert rows is not None
    assert [row["start"] for row in rows.to_pylist()] == [EPOCH + timedelta(hours=1)]


def test_a_directory_takes_over_files_of_events_with_their_repeats(spark: SparkSession, tmp_path: Path) -> None:
    home, checkpoint, folder = tmp_path / "home", tmp_path / "checkpoint", tmp_path / "out"
    sql = SQL.replace("USING memory", f"USING parquet OPTIONS (path '{folder}', ordered 'false')")
    sql = sql.replace("FROM flights;", "FROM TO_POINT(flights) EMIT INTERVALS (start, stop);")
    pipeline = rt.Pipeline(spark, home=home).sql(sql)
    pipeline.run_available(checkpoint)
    with rt.writer("flights", home=home) as writer:
        writer.insert([_flight(1, 4), _flight(1, 4), _flight(2, 7)])
        writer.set_rowtime_bound(EPOCH + timedelta(hours=2))
    pipeline.run_available(checkpoint)
    with rt.writer("flights", home=home) as writer:
        writer.set_rowtime_bound(EPOCH + timedelta(hours=3))
    pipeline.run_available(checkpoint)
    parts = [pq.read_table(path, partitioning=None) for path in sorted(folder.glob("*.parquet"))]
    rows = pa.concat_tables(parts, promote_options="permissive")
    hours = [int((row["start"] - EPOCH) / timedelta(hours=1)) for row in rows.to_pylist()]
    assert hours == [1, 1, 2]
    assert all(row["stop"] - row["start"] == timedelta(microseconds=1) for row in rows.to_pylist())


@pytest.mark.slow
@pytest.mark.usefixtures("both_ways")
def test_each_row_meets_the_bound_of_its_writer(spark: SparkSession, tmp_path: Path) -> None:
    sql = SQL.splitlines()[1].replace(";", " ON LATE ADJUST;") + "SELECT STREAM * FROM flights EMIT CHANGES;"
    found: list[dict[str, object]] = []
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(sql)
    pipeline.sink("result", lambda batch: found.extend(batch.table().to_pylist()))
    for stream in pipeline.compile().defines:
        pipeline.home.define(stream.name, stream.as_json())
    wanted = []
    for n in range(4):
        first, second = EPOCH + timedelta(hours=6 + n), EPOCH + timedelta(hours=16 + n)
        with rt.writer("flights", home=tmp_path / "home", writer=f"w{n}") as writer:
            writer.insert([_flight(5, 9) | {"origin": f"w{n}"}])
            for bound in (first, second)[: n + 1]:
                writer.set_rowtime_bound(bound)
                writer.insert([_flight(1, 40) | {"origin": f"w{n}"}, _flight(1, 2), _flight(30, 31)])
                wanted += [(bound, bound, f"w{n}"), (bound, EPOCH + timedelta(hours=30), "JFK")]
            writer.end()
        wanted.append((datetime(1, 1, 1, tzinfo=UTC), EPOCH + timedelta(hours=5), f"w{n}"))
    query = pipeline.run_available(tmp_path / "checkpoint")
    assert sorted((row["rowtime"], row["start"], row["origin"]) for row in found) == sorted(wanted)
    assert query.ledger["flights"] == {"in": 25, "accepted": 18, "LATE": 7, "ADJUSTED": 7}


def _edges(folder: Path, files: int) -> list[tuple[int, int, int | None]]:
    """Write 120 events as edges in the order of their times (s), in some files; every tenth has no end."""
    random = np.random.default_rng(7)
    begins = random.integers(0, 200, 120)
    events = [(n % 5, int(t), None if n % 10 == 0 else int(t + random.integers(1, 90))) for n, t in enumerate(begins)]
    edges = [(start, k, start, None) for k, start, _ in events]
    edges += [(stop, k, start, stop) for k, start, stop in events if stop is not None]
    edges.sort(key=lambda edge: edge[0])
    folder.mkdir()
    size = -(-len(edges) // files)
    for number in range(files):
        part = edges[number * size : (number + 1) * size]
        times = ([None if edge[n] is None else edge[n] * 1_000_000 for edge in part] for n in (2, 3))
        begin, end = (pa.array(of, pa.timestamp("us", "UTC")) for of in times)
        pq.write_table(pa.table({"k": [edge[1] for edge in part], "a": begin, "b": end}), folder / f"{number}.parquet")
    return events


def _pairs(events: list[tuple[int, int, int | None]]) -> list[tuple[int, int, int | None]]:
    """Return the time that each event shares with each event of its key, itself included."""
    lives = [(k, start, 10**9 if stop is None else stop) for k, start, stop in events]
    shared = [(k, max(a, c), min(b, d)) for k, a, b in lives for of, c, d in lives if k == of]
    return [(k, start, None if stop == 10**9 else stop) for k, start, stop in shared if start < stop]


VIEWS: dict[str, Any] = {
    "SELECT STREAM k FROM e": lambda events: events,
    "SELECT STREAM x.k AS k FROM e AS x JOIN e AS y ON x.k = y.k": _pairs,
}


@pytest.mark.parametrize("files", [1, 9])
@pytest.mark.parametrize("by_query", [False, True])
@pytest.mark.parametrize("view", VIEWS)
def test_intervals_of_edges_go_into_files(
    files: int, by_query: bool, view: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = VIEWS[view](_edges(tmp_path / "edges", files))
    here = EmitLifetimes._released_here
    computed = []

    def released(*of: Any) -> Any:
        computed.append(None if by_query else here(*of))
        return computed[-1]

    monkeypatch.setattr(EmitLifetimes, "_released_here", released)
    sql = f"""
    CREATE STREAM e (k BIGINT, a TIMESTAMP, b TIMESTAMP)
      EVENT SHAPE EDGE (a, b) BOUND EVERY INTERVAL '1' SECOND DELAY INTERVAL '100' SECOND
      USING parquet OPTIONS (path '{tmp_path}/edges');
    CREATE STREAM o (k BIGINT, a TIMESTAMP, b TIMESTAMP) USING parquet OPTIONS (path '{tmp_path}/o', ordered 'false');
    CREATE VIEW i AS {view} EMIT INTERVALS (a, b);
    CREATE PUMP p AS INSERT INTO o SELECT STREAM k, a, b FROM i;
    """
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(sql)
    pipeline.run_available(tmp_path / "checkpoint", end=True, limits=rt.Limits(files=1))
    rows = pq.read_table(tmp_path / "o", columns=["k", "a", "b"]).to_pylist()
    seconds = [
        (row["k"], round(row["a"].timestamp()), row["b"] and round(row["b"].timestamp()))
        for row in rows
    ]  # fmt: skip
    assert sorted(seconds, key=str) == sorted(events, key=str)
    if view == "SELECT STREAM k FROM e":
        assert (computed[-1] is not None) is not by_query, "also the end of the stream"
