"""User-defined operators over all events of a window: a function of the sorted list, with one result or several."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEN = dt.datetime(2024, 1, 1, 10, tzinfo=dt.UTC)
EVENTS = "CREATE STREAM jobs (since TIMESTAMP, until TIMESTAMP, parts INT) EVENT SHAPE INTERVAL (since, until);\n"
LISTED = (
    "CREATE VIEW listed AS SELECT STREAM ARRAY_SORT(COLLECT_LIST(STRUCT("
    "LIFETIME_START(j) AS since, LIFETIME_END(j) AS until, parts))) AS jobs "
    "FROM jobs AS j GROUP BY TUMBLE(INTERVAL '1' HOUR);\n"
)
SEVERAL = (
    "SELECT STREAM span.first AS first, span.last AS last, span.parts AS parts "
    "FROM listed AS l LATERAL VIEW EXPLODE(busy(l.ROWTIME, jobs)) AS span"
)
ONE = "SELECT STREAM idle(l.ROWTIME, jobs) AS idle FROM listed AS l"
# start and end in minutes after ten, and the number of parts
JOBS = [(0, 10, 1), (5, 20, 2), (30, 40, 4), (30, 40, 4), (50, 70, 8), (90, 95, 16)]
BUSY = [(0, 20, 3), (30, 40, 8), (50, 60, 8)], [(60, 70, 8), (90, 95, 16)]  # the same, cut into hours
IDLE = [20, 45]  # running minutes of each hour


def _minute(at: dt.datetime, start: dt.datetime = TEN) -> int:
    return round((at.replace(tzinfo=None) - start.replace(tzinfo=None)).total_seconds() / 60)


def _pipeline(spark: SparkSession, home: Path, query: str, got: list[dict[str, Any]]) -> rt.Pipeline:
    def busy(start: dt.datetime, jobs: list[Any]) -> list[tuple[int, int, int]]:
        """When any machine ran in the window, and how many parts it made."""
        spans: list[tuple[int, int, int]] = []
        for since, until, parts in jobs:
            first, last = (round((at - start).total_seconds() / 60) for at in (since, until))
            if spans and first <= spans[-1][1]:
                first, before, known = spans.pop()
                last, parts = max(last, before), parts + known  # noqa: PLW2901 - one span of both
            spans.append((first, last, parts))
        return spans

    def idle(start: dt.datetime, jobs: list[Any]) -> int:
        return 60 - sum(last - first for first, last, _ in busy(start, jobs))

    pipeline = rt.Pipeline(spark, home=home).sql(EVENTS + LISTED + query)
    pipeline.python_function(busy, "ARRAY<STRUCT<first INT, last INT, parts INT>>", "busy")
    pipeline.python_function(idle, "INT", "idle")
    return pipeline.sink("result", lambda batch: got.extend(batch.table().to_pylist() if batch.count else []))


def _run(spark: SparkSession, tmp_path: Path, query: str, order: list[int], cut: int) -> list[dict[str, Any]]:
    got: list[dict[str, Any]] = []
    _pipeline(spark, tmp_path / "home", query, got).run_available(tmp_path / "check")
    for begin in range(0, len(order), cut):
        with rt.writer("jobs", home=tmp_path / "home", writer="w") as writer:
            for number in order[begin : begin + cut]:
                first, last, parts = JOBS[number]
                since, until = (TEN + dt.timedelta(minutes=minute) for minute in (first, last))
                writer.insert([{"since": since, "until": until, "parts": parts}])
            if begin + cut >= len(order):
                writer.set_rowtime_bound(TEN + dt.timedelta(hours=2))
        _pipeline(spark, tmp_path / "home", query, got).run_available(tmp_path / "check")
    return got


@pytest.mark.parametrize(
    ("order", "cut"), [pytest.param([0, 1, 2, 3, 4, 5], 6, marks=pytest.mark.slow), ([5, 2, 4, 1, 0, 3], 2)]
)
def test_several_rows_are_made_of_the_events_of_a_window(
    spark: SparkSession, tmp_path: Path, order: list[int], cut: int
) -> None:
    got = _run(spark, tmp_path, SEVERAL, order, cut)
    found = [[tuple(row[n] for n in ("first", "last", "parts")) for row in got if _minute(row["start"]) == at]
             for at in (0, 60)]  # fmt: skip
    hour = [BUSY[0], [(first - 60, last - 60, parts) for first, last, parts in BUSY[1]]]
    assert [sorted(rows) for rows in found] == hour
    assert all(row["stop"] - row["start"] == dt.timedelta(hours=1) for row in got)


def test_the_example_of_the_page_is_the_operator_that_is_tried_here() -> None:
    text = (Path(__file__).parents[2] / "docs/functions.md").read_text(encoding="utf-8")
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "def busy" in block]
    names: dict[str, Any] = {"rt": rt}
    exec(code.partition("pipeline.sink(")[0], names)  # noqa: S102 - our own page, without the run
    assert names["pipeline"].compile().problems == ()
    jobs = [(TEN + dt.timedelta(minutes=a), TEN + dt.timedelta(minutes=b), parts) for a, b, parts in JOBS[:4]]
    assert names["busy"](TEN, jobs) == BUSY[0][:2]


@pytest.mark.slow
def test_one_row_is_made_of_the_events_of_a_window(spark: SparkSession, tmp_path: Path) -> None:
    assert [row["idle"] for row in _run(spark, tmp_path, ONE, [3, 5, 0, 1, 4, 2], 3)] == IDLE


@pytest.mark.slow  # many ticks
def test_changed_results_are_retracted(spark: SparkSession, tmp_path: Path) -> None:
    got = _run(spark, tmp_path, f"{SEVERAL} EMIT CHANGES", [5, 2, 4, 1, 0, 3], 2)
    left: Counter[tuple[int, ...]] = Counter()
    for row in got:
        left[_minute(row["start"]), row["first"], row["last"], row["parts"]] += 1 if row["change"] == "insert" else -1
    wanted = [(at, first - at, last - at, parts)
              for at, rows in zip((0, 60), BUSY, strict=True) for first, last, parts in rows]  # fmt: skip
    assert +left == Counter(wanted)
    assert any(row["change"] == "retract" for row in got)
