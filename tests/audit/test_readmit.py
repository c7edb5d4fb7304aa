"""`readmit` returns each early row to its stream once, when time has caught up."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from rowtime.client.writer import Writer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """CREATE STREAM s (ev TIMESTAMP, n INT);
CREATE VIEW g AS SELECT STREAM ev AS ROWTIME, n, ev FROM s
  ORDER BY ev WITHIN INTERVAL '1' MINUTE EARLY BEYOND INTERVAL '10' MINUTE;
SELECT STREAM n FROM g"""


@pytest.fixture
def feed(spark: SparkSession, tmp_path: Path) -> Any:
    got: list[int] = []

    def run(*minutes: int) -> tuple[rt.Query, list[int]]:
        pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(SQL)
        pipeline.sink("result", lambda batch: got.extend(batch.table()["n"].to_pylist() if batch.count else []))
        for stream in pipeline.compile().defines:
            pipeline.home.define(stream.name, stream.as_json(), replace=True)
        with rt.writer("s", home=tmp_path / "home") as log:
            log.insert([{"ev": f"2024-01-01 10:{minute:02}:00", "n": minute} for minute in minutes])
        return pipeline.run_available(tmp_path / "check"), got

    return run


def again(folder: Path) -> tuple[int, int, int]:
    (found,) = rt.readmit(folder / "check", home=folder / "home")
    assert (found.gate, found.stream) == ("g", "s")
    return found.admitted, found.early, found.late


def test_early_rows_come_back_once_when_time_has_caught_up(feed: Any, tmp_path: Path) -> None:
    query, _ = feed(0, 30, 25, 1, 2)
    assert query.ledger["g"] == {"in": 5, "accepted": 3, "EARLY": 2}
    assert again(tmp_path) == (0, 2, 0)
    feed(10, 18)  # the clock is at 10:17
    assert again(tmp_path) == (1, 1, 0)  # 10:25
    assert again(tmp_path) == (0, 1, 0)
    query, got = feed(20, 29)
    assert again(tmp_path) == (1, 0, 0)
    query, got = feed(31, 33)
    assert got == [0, 1, 2, 10, 18, 20, 25, 29, 30, 31]
    assert query.ledger["g"] == {"in": 13, "accepted": 11, "EARLY": 2}


def test_rows_that_are_too_late_by_now_stay_in_the_ledger(feed: Any, tmp_path: Path) -> None:
    feed(0, 15)
    feed(9, 18, 26)
    assert again(tmp_path) == (0, 0, 1)


def test_a_crash_before_or_after_the_rows_are_written_repeats_none(
    feed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed(0, 12, 8)
    real = Writer.insert

    def dies(self: Writer, rows: Any, rowtime: str | None = None) -> int:
        raise KeyboardInterrupt

    def dies_late(self: Writer, rows: Any, rowtime: str | None = None) -> int:
        real(self, rows, rowtime)
        raise KeyboardInterrupt

    for fault in (dies, dies_late):
        with monkeypatch.context() as patch:
            patch.setattr(Writer, "insert", fault)
            with pytest.raises(KeyboardInterrupt):
                again(tmp_path)
    assert again(tmp_path) == (0, 0, 0)
    query, _ = feed(14)
    assert query.ledger["g"] == {"in": 5, "accepted": 4, "EARLY": 1}


def test_only_a_gate_with_a_guard_has_early_rows(feed: Any, tmp_path: Path) -> None:
    feed(0)
    with pytest.raises(rt.Refused, match="R142"):
        rt.readmit(tmp_path / "check", "s", home=tmp_path / "home")
    with pytest.raises(rt.Refused, match="R405"):
        rt.readmit(tmp_path / "nowhere", home=tmp_path / "home")


def test_columns_that_are_called_as_those_of_the_ledger_come_back_too(spark: SparkSession, tmp_path: Path) -> None:
    sql = """CREATE STREAM s (ev TIMESTAMP, reason STRING, Position INT, writer STRING);
    CREATE VIEW g AS SELECT STREAM ev AS ROWTIME, reason, Position, writer, ev FROM s
      ORDER BY ev WITHIN INTERVAL '1' MINUTE EARLY BEYOND INTERVAL '10' MINUTE;
    CREATE PUMP refused AS INSERT INTO ledger
      SELECT STREAM reason, row_reason, row_Position, row_writer FROM g.rejected;
    CREATE PUMP taken AS INSERT INTO rows SELECT STREAM reason, Position, writer FROM g"""
    found: dict[str, list[tuple[object, ...]]] = {"ledger": [], "rows": []}

    def run(*minutes: int) -> None:
        pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(sql)
        for name, rows in found.items():
            pipeline.sink(
                name,
                lambda batch, rows=rows: rows.extend(
                    tuple(row.values())[1:] for row in (batch.table().to_pylist() if batch.count else [])
                ),
            )
        for stream in pipeline.compile().defines:
            pipeline.home.define(stream.name, stream.as_json(), replace=True)
        with rt.writer("s", home=tmp_path / "home") as log:
            log.insert(
                [
                    {"ev": f"2024-01-01 10:{minute:02}", "reason": f"r{minute}", "Position": minute, "writer": "me"}
                    for minute in minutes
                ]
            )
        pipeline.run_available(tmp_path / "check")

    run(0, 30, 1)
    assert found["ledger"] == [("EARLY", "r30", 30, "me")]
    run(10, 19, 25)
    assert again(tmp_path) == (1, 0, 0)
    run(30, 32)
    assert ("r30", 30, "me") in found["rows"]


EVENTS = """CREATE STREAM e (ev TIMESTAMP, n INT) EVENT SHAPE POINT (ev) BOUND EVERY 1 ROWS
  EARLY BEYOND INTERVAL '10' MINUTE;
CREATE STREAM r (ev TIMESTAMP, n INT) EVENT TIME (ev, EARLY BEYOND INTERVAL '10' MINUTE);
CREATE STREAM o (since TIMESTAMP, until TIMESTAMP, n INT) EVENT SHAPE EDGE (since, until)
  EARLY BEYOND INTERVAL '10' MINUTE;
CREATE VIEW hours AS SELECT STREAM COUNT(*) AS c FROM r GROUP BY PANES(ev, DURATION INTERVAL '1' HOUR);
CREATE PUMP points AS INSERT INTO events SELECT STREAM n FROM e EMIT POINTS (ev);
CREATE PUMP panes AS INSERT INTO counts SELECT STREAM c FROM hours;
CREATE PUMP open AS INSERT INTO edges SELECT STREAM n FROM o EMIT EDGES (edge, a, b)"""


@pytest.mark.slow
def test_early_events_were_not_readmitted(spark: SparkSession, tmp_path: Path) -> None:
    got: dict[str, list[dict[str, Any]]] = {"events": [], "counts": [], "edges": []}

    def run(*minutes: int) -> rt.Query:
        pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(EVENTS)
        for name, rows in got.items():
            pipeline.sink(name, lambda batch, rows=rows: rows.extend(batch.table().to_pylist() if batch.count else []))
        for stream in pipeline.compile().defines:
            pipeline.home.define(stream.name, stream.as_json(), replace=True)
        for name in "er":
            with rt.writer(name, home=tmp_path / "home") as log:
                log.insert([{"ev": f"2024-01-01 10:{minute:02}:00", "n": minute} for minute in minutes])
        with rt.writer("o", home=tmp_path / "home") as log:
            log.insert([{"since": f"2024-01-01 10:{minute:02}:00"} for minute in minutes])
        return pipeline.run_available(tmp_path / "check")

    def again(gate: str | None = None) -> dict[str, tuple[int, int, int]]:
        found = rt.readmit(tmp_path / "check", gate, home=tmp_path / "home")
        return {one.gate: (one.admitted, one.early, one.late) for one in found}

    query = run(0, 30, 25, 1, 2)
    assert query.ledger["e"] == query.ledger["r.event_time"] == {"in": 5, "accepted": 3, "EARLY": 2}
    assert again() == {"e": (0, 2, 0), "r.event_time": (0, 2, 0)}
    with pytest.raises(rt.Refused, match="R142 the early events of o cannot be re-admitted: an edge is matched"):
        again("o")
    run(10, 18)
    assert again() == {"e": (1, 1, 0), "r.event_time": (1, 1, 0)}  # 10:25
    assert again() == {"e": (0, 1, 0), "r.event_time": (0, 1, 0)}
    query = run(26, 29)
    assert again() == {"e": (1, 0, 0), "r.event_time": (1, 0, 0)}  # 10:30, above the re-admitted rows
    query = run(31, 42)
    assert query.ledger["e"]["EARLY"] == query.ledger["r.event_time"]["EARLY"] == 3  # 10:42 is a new row
    assert {row["n"] for row in got["events"]} >= {25, 30}
    assert query.ledger["hours"] == {"in": 10, "accepted": 10}, query.ledger
