"""Waiting operators and since when they wait; rows that others decide are named."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from rowtime.cli.status import status_of
from rowtime.operators.contract import Delta
from rowtime.operators.events.bounded_events import BoundedEvents
from rowtime.operators.streams.stream import NOBODY
from rowtime.plan.holders import since
from rowtime.plan.program import compile_script
from rowtime.plan.stored import StoredOperator, StoredPlan
from rowtime.plan.waiting import PATIENCE, Wait, waiting
from rowtime.runtime.sources.contract import Limits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """CREATE STREAM s (ev TIMESTAMP, n INT);
SELECT STREAM ev AS ROWTIME, n FROM s ORDER BY ev WITHIN INTERVAL '30' SECOND{}"""


def run(spark: SparkSession, folder: Path, sql: str, *minutes: int) -> Wait:
    (found,) = waits(spark, folder, sql, *minutes)
    return found


def waits(spark: SparkSession, folder: Path, sql: str, *minutes: int) -> list[Wait]:
    pipeline = rt.Pipeline(spark, home=folder / "home").sql(sql)
    pipeline.sink("result", lambda _: None)
    for stream in pipeline.compile().defines:
        pipeline.home.define(stream.name, stream.as_json(), replace=True)
    with rt.writer("s", home=folder / "home", writer="phone") as log:
        log.insert([{"ev": f"2024-01-01 10:{minute:02}:00", "n": minute} for minute in minutes])
    query = pipeline.run_available(folder / "check", limits=Limits())
    return [wait for wait in query.waiting(timedelta(0)) if isinstance(wait, Wait)]


def test_since_is_when_the_bound_stopped_moving(spark: SparkSession, tmp_path: Path) -> None:
    sql = SQL.format("")
    first = run(spark, tmp_path, sql, 0, 1)
    again = run(spark, tmp_path, sql, 1)
    assert (first.held, again.held) == (1, 2)
    assert (first.bound, again.bound) == ("2024-01-01 10:00:30", "2024-01-01 10:00:30")
    assert first.since == again.since > "2024"
    later = run(spark, tmp_path, sql, 5)
    assert later.since > again.since
    assert f"at 2024-01-01 10:04:30 since {later.since}: waits for writer 'phone' of s;" in str(later)
    (shown,) = status_of(tmp_path / "check")["waiting"]
    assert shown["since"] == later.since


def test_an_open_jump_names_the_row_that_later_rows_decide_about(spark: SparkSession, tmp_path: Path) -> None:
    sql = SQL.format(" EARLY BEYOND INTERVAL '1' MINUTE RESYNC AFTER 2 ROWS")
    wait = run(spark, tmp_path, sql, 0, 1)
    assert (wait.kind, wait.held, wait.stream, wait.writer) == ("t-sort", 2, "s", "phone")
    assert wait.release == "the rows after its row 0 decide whether that row counts: send more"


EVENTS = "CREATE STREAM s (ev TIMESTAMP, n INT) EVENT SHAPE POINT (ev) BOUND EVERY 1 ROWS; "


@pytest.mark.parametrize("emit", ["INTERVALS (a, b)", "INTERVALS (a, b) FULLY ORDERED", "EDGES (what, a, b)"])
@pytest.mark.parametrize(
    "query", ["SELECT STREAM n FROM {}", "SELECT STREAM COUNT(*) AS c FROM {} GROUP BY SNAPSHOT()"]
)
def test_events_wait_for_the_bound_of_their_writer(spark: SparkSession, tmp_path: Path, query: str, emit: str) -> None:
    long = "ALTER_DURATION(s, INTERVAL '1' HOUR) AS x"
    found = waits(spark, tmp_path, f"{EVENTS}{query.format(long)} EMIT {emit}", 0, 1)
    assert {(wait.stream, wait.writer, wait.bound) for wait in found} == {("s", "phone", "2024-01-01 10:01:00")}
    assert all("ALTER STREAM s SET BOUND" in wait.release or "rowtime bound s" in wait.release for wait in found)


UNNAMED = "SELECT STREAM ev AS ROWTIME, n FROM s ORDER BY ev WITHIN INTERVAL '2' MINUTE"


@pytest.mark.parametrize(
    ("select", "whole"),
    [
        ("SELECT STREAM n FROM v", [1, 2, 3]),
        ("SELECT STREAM n FROM v UNION ALL SELECT STREAM n FROM v AS w", [1, 1, 2, 2, 3, 3]),
        ("SELECT STREAM COUNT(*) AS n FROM v GROUP BY FLOOR(v.ROWTIME TO HOUR)", [3]),
        ("SELECT STREAM v.n FROM v JOIN v AS w ON v.n = w.n", [1, 2, 3]),
        (f"SELECT STREAM n FROM ({UNNAMED}) AS t WHERE n > 1", [2, 3]),
    ],
    ids=["sorted rows", "a union", "groups", "a join", "a sub-query"],
)
def test_the_offered_bound_releases_held_rows(
    spark: SparkSession, tmp_path: Path, select: str, whole: list[int]
) -> None:
    got: list[int] = []

    def started(more: str = "") -> rt.Query:
        pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(f"{OFFERED}{more} {select}")
        pipeline.sink("result", lambda batch: got.extend(batch.table()["n"].to_pylist() if batch.count else []))
        for stream in pipeline.compile().defines:
            pipeline.home.define(stream.name, stream.as_json(), replace=True)
        if not more:
            with rt.writer("s", home=tmp_path / "home", writer="phone") as log:
                log.insert([{"ev": f"2024-01-01 10:{minute:02}:00", "n": minute} for minute in (1, 2, 3)])
        return pipeline.run_available(tmp_path / "check", limits=Limits())

    before = started()
    (found, *_) = (wait for wait in before.waiting(timedelta(0)) if isinstance(wait, Wait))
    (statement,) = re.findall(r"stop, add (ALTER VIEW \S+ SET ROWTIME BOUND [^;]+;) to the script", str(found))
    let_out = len(got)
    after = started(statement)
    assert let_out < len(got)
    assert got == whole
    assert not [wait for wait in after.waiting() if isinstance(wait, Wait)]


OFFERED = """CREATE STREAM s (ev TIMESTAMP, n INT);
CREATE VIEW v AS SELECT STREAM ev AS ROWTIME, n FROM s ORDER BY ev WITHIN INTERVAL '2' MINUTE;"""


PLAN = StoredPlan(
    "",
    {
        "s": StoredOperator("stream", "s", (), {"source": ["log", []]}),
        "g": StoredOperator("group by", "g", ("s",), {}),
    },
)


def entry(clocks: dict[str, int], *, since: int) -> dict[str, Any]:
    """A journal entry after which ``g`` holds three groups; its bound has not changed since then (µs)."""
    return {
        "held": {"g/state": 3},
        "clocks": {"s": clocks},
        "since": {"g": [min(clocks.values()), since]},
        "sources": {"s": {"offsets": {"phone": 1, "watch": 1}}},
        "segments": {},
        "control": {},
    }


def test_irreversible_remedies_are_not_offered_while_a_pipeline_is_healthy() -> None:
    (wait,) = waiting(PLAN, entry({"phone": 0, "watch": 5}, since=1000), now=1000 + PATIENCE - 1)
    assert isinstance(wait, Wait)
    assert wait.release == "it may send earlier rows: send it a later row"
    assert not wait.stalled


def test_a_stalled_bound_comes_with_irreversible_remedies_and_a_warning() -> None:
    (wait,) = waiting(PLAN, entry({"phone": 0, "watch": 5}, since=1000), now=1000 + PATIENCE)
    assert isinstance(wait, Wait)
    assert wait.stalled
    aside, bound = wait.release.index("IDLE AFTER"), wait.release.index("rowtime bound s '<time>' --writer 'phone'")
    assert aside < bound, "what can be undone comes first"
    assert "this cannot be undone: earlier rows are refused from then on" in wait.release


def test_a_stream_whose_writers_have_all_left_is_reported_without_a_name_of_ours() -> None:
    for now in (0, PATIENCE):
        (wait,) = waiting(PLAN, entry({NOBODY: 0}, since=0), now=now)
        assert isinstance(wait, Wait)
        assert wait.writer == ""
        assert wait.release.startswith("every writer of s has left, and another one may join: send it a ")
        assert NOBODY not in str(wait) + str(wait.as_json())


def test_open_edges_under_imported_bounds_wait_while_their_own_bound_is_still() -> None:
    sql = """CREATE STREAM data (at TIMESTAMP) EVENT SHAPE POINT (at);
    CREATE STREAM prices (a TIMESTAMP, b TIMESTAMP, n INT) EVENT SHAPE EDGE (a, b) BOUND FROM data;
    SELECT STREAM n FROM prices"""
    program = compile_script(sql)
    (name,) = (node.name for node in program.operators if node.kind == BoundedEvents.kind)

    def after(entry: dict[str, Any], clock: int, now: int) -> dict[str, list[int]]:
        deltas = {node.name: Delta(None, {"": 3 if node.name == name else clock}) for node in program.operators}
        return since(program, entry, [f"{name}/open"], deltas, now)

    first = after({}, 5, now=100)
    assert first == after({"since": first}, 7, now=200) == {name: [3, 100]}
