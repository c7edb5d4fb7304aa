"""The state of operators does not grow with the stream: rows that are no longer needed are dropped."""

from __future__ import annotations

import copy
import json
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rowtime.plan.program import compile_script
from rowtime.runtime.session import derive
from rowtime.testing import runner
from rowtime.testing.transcripts import ScriptItem, Transcript

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STREAM = "CREATE STREAM s (k INT, o BIGINT ASCENDING, l BIGINT ASCENDING WITHIN 2 ROWS); "
BY_TIME = """
SELECT STREAM k, COUNT(*) AS c FROM s GROUP BY FLOOR(s.ROWTIME TO SECOND), k;
SELECT STREAM DISTINCT STEP(s.ROWTIME BY INTERVAL '2' SECOND) AS at, k FROM s;
SELECT STREAM k FROM s ORDER BY STEP(s.ROWTIME BY INTERVAL '2' SECOND), k;
"""
BY_VALUE = """
SELECT STREAM l DIV 4 AS g, MEDIAN(k) AS m FROM s GROUP BY l DIV 4;
SELECT STREAM k FROM s ORDER BY o DIV 4, k DESC;
"""
ORIGIN = 1_704_103_200_000_000
ROWS, TICKS = 48, 6


@pytest.mark.slow
@pytest.mark.parametrize("sql", [BY_VALUE, BY_TIME], ids=["by value", "by time"])
def test_state_does_not_grow_with_the_stream(spark: SparkSession, sql: str) -> None:
    items = tuple(
        ScriptItem(n, "s", "main", {"rowtime": ORIGIN + n * 250_000, "k": n % 3, "o": n, "l": n - n % 2}, None)
        for n in range(1, ROWS + 1)
    )
    held, sizes = _run(spark, Transcript("state", "state", STREAM + sql, items, (), "exact", frozenset()))
    half = TICKS // 2
    for name in {name for tick in held for name in tick}:
        kept = [tick.get(name, 0) for tick in held]
        assert max(kept[half:]) <= max(kept[:half]) + 1, f"{name} keeps {kept}"
    assert sum(held[-1].values()) < ROWS
    assert max(sizes[half:]) <= max(sizes[:half]) * 1.1, f"the entries of the journal grow: {sizes}"


def _run(spark: SparkSession, case: Transcript, ticks: int = TICKS) -> tuple[list[dict[str, int]], list[int]]:
    """The number of rows that each operator keeps after each tick, and the size of the operators' scalars."""
    entries = _entries(spark, case, ticks)
    return [entry["held"] for entry in entries], [len(json.dumps(entry["control"])) for entry in entries]


def _entries(spark: SparkSession, case: Transcript, ticks: int = TICKS) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = []
    folder = Path(tempfile.mkdtemp(prefix="rowtime-test-"))
    outcome = runner.Outcome()
    try:
        engine = runner._engine(derive(spark), compile_script(case.sql), case, folder, outcome)
        for tick in range(1, ticks + 1):
            for source in engine.sources.values():
                found: Any = source
                found.upto = ROWS * tick // ticks
            outcome.ends.append(tick)
            engine.tick()
            entries.append(copy.deepcopy(engine.entry))
        engine.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return entries


def test_a_join_writes_only_the_rows_that_a_later_tick_may_need(spark: SparkSession) -> None:
    """A tick has eight rows of two seconds; a later row may match those of the last second, with its two ends."""
    items = tuple(ScriptItem(n, "s", "main", {"rowtime": ORIGIN + n * 250_000, "k": n % 3}, None) for n in range(1, 49))
    reach = "b.ROWTIME BETWEEN a.ROWTIME AND a.ROWTIME + INTERVAL 1 SECOND"
    sql = f"CREATE STREAM s (k INT); SELECT STREAM a.k FROM s AS a JOIN s AS b ON a.k = b.k AND {reach}"
    written: dict[str, dict[str, int]] = {}
    for entry in _entries(spark, Transcript("join", "join", sql, items, (), "exact", frozenset())):
        for key, segments in entry["segments"].items():
            written.setdefault(key.rsplit("/", 1)[1], {}).update({segment[0]: segment[1] for segment in segments})
    assert {side: set(of.values()) for side, of in written.items()} == {"left": {5}, "right": {1}}


@pytest.mark.slow
@pytest.mark.parametrize("emit", ["", " EMIT CHANGES"], ids=["final", "changes"])
def test_windows_of_starts_keep_only_the_last_ones(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, emit: str
) -> None:
    """A bulk of events has two starts of two keys, and the versions that they replace; there are log₂(ticks) bulks."""
    monkeypatch.setattr("rowtime.state.segments.FANOUT", 2)
    items = tuple(ScriptItem(n, "s", "main", {"at": ORIGIN + n, "k": n % 2}, None) for n in range(1, ROWS + 1))
    declared = "CREATE STREAM s (at TIMESTAMP, k INT) EVENT SHAPE POINT (at) BOUND EVERY 1 ROWS; "
    sql = f"{declared}SELECT STREAM k, COUNT(*) AS c FROM s GROUP BY COUNT_WINDOW(3), k{emit}"
    held, _ = _run(spark, Transcript("starts", "starts", sql, items, (), "exact", frozenset()), 2 * TICKS)
    kept = [sum(tick.values()) for tick in held]
    assert max(kept) <= 2 * 4 * (2 * TICKS).bit_length(), f"what is kept grows: {kept}"


def test_spark_keeps_no_listing_of_the_files_that_a_tick_has_read(spark: SparkSession) -> None:
    caches = spark._jvm.org.apache.spark.sql.execution.datasources.FileStatusCache
    ours, theirs = (caches.getOrCreate(one._jsparkSession).toString() for one in (derive(spark), spark.newSession()))
    assert "NoopCache" in ours
    assert "NoopCache" not in theirs, "what Spark keeps has another name"
