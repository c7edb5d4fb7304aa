"""The trace of an output row equals lists that were worked out by hand from the input."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

import rowtime as rt
from rowtime.audit.forward import forward
from rowtime.audit.trace import trace
from rowtime.audit.traced import Trace
from rowtime.cli.main import app
from rowtime.core.time import to_micros
from rowtime.runtime.meter import JobTimes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FLIGHTS_SQL = """
CREATE STREAM flights (departure TIMESTAMP, arrival TIMESTAMP, id INT, origin STRING, route STRING)
  EVENT SHAPE INTERVAL (departure, arrival);
CREATE STREAM counts (start TIMESTAMP, stop TIMESTAMP, origin STRING, n BIGINT) USING memory;
CREATE STREAM pairs (start TIMESTAMP, stop TIMESTAMP, one INT, other INT) USING memory;
CREATE STREAM changes (change STRING, start TIMESTAMP, stop TIMESTAMP, new_stop TIMESTAMP, origin STRING, n BIGINT)
  USING memory;
CREATE VIEW counted AS SELECT STREAM origin, COUNT(*) AS n FROM flights GROUP BY SNAPSHOT(), origin;
CREATE VIEW changing AS SELECT STREAM origin, COUNT(*) AS n FROM flights GROUP BY SNAPSHOT(), origin EMIT CHANGES;
CREATE PUMP a AS INSERT INTO counts SELECT STREAM * FROM counted EMIT INTERVALS (start, stop);
CREATE PUMP b AS INSERT INTO pairs SELECT STREAM a.id AS one, b.id AS other
  FROM flights AS a JOIN flights AS b ON a.route = b.route AND a.id < b.id EMIT INTERVALS (start, stop);
CREATE PUMP c AS INSERT INTO changes SELECT STREAM * FROM changing;
"""
CLICKS_SQL = """
CREATE STREAM clicks (page STRING);
CREATE STREAM minutes (page STRING, n BIGINT) USING memory;
CREATE STREAM running (page STRING, n BIGINT) USING memory;
CREATE PUMP d AS INSERT INTO minutes SELECT STREAM page, COUNT(*) AS n FROM clicks AS c
  GROUP BY FLOOR(c.ROWTIME TO MINUTE), page;
CREATE PUMP e AS INSERT INTO running SELECT STREAM page, COUNT(*) OVER (PARTITION BY page ORDER BY c.ROWTIME
  RANGE INTERVAL '30' SECOND PRECEDING) AS n FROM clicks AS c;
"""
FLIGHTS = [[(0, 10, 1, "A", "r"), (3, 6, 2, "A", "r"), (2, 9, 3, "B", "s")], [(8, 12, 4, "A", "s")]]
FLIGHT_BOUNDS = [4, 30]
CLICKS = [[(10, "a"), (20, "b"), (50, "a")], [(65, "a"), (70, "b")]]
OPEN = "+∞"


def at(second: int) -> str:
    return f"2024-01-01 00:{second // 60:02}:{second % 60:02}"


@pytest.fixture(scope="module")
def flights(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint over events after two ticks."""
    folder = tmp_path_factory.mktemp("trace of events")
    names = ("departure", "arrival", "id", "origin", "route")
    sent = [[dict(zip(names, (at(s), at(e), *rest), strict=True)) for s, e, *rest in rows] for rows in FLIGHTS]
    ran(pipeline(spark, folder, FLIGHTS_SQL), folder, "flights", sent, FLIGHT_BOUNDS)
    return folder


@pytest.fixture(scope="module")
def clicks(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint over rows after two ticks."""
    folder = tmp_path_factory.mktemp("trace of rows")
    sent = [[{"page": page, "rowtime": at(second)} for second, page in rows] for rows in CLICKS]
    ran(pipeline(spark, folder), folder, "clicks", sent, [None, None])
    return folder


def ran(made: rt.Pipeline, folder: Path, name: str, sent: list[list[dict[str, Any]]], bounds: list[Any]) -> None:
    """Send rows, and optionally a bound after them, before each tick."""
    for stream in made.compile().defines:
        made.home.define(stream.name, stream.as_json())
    for rows, bound in zip(sent, bounds, strict=True):
        with rt.writer(name, home=folder / "home") as log:
            log.insert(rows)
            if bound is not None:
                log.set_rowtime_bound(at(bound))
        engine = made._engine(folder / "check", rt.Limits(), ends=False)
        engine.tick()
        engine.stop()


def pipeline(spark: SparkSession, folder: Path, sql: str = CLICKS_SQL) -> rt.Pipeline:
    return rt.Pipeline(spark, home=folder / "home").sql(sql)


def rows(found: Trace, operator: str) -> list[tuple[Any, ...]]:
    """The traced rows with times as seconds: (tick, kind, from, to, values)."""
    zero = to_micros(at(0))
    times = [[None if t is None else (t - zero) / 1e6 for t in (item.at, item.until)] for item in found.of(operator)]
    return [
        (item.tick, item.kind, start, OPEN if end is not None and end > 1e9 else end, *item.columns.values())
        for item, (start, end) in zip(found.of(operator), times, strict=True)
    ]


def operators(found: Trace) -> dict[str, list[str]]:
    """The operators by kind."""
    names = dict.fromkeys(item.operator for item in found)
    return {kind: [name for name in names if found.kinds[name] == kind] for kind in set(found.kinds.values())}


def test_few_rows_are_found_without_a_spark_job(spark: SparkSession, clicks: Path) -> None:
    jobs = JobTimes(spark)
    before = jobs.next()
    found = trace(pipeline(spark, clicks), clicks / "check", "page = 'a' AND n = 2", sink="d")
    assert [item.columns["n"] for item in found.of(found.sink) if item.kind == "row"] == [2]
    assert jobs.next() == before


@pytest.mark.slow
def test_a_trace_of_a_snapshot_lists_the_events_that_are_alive_or_touch_it(spark: SparkSession, flights: Path) -> None:
    found = trace(pipeline(spark, flights, FLIGHTS_SQL), flights / "check", {"origin": "A", "n": 2}, sink="a")
    assert rows(found, found.sink)[0][:3] == (1, "row", 6)
    (group,) = operators(found)["snapshot"]
    assert rows(found, group) == [
        (0, "insert", 3, OPEN, "A", 2),
        (1, "retract", 3, OPEN, "A", 2),
        (1, "insert", 3, 6, "A", 2),
        (1, "bound", 30, None),
    ]
    assert rows(found, "flights") == [
        (0, "insert", 0, 10, 1, "A", "r"),
        (0, "insert", 3, 6, 2, "A", "r"),
        (1, "bound", 30, None),
    ]


@pytest.mark.slow
def test_a_trace_of_an_interval_join_lists_both_events(spark: SparkSession, flights: Path) -> None:
    found = trace(pipeline(spark, flights, FLIGHTS_SQL), flights / "check", "one = 3 AND other = 4", sink="b")
    (join,) = operators(found)["lifetime join"]
    assert rows(found, join)[0][:4] == (1, "insert", 8, 9)
    assert rows(found, "flights")[:-1] == [(0, "insert", 2, 9, 3, "B", "s"), (1, "insert", 8, 12, 4, "A", "s")]


@pytest.mark.slow
def test_a_trace_of_a_retraction_lists_the_retracted_event_and_its_cause(spark: SparkSession, flights: Path) -> None:
    made, where = pipeline(spark, flights, FLIGHTS_SQL), "change = 'retract' AND origin = 'A' AND n = 1"
    found = trace(made, flights / "check", where, sink="c")
    (group,) = operators(found)["speculative groups"]
    assert rows(found, group)[:-1] == [
        (0, "insert", 0, 10, "A", 1),
        (0, "retract", 0, 10, "A", 1),
        (0, "insert", 0, 3, "A", 1),
    ]
    assert rows(found, "flights")[:-1] == [(0, "insert", 0, 10, 1, "A", "r"), (0, "insert", 3, 6, 2, "A", "r")]


def test_a_trace_of_a_group_lists_its_rows_and_the_bound_that_closed_it(spark: SparkSession, clicks: Path) -> None:
    found = trace(pipeline(spark, clicks), clicks / "check", number=0, sink="d")
    assert rows(found, "clicks") == [(0, "row", 10, None, "a"), (0, "row", 50, None, "a"), (1, "bound", 70, None)]


def edges(found: Trace) -> set[tuple[str, tuple[Any, ...], str, tuple[Any, ...]]]:
    """The rows that a trace connects: operator, time and values, above and below."""
    rows = {item.number: item for item in found if item.number is not None}

    def told(item: Any) -> tuple[Any, ...]:
        return (to_micros(at(0)) - item.at) / -1e6, *item.columns.values()

    return {
        (item.operator, told(item), rows[below].operator, told(rows[below]))
        for item in rows.values()
        for below in item.made_of
    }


def test_each_row_is_joined_with_those_that_made_it_and_with_no_others(spark: SparkSession, clicks: Path) -> None:
    down = edges(trace(pipeline(spark, clicks), clicks / "check", f"rowtime = TIMESTAMP '{at(65)}'", sink="e"))
    up = edges(forward(pipeline(spark, clicks), clicks / "check", "clicks", f"rowtime = TIMESTAMP '{at(50)}'"))
    fifty, sixty_five = (50, "a"), (65, "a")
    passed = ("e.sink", "e.arranged", "e", "e.select")
    alone = {(above, (65, "a", 2), below, (65, "a", 2)) for above, below in pairwise(passed)}
    assert down == alone | {
        ("e.select", (65, "a", 2), "e.over", sixty_five),
        ("e.over", sixty_five, "e.merge", fifty),
        ("e.over", sixty_five, "e.merge", sixty_five),
        ("e.merge", fifty, "clicks", fifty),
        ("e.merge", sixty_five, "clicks", sixty_five),
    }
    assert {one for one in up if one[2] == "clicks"} == {
        ("e.merge", fifty, "clicks", fifty),
        ("d.group", (60, "a", 2), "clicks", fifty),
    }
    assert {one[1] for one in up if one[0] == "e.sink"} == {(50, "a", 1), (65, "a", 2)}
    assert {one for one in up if one[0] == "e.over"} == {
        ("e.over", fifty, "e.merge", fifty),
        ("e.over", sixty_five, "e.merge", fifty),
    }


@pytest.mark.slow
def test_a_trace_of_a_window_lists_the_rows_of_the_window(spark: SparkSession, clicks: Path) -> None:
    where = f"page = 'a' AND rowtime = TIMESTAMP '{at(65)}'"
    found = trace(pipeline(spark, clicks), clicks / "check", where, sink="e")
    assert rows(found, "clicks")[:-1] == [(0, "row", 50, None, "a"), (1, "row", 65, None, "a")]


@pytest.mark.slow
def test_a_query_traces_its_own_rows(spark: SparkSession, tmp_path: Path) -> None:
    made = rt.Pipeline(spark, home=tmp_path / "home").sql("CREATE STREAM s (k INT); SELECT STREAM k FROM s WHERE k > 1")
    made.sql(f"INSERT INTO s (ROWTIME, k) VALUES (TIMESTAMP '{at(1)}', 1), (TIMESTAMP '{at(2)}', 2)")
    made.sink("result", lambda batch: None)
    query = made.run_available(tmp_path / "check")
    assert rows(query.trace({"k": 2}), "s")[:1] == [(0, "row", 2, None, 2)]
    assert rows(query.trace(number=0), "s") == rows(query.trace("k = 2"), "s")


def test_a_missing_row_is_refused(spark: SparkSession, clicks: Path) -> None:
    made = pipeline(spark, clicks)
    for row, number, sink in ((None, 99, "d"), ("pag = 'a'", None, "d"), (None, 0, None), (None, 0, "x")):
        with pytest.raises(rt.Refused) as refused:
            trace(made, clicks / "check", row, number=number, sink=sink)
        assert [problem.code for problem in refused.value.problems] == ["R409"]


def test_the_command_shows_an_item_a_line(spark: SparkSession, clicks: Path) -> None:
    assert spark
    arguments = ["trace", str(clicks / "check"), "--number", "0", "--sink", "d", "--home", str(clicks / "home")]
    shown = CliRunner().invoke(app, [*arguments, "--json"])
    items = [json.loads(line) for line in shown.output.splitlines() if line.startswith("{")]
    last = {"operator": "clicks", "tick": 0, "kind": "row", "at": at(50), "columns": {"page": "a"}}
    assert items[-1] == {"operator": "clicks", "tick": 1, "kind": "bound", "at": at(70)}
    assert {name: value for name, value in items[-2].items() if name not in ("id", "made_of")} == last
    below = {item["id"]: item for item in items if item["kind"] != "bound"}
    chosen = items[0]
    while chosen["operator"] != "d.group":
        (chosen,) = (below[number] for number in chosen["made_of"])
    assert [below[number]["columns"] for number in chosen["made_of"]] == [{"page": "a"}, {"page": "a"}]
    text = CliRunner().invoke(app, arguments).output
    assert f"clicks (stream)\n  tick 0  row      {at(10)}  page=a\n" in text
