"""Event time and panes from Python: the same plans as in SQL, and Python functions over panes."""

from __future__ import annotations

import statistics
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from rowtime.api.relations import interval
from rowtime.plan.program import compile_script
from tests import streams_queries as queries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECOND = timedelta(seconds=1)
NO_GAP = timedelta(0)
COLUMNS = {"n": "INT", "t": "TIMESTAMP", "v": "STRING", "part": "INT"}
LISTS = {"times": "COLLECT_LIST(unix_micros(t))", "vals": "COLLECT_LIST(v)"}
FACTS = {
    "start": "unix_micros(PANE_START)", "end": "unix_micros(PANE_END)", "timing": "PANE_TIMING", "index": "PANE_INDEX",
}  # fmt: skip


def _stream(tmp_path: Path) -> tuple[rt.Pipeline, rt.Relation]:
    made = rt.Pipeline(home=tmp_path)
    return made, made.stream("s", COLUMNS, event_time=rt.EventTime("t", mode="MANUAL", minimum_gap=NO_GAP))


def _plan(sql: str) -> dict[str, Any]:
    program = compile_script(sql)
    assert program.problems == ()
    return dict(program.described().operators)


@pytest.mark.parametrize("name", queries.SETTINGS)
def test_the_cases_have_the_same_plan_from_python(name: str, tmp_path: Path) -> None:
    spans = {word: SECOND * given for word, given in queries.SETTINGS[name].items()}
    age = spans.pop("age", None)
    made, s = _stream(tmp_path)
    keys = [queries.KEYS[name]] if name in queries.KEYS else []
    s.panes("t", discard_age=age, keys=keys, **spans).aggregate(**FACTS, **LISTS).to(print)  # type: ignore[arg-type]
    assert made.compile().described().operators == _plan(queries.PANES[name])


def test_generated_bounds_buffers_and_the_least_of_inputs_have_the_same_plans(tmp_path: Path) -> None:
    made = rt.Pipeline(home=tmp_path)
    lagged = rt.EventTime("t", lag=SECOND, minimum_gap=0.2 * SECOND)
    panes = made.stream("s", COLUMNS, event_time=lagged).panes("t", duration=SECOND)
    panes.aggregate(e="PANE_END", c="COUNT(*)").to()
    assert made.compile().described().operators == _plan(queries.GENERATED)

    made, s = _stream(tmp_path)
    sent = s.view("sent", event_time=rt.EventTime("t", minimum_gap=NO_GAP))
    sent.panes("t", duration=SECOND).aggregate(e="PANE_END", c="COUNT(*)").to()
    assert made.compile().described().operators == _plan(queries.BUFFERED)

    made = rt.Pipeline(home=tmp_path)
    s0, s1 = (made.stream(name, {"n": "INT"}) for name in ("s0", "s1"))
    s0.select("n").union_all(s1.select("n")).to()
    # A query over a query is the inner query with a projection on top.
    assert {"s0", "s1", "query.union"} <= set(made.compile().described().operators)


def test_durations_and_names_are_written_as_sql_reads_them() -> None:
    assert [interval(SECOND * n) for n in (10, 0.25, -90)] == [
        "INTERVAL '10' SECOND", "INTERVAL '0.25' SECOND", "INTERVAL '-90' SECOND",
    ]  # fmt: skip
    told = rt.EventTime("ms", "SECONDS", lag=SECOND, mode="INPUT_WATERMARK")
    assert str(told) == "EVENT TIME (ms, RESOLUTION SECONDS, LAG INTERVAL '1' SECOND, MODE INPUT_WATERMARK)"
    with pytest.raises(rt.Refused, match="R101"):
        rt.EventTime("ms", "WEEKS").settings()


@pytest.mark.slow
def test_a_python_function_aggregates_panes_and_a_bound_is_set_from_python(spark: SparkSession, tmp_path: Path) -> None:
    found: list[dict[str, Any]] = []

    def take(batch: rt.Batch) -> None:
        found.extend(batch.table().to_pylist() if batch.count else [])

    def pipeline() -> rt.Pipeline:
        made = rt.Pipeline(spark, home=tmp_path / "home")
        s = made.stream("a", {"at": "TIMESTAMP", "delay": "INT"})
        view = s.where("delay >= 0").view("v", event_time=rt.EventTime("at", mode="MANUAL"))
        median = rt.Folded(statistics.median, "delay", "DOUBLE")
        panes = view.panes("at", duration=timedelta(hours=1), discard_age=timedelta(hours=1))
        panes.aggregate(timing="PANE_TIMING", median=median, n="COUNT(*)").to(take)
        return made

    def send(*rows: tuple[str, int]) -> rt.Query:
        with rt.writer("a", home=tmp_path / "home", writer="w") as writer:
            writer.insert([{"at": f"2024-01-01 {at}:00", "delay": delay} for at, delay in rows])
        return pipeline().run_available(tmp_path / "check")

    pipeline().run_available(tmp_path / "check")
    query = send(("10:10", 1), ("10:20", 2), ("10:30", 9), ("10:40", -1))
    query.set_watermark("v", "2024-01-01 11:00:00")
    query = send(("10:50", 3))
    query.set_watermark("v", "2024-01-01 11:00:01")
    pipeline().run_available(tmp_path / "check")
    shown = [(row["timing"], row["median"], row["n"]) for row in found]
    assert shown == [("COMPLETE", 2.0, 3), ("LATE", 2.5, 4)]
