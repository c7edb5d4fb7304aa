"""A Python function of a list of values is an aggregate: in groups, in windows, and over unordered events."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
ROWS = [(0, 5), (10, 1), (20, 9), (70, 4), (80, 4), (150, 7)]  # minutes and values
STREAM = "CREATE STREAM s (v BIGINT);\n"
EVENTS = "CREATE STREAM s (since TIMESTAMP, until TIMESTAMP, v BIGINT) EVENT SHAPE INTERVAL (since, until);\n"
EACH = {
    "groups": (STREAM, "SELECT STREAM {} AS d FROM s GROUP BY FLOOR(s.ROWTIME TO HOUR)", [[5, 1, 9], [4, 4]]),
    "hops": (
        STREAM,
        "SELECT STREAM {} AS d FROM s GROUP BY HOP(s.ROWTIME, INTERVAL '1' HOUR, INTERVAL '2' HOUR)",
        [[5, 1, 9], [5, 1, 9, 4, 4]],
    ),
    "events": (
        EVENTS,
        "SELECT STREAM {} AS d FROM s GROUP BY TUMBLE(INTERVAL '1' HOUR)",
        [[1, 5, 9], [4]],
    ),
}  # fmt: skip


def spread(values: list[int]) -> int:
    return values[-1] * 100 + max(values) - min(values)


@pytest.mark.slow
@pytest.mark.sampled(4)
@pytest.mark.parametrize("cut", [2, 6])
@pytest.mark.parametrize("kind", EACH)
def test_the_list_has_the_values_in_stream_order_however_rows_are_cut(
    spark: SparkSession, tmp_path: Path, kind: str, cut: int
) -> None:
    stream, query, groups = EACH[kind]
    values = "ARRAY_SORT(COLLECT_SET(v))" if kind == "events" else "COLLECT_LIST(v)"
    got: list[dict[str, Any]] = []

    def made() -> rt.Pipeline:
        pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(stream + query.format(f"spread({values})"))
        # two functions with the same name in different modules
        pipeline.python_function(lambda vs: vs[-1] * 100 + max(vs) - min(vs), "BIGINT", "spread")
        return pipeline.sink("result", lambda batch: got.extend(batch.table().to_pylist() if batch.count else []))

    made().run_available(tmp_path / "check")
    for begin in range(0, len(ROWS), cut):
        with rt.writer("s", home=tmp_path / "home", writer="w") as writer:
            for minute, v in ROWS[begin : begin + cut]:
                at = START + dt.timedelta(minutes=minute)
                if kind == "events":  # a stream of starts that promises no bound
                    writer.insert([{"since": at, "until": at + dt.timedelta(seconds=1), "v": v}])
                    writer.set_rowtime_bound(at)
                else:
                    writer.insert([{"rowtime": at, "v": v}])
        made().run_available(tmp_path / "check")
    assert [row["d"] for row in got][: len(groups)] == [spread(values) for values in groups]
    assert len(got) == len(groups)
