"""Listeners get the events of a run in Spark's classes, with the right figures."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.streaming import StreamingQueryListener

import rowtime as rt
from rowtime.api import query as queries
from rowtime.core.time import to_micros
from rowtime.observe.spark_listeners import as_spark
from rowtime.runtime.progress import timestamp
from rowtime.state.checkpoint import Checkpoint
from tests.observe.conftest import ROWS, Listener, Ran

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_listener_is_told_of_start_ticks_and_end(ran: Ran) -> None:
    kinds = [kind for kind, _ in ran.listener.events]
    assert kinds == ["started", *["progress"] * len(ran.progress), "terminated"]
    ids = {(event.progress.id, event.progress.runId) for kind, event in ran.listener.events if kind == "progress"}
    started, ended = ran.listener.events[0][1], ran.listener.events[-1][1]
    assert ids == {(started.id, started.runId)} == {(ended.id, ended.runId)}
    assert started.name == "query.result"
    assert (ended.exception, ended.errorClassOnException) == (None, None)


def test_progress_has_the_fields_of_spark(ran: Ran) -> None:
    asked = """id runId name timestamp batchId batchDuration numInputRows inputRowsPerSecond processedRowsPerSecond
        durationMs eventTime stateOperators sources sink observedMetrics"""
    for progress in ran.progress:
        assert set(asked.split()) <= set(progress)
        assert set(as_spark(progress)) == set(asked.split()), "Spark's own object takes it"
    found = ran.listener.events[1][1].progress
    assert found.sources[0].endOffset == '{"w": 2}'
    assert found.sink.description == "query.result (console)"


def test_rates_follow_from_rows_and_times(ran: Ran) -> None:
    first, *others = ran.progress
    assert first["inputRowsPerSecond"] is None, "nothing came before it"
    began = [to_micros(progress["timestamp"].removesuffix("Z")) for progress in ran.progress]
    for before, at, progress in zip(began, began[1:], others, strict=False):
        expected = progress["numInputRows"] / ((at - before) / 1e6)
        assert progress["inputRowsPerSecond"] == pytest.approx(expected, rel=0.05)
    for progress in ran.progress:
        seconds = progress["durationMs"]["triggerExecution"] / 1000
        assert progress["processedRowsPerSecond"] == pytest.approx(progress["numInputRows"] / seconds, rel=0.05)
        spent = progress["durationMs"]
        assert abs(sum(spent.values()) - 2 * spent["triggerExecution"]) <= len(spent), "the parts are the whole"


def test_event_times_are_those_of_the_accepted_rows(ran: Ran) -> None:
    assert [progress["numInputRows"] for progress in ran.progress] == [2, 2, 1]
    times = [progress["eventTime"] for progress in ran.progress]
    assert [at["min"] for at in times] == [f"2024-01-01T10:0{at}.000Z" for at in ("0:10", "1:05", "3:20")]
    assert [at["max"] for at in times] == [f"2024-01-01T10:0{at}.000Z" for at in ("1:10", "1:05", "3:20")]
    assert times[0]["avg"] == "2024-01-01T10:00:40.000Z"
    assert times[-1]["watermark"] == timestamp(to_micros(ran.query.bounds["query.result"]))


def test_offsets_continue_where_the_last_tick_ended(ran: Ran) -> None:
    sources = [progress["sources"][0] for progress in ran.progress]
    assert sources[0]["startOffset"] == {}
    assert [source["startOffset"] for source in sources[1:]] == [source["endOffset"] for source in sources[:-1]]
    assert sources[-1]["endOffset"] == {"w": len(ROWS)}


def test_state_equals_the_journal_and_rows_keep_adding_up(ran: Ran) -> None:
    rows: dict[str, int] = {}
    for progress in ran.progress:
        for state in progress["stateOperators"]:
            name = state["operatorName"]
            rows[name] = rows.get(name, 0) + state["numRowsUpdated"] - state["numRowsRemoved"]
            assert rows[name] == state["numRowsTotal"]
    held = ran.query.engine.entry["held"]
    last = {state["operatorName"]: state for state in ran.progress[-1]["stateOperators"]}
    assert {name: state["numRowsTotal"] for name, state in last.items() if state["numRowsTotal"]} == held
    for name, state in last.items():
        paths = [row[0] for row in ran.query.engine.entry["segments"].get(name, ())]
        assert state["memoryUsedBytes"] == sum(ran.sizes[path] for path in paths)
    dropped = sum(state["numRowsDroppedByWatermark"] for p in ran.progress for state in p["stateOperators"])
    assert dropped in (0, 1), "a gate without state is in observedMetrics alone"
    assert sum(progress["observedMetrics"].get("sorted", {}).get("LATE", 0) for progress in ran.progress) == 1


def test_a_listener_that_fails_ends_no_run_and_is_logged(ran: Ran) -> None:
    told = [record.getMessage() for record in ran.records.of("observer failed")]
    assert told[0] == "Broken failed, and the run goes on: always"
    assert len(told) == len(ran.progress) + 2
    assert all(record.exc_info for record in ran.records.of("observer failed"))


def test_a_listener_of_a_query_is_told_until_it_is_removed(ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "IDLE", 0.0)
    first, second, idle = Listener(), Listener(), threading.Event()
    second.onQueryIdle = lambda _: idle.set()  # type: ignore[method-assign]
    pipeline = ran.pipeline
    query = pipeline.start(ran.folder / "check", interval=0.01, listeners=[first])
    query.addListener(second)
    assert idle.wait(30)
    query.removeListener(first)
    told = len(first.events)
    query.stop()
    assert told >= 1
    assert "terminated" not in {kind for kind, _ in first.events[told + 1 :]}
    assert [kind for kind, _ in second.events] == ["terminated"]


class OfSpark(StreamingQueryListener):
    """A listener as users of Spark write it."""

    def __init__(self) -> None:
        self.rows, self.ended = 0, ("", "")

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
        assert event.jobTags == set()

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Spark's name
        self.rows += event.progress.numInputRows
        assert event.progress.stateOperators[0].allUpdatesTimeMs == 0
        assert event.progress.sources[0].latestOffset == "null"

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - Spark's name
        self.ended = (event.exception, event.errorClassOnException)


def test_a_listener_written_for_spark_is_told_of_a_failure(spark: SparkSession, tmp_path: Path) -> None:
    def fails(_batch: Any) -> None:
        raise ValueError("no")

    listener = OfSpark()
    sql = """CREATE STREAM s (n INT);
        INSERT INTO s (ROWTIME, n) VALUES (TIMESTAMP '2024-01-01 10:00:00', 1);
        SELECT STREAM n FROM s"""
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(sql).sink("result", fails).addListener(listener)
    with pytest.raises(rt.Failure, match="R509"):
        pipeline.run_available(tmp_path / "check")
    assert listener.rows == 0, "the tick has not ended"
    assert "ValueError: no" in listener.ended[0]
    assert listener.ended[1] == "R509"
    assert Checkpoint(tmp_path / "check").journal.last() is not None


@pytest.mark.parametrize(
    ("at", "shown"),
    [("2024-01-01", "2024-01-01T00:00:00.000Z"), ("2024-01-01 10:00:00.12345", "2024-01-01T10:00:00.123Z")],
)
def test_an_instant_is_written_like_in_spark(at: str, shown: str) -> None:
    assert timestamp(to_micros(at)) == shown


def test_infinite_bounds_are_written_as_elsewhere() -> None:
    assert (timestamp(2**62), timestamp(-(2**62))) == ("+∞", "-∞")
