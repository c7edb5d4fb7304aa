"""A session that is passed on before Spark has started: whoever uses it waits, and nobody else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

import rowtime as rt
from rowtime.api.sessions import Sessions
from rowtime.core.errors import Failure, Problem
from rowtime.runtime.engine import Engine
from rowtime.runtime.late_session import LateSession, again_with_spark, is_here, wait_for
from rowtime.runtime.meter import JobTimes
from rowtime.runtime.session import active, derive, page_of

PUMP = """CREATE STREAM s (k BIGINT, v BIGINT);
CREATE STREAM o (k BIGINT, v BIGINT) USING memory;
CREATE PUMP p AS INSERT INTO o SELECT STREAM k, {} FROM s;
"""


class Gate:
    """A session that starts when ``open`` is called, or when somebody waits for it."""

    def __init__(self, start: Callable[[], SparkSession], monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened, self.waits = Event(), 0
        wait = LateSession.wait

        def waiting(session: LateSession) -> None:
            self.waits += 1
            self.opened.set()
            wait(session)

        def begun() -> SparkSession:
            assert self.opened.wait(60)
            return start()

        monkeypatch.setattr(LateSession, "wait", waiting)
        self.session = LateSession(begun)

    def open(self) -> None:
        self.opened.set()
        while not self.session.is_here():
            pass


@pytest.fixture
def gate(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Gate:
    return Gate(lambda: derive(spark), monkeypatch)


@pytest.fixture
def late(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """Pipelines get the session of the gate."""
    monkeypatch.setattr(Sessions, "session_for", lambda *_: gate.session)
    yield gate
    gate.opened.set()


def test_a_session_is_there_for_whoever_uses_it(gate: Gate) -> None:
    assert isinstance(gate.session, SparkSession)
    assert (is_here(gate.session), gate.waits) == (False, 0)
    assert gate.session.range(3).count() == 3
    assert (is_here(gate.session), gate.waits) == (True, 1)
    assert gate.session.conf.get("spark.sql.session.timeZone") == "UTC"
    assert gate.session.sparkContext is gate.session._sc
    with pytest.raises(AttributeError, match="nothing_of_this_name"):
        _ = gate.session.nothing_of_this_name


def test_to_ask_whether_it_is_there_waits_for_nothing(gate: Gate) -> None:
    times = JobTimes(gate.session)
    assert (times.next(), times.since(0), times.running()) == (0, (0, []), False)
    assert page_of(gate.session) is None
    with active(gate.session):
        pass
    assert (is_here(gate.session), gate.waits) == (False, 0)
    gate.open()
    assert times.next() is not None


def test_what_the_start_raises_is_raised_to_every_user(spark: SparkSession) -> None:
    def start() -> SparkSession:
        raise Failure(Problem("R510", "no Java"))

    session = LateSession(start)
    for use in (lambda: session.range(1), lambda: session.sparkContext, lambda: wait_for(session)):
        with pytest.raises(Failure, match="no Java"):
            use()
    assert not is_here(session)


def test_it_is_the_active_session_of_the_threads_that_want_it(gate: Gate, spark: SparkSession) -> None:
    classes: Any = SparkSession._get_j_spark_session_class(spark._jvm)
    seen: list[bool] = []

    def run() -> None:
        with active(gate.session):
            wait_for(gate.session)
            seen.append(classes.getActiveSession().get().equals(gate.session._jsparkSession))
        seen.append(classes.getActiveSession().isDefined())

    thread = Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [True, False]


def test_a_function_that_fails_without_spark_is_called_again_with_it(gate: Gate) -> None:
    calls: list[bool] = []

    def function() -> int:
        calls.append(is_here(gate.session))
        if not calls[-1]:
            raise PySparkRuntimeError(errorClass="SESSION_OR_CONTEXT_NOT_EXISTS", messageParameters={})
        return len(calls)

    assert again_with_spark(gate.session, function) == 2
    assert calls == [False, True]
    with pytest.raises(ZeroDivisionError):
        again_with_spark(gate.session, lambda: 1 // 0)


def test_a_refusal_does_not_wait_for_spark(gate: Gate) -> None:
    def function() -> None:
        raise Failure(Problem("R520", "a file"))

    with pytest.raises(Failure, match="a file"):
        again_with_spark(gate.session, function)
    assert gate.waits == 0


def pipeline(folder: Path, expression: str = "v + 1", rows: int = 3) -> rt.Pipeline:
    sql = rt.Pipeline(home=folder / "home").sql(PUMP.format(expression))
    sql.home.define("s", sql.compile().defines[0].as_json())
    with rt.writer("s", home=folder / "home") as log:
        log.insert([{"k": n % 3, "v": n, "rowtime": n * 1_000_000} for n in range(rows)])
    return sql


def rows_of(query: rt.Query) -> list[tuple[int, int]]:
    table: pa.Table = query.table("o")
    return [*zip(table["k"].to_pylist(), table["v"].to_pylist(), strict=True)]


def test_small_ticks_are_committed_before_spark_is_there(late: Gate, tmp_path: Path) -> None:
    query = pipeline(tmp_path).run_available(tmp_path / "check")
    assert rows_of(query) == [(0, 1), (1, 2), (2, 3)]
    assert (late.waits, is_here(late.session)) == (0, False)


OF_GROUPS = """CREATE STREAM s (k BIGINT, v BIGINT, p DECIMAL(10, 2));
CREATE STREAM o (k BIGINT, v BIGINT) USING memory;
CREATE PUMP p AS INSERT INTO o {};
"""
QUERIES = {
    "SELECT STREAM k, SUM(v) + COUNT(*) AS v FROM s GROUP BY FLOOR(s.ROWTIME TO MINUTE), k HAVING AVG(v) > 1.5": [
        (1, 7), (2, 3),
    ],
    "SELECT STREAM MIN(k) AS k, FIRST(v) + MAX_BY(k, v) AS v FROM s GROUP BY FLOOR(s.ROWTIME TO MINUTE)": [(0, 1)],
    "SELECT STREAM SIZE(COLLECT_LIST(v)) AS k, COUNT(DISTINCT k) AS v FROM s GROUP BY FLOOR(s.ROWTIME TO MINUTE)": [
        (5, 3),
    ],
    "SELECT STREAM k, SUM(v) AS v FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ROWTIME), INTERVAL '1' MINUTE)) "
    "GROUP BY window_start, window_end, k": [(0, 3), (1, 5), (2, 2)],
    "SELECT STREAM k, MAX(v) AS v FROM s GROUP BY SESSION(s.ROWTIME, INTERVAL '1' MINUTE), k": [
        (2, 2), (0, 3), (1, 4),
    ],
    "SELECT STREAM k, SUM(v) OVER (PARTITION BY k ORDER BY s.ROWTIME ROWS 1 PRECEDING) AS v FROM s": [
        (0, 0), (1, 1), (2, 2), (0, 3), (1, 5),
    ],
    "SELECT STREAM k, v FROM s MATCH_RECOGNIZE (PARTITION BY k ORDER BY ROWTIME MEASURES SUM(A.v) AS v "
    "PATTERN (A A) WITHIN INTERVAL '1' HOUR DEFINE A AS A.v >= 0)": [(0, 3), (1, 5)],
    "SELECT STREAM a.k, b.v FROM s OVER (RANGE INTERVAL '1' MINUTE PRECEDING) AS a "
    "JOIN s OVER (RANGE INTERVAL '1' MINUTE PRECEDING) AS b ON a.v = b.k AND a.k = b.k": [
        (0, 0), (1, 1), (2, 2), (0, 3), (1, 4),
    ],
}  # fmt: skip


@pytest.mark.parametrize("query", QUERIES)
def test_a_start_does_not_ask_spark_about_what_the_driver_computes(late: Gate, tmp_path: Path, query: str) -> None:
    sql = rt.Pipeline(home=tmp_path / "home").sql(OF_GROUPS.format(query))
    sql.home.define("s", sql.compile().defines[0].as_json())
    with rt.writer("s", home=tmp_path / "home") as log:
        log.insert([{"k": n % 3, "v": n, "p": None, "rowtime": n * 1_000_000} for n in range(5)])
        log.end()
    assert rows_of(sql.run_available(tmp_path / "check")) == QUERIES[query]
    assert (late.waits, is_here(late.session)) == (0, False)


def test_a_tick_that_needs_spark_waits_for_it(late: Gate, tmp_path: Path) -> None:
    query = pipeline(tmp_path, "CAST(conv(CAST(v AS STRING), 10, 2) AS BIGINT)").run_available(tmp_path / "check")
    assert rows_of(query) == [(0, 0), (1, 1), (2, 10)]
    assert late.waits > 0


def test_a_tick_that_fails_without_spark_is_computed_again_with_it(
    late: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, failed = Engine._step, []

    def fails(engine: Engine, running: Any) -> Any:
        deltas = step(engine, running)
        if not is_here(engine.spark):
            failed.append(running.number)
            raise AssertionError("PySpark's functions need Spark")
        return deltas

    monkeypatch.setattr(Engine, "_step", fails)
    query = pipeline(tmp_path).run_available(tmp_path / "check")
    assert failed == [0]
    assert rows_of(query) == [(0, 1), (1, 2), (2, 3)]


def test_spark_that_does_not_start_stops_a_tick_that_needs_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start() -> SparkSession:
        raise Failure(Problem("R510", "no Java"))

    monkeypatch.setattr(Sessions, "session_for", lambda *_: LateSession(start))
    assert rows_of(pipeline(tmp_path / "a").run_available(tmp_path / "a" / "check")) == [(0, 1), (1, 2), (2, 3)]
    with pytest.raises(Failure, match="no Java"):
        pipeline(tmp_path / "b", "CAST(conv(CAST(v AS STRING), 10, 2) AS BIGINT)").run_available(tmp_path / "b" / "c")


@pytest.mark.parametrize(
    ("more", "late"),
    [("", True), ("CREATE FUNCTION twice(n BIGINT) RETURNS BIGINT RETURN n * 2;", False)],
    ids=["none", "of the script"],
)
def test_a_session_in_which_names_of_functions_are_checked_is_not_late(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str, *, late: bool
) -> None:
    session = LateSession(lambda: derive(spark))
    monkeypatch.setattr("rowtime.runtime.session.late_spark", lambda *_: session)
    monkeypatch.setattr("rowtime.runtime.session.new_spark", lambda *_, **__: spark)
    sql = rt.Pipeline(home=tmp_path / "home").sql(more + PUMP.format("v"))
    assert (sql.session(sql.compile()) is session) == late
