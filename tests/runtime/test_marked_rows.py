"""Marks count the rows that pass them in the queries that Spark runs anyway, or report nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rowtime.runtime.marked_rows import PATIENCE, Marks
from rowtime.runtime.meter import JobTimes

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

WHOLE: dict[str, Callable[[DataFrame], Any]] = {
    "collected": lambda rows: rows.toArrow(),
    "grouped": lambda rows: rows.groupBy("k").count().toArrow(),
    "filtered": lambda rows: rows.where("id % 2 = 0").toArrow(),
    "sorted in each task": lambda rows: rows.sortWithinPartitions("id").toArrow(),
    "read twice": lambda rows: (rows.toArrow(), rows.groupBy("k").count().toArrow()),
    "beside itself": lambda rows: rows.union(rows).toArrow(),
}
PART: dict[str, Callable[[DataFrame], Any]] = {
    "the first": lambda rows: rows.limit(3).toArrow(),
    "sorted by range, for which Spark reads rows twice": lambda rows: rows.repartitionByRange(3, "id").toArrow(),
    "never read": lambda rows: rows.schema,
}


def sleeping(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    time.sleep(3)
    yield from batches


def marked(spark: SparkSession, marks: Marks) -> DataFrame:
    rows = spark.range(0, 1_000, 1, 4).selectExpr("id", "id % 10 AS k").where("k > 2")
    return marks.put(spark, "filter", rows)


@pytest.mark.parametrize("use", [*WHOLE.values()], ids=[*WHOLE])
def test_rows_are_counted_in_the_query_that_reads_them(spark: SparkSession, use: Callable[[DataFrame], Any]) -> None:
    marks = Marks()
    use(marked(spark, marks))
    assert marks.counts() == {"filter": 700}


@pytest.mark.parametrize("use", [*PART.values()], ids=[*PART])
def test_no_count_is_reported_for_rows_that_no_query_reads_completely(
    spark: SparkSession, use: Callable[[DataFrame], Any]
) -> None:
    marks = Marks()
    use(marked(spark, marks))
    assert marks.counts() == {}


def test_rows_below_a_limit_are_reported_if_no_result_reached_it(spark: SparkSession) -> None:
    for rows, whole, told in (
        ("limit", True, {"filter": 700}),
        ("ordered", True, {"filter": 700}),
        ("limit", False, {}),
    ):
        marks = Marks()
        made = marked(spark, marks)
        found = (made if rows == "limit" else made.sort("id")).limit(701).toArrow()
        assert found.num_rows == 700
        marks.limited(701, whole=True)
        marks.limited(701, whole=whole)  # of another result of the same tick
        marks.limited(5, whole=False)
        assert marks.counts() == told


def test_marks_above_one_another_are_distinguished(spark: SparkSession) -> None:
    marks = Marks()
    below = marked(spark, marks)
    others = spark.range(5).selectExpr("id AS other")
    above = marks.put(spark, "join", below.join(others, below["k"] >= others["other"]))
    above.groupBy("other").count().toArrow()
    assert marks.counts() == {"filter": 700, "join": 100 * (4 + 5 + 5 + 5 + 5 + 5 + 5)}


@pytest.mark.slow
def test_a_slow_query_of_another_thread_costs_no_time_and_no_count(spark: SparkSession) -> None:
    marks, slow = Marks(), threading.Event()
    marks.put(spark, "first", spark.range(1)).toArrow()  # queries before the first mark are not looked at

    def asleep() -> None:
        slow.set()
        spark.range(0, 1, 1, 1).mapInArrow(sleeping, "id BIGINT").collect()

    other = threading.Thread(target=asleep)
    other.start()
    slow.wait()
    time.sleep(0.5)
    marked(spark, marks).toArrow()
    began = time.monotonic()
    assert marks.counts() == {"first": 1, "filter": 700}
    assert time.monotonic() - began < PATIENCE
    other.join()


def test_counting_needs_no_job_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    jobs, marks = JobTimes(spark), Marks()
    spark.range(0, 1_000, 1, 4).selectExpr("id", "id % 10 AS k").where("k > 2").write.parquet(str(tmp_path / "plain"))
    before = jobs.next()
    spark.range(0, 1_000, 1, 4).selectExpr("id", "id % 10 AS k").where("k > 2").write.parquet(str(tmp_path / "again"))
    without = jobs.next()
    marked(spark, marks).write.parquet(str(tmp_path / "marked"))
    assert marks.counts() == {"filter": 700}
    after = jobs.next()
    assert before is not None and without is not None and after is not None  # noqa: PT018 - for the types
    assert after - without == without - before
