"""`processAllAvailable` waits until the present input is processed, as in Spark, and raises errors of the query."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_earlier_input_has_been_delivered(spark: SparkSession, tmp_path: Path) -> None:
    got: list[Any] = []
    made = rt.Pipeline(spark, home=tmp_path / "home").sql("CREATE STREAM s (v INT); SELECT STREAM v FROM s;")
    made.sink("result", lambda batch: got.extend(batch.table().column("v").to_pylist() if batch.count else []))
    query = made.start(tmp_path / "check", interval=0.01)
    try:
        with rt.writer("s", home=tmp_path / "home", writer="w") as writer:
            for number in range(4):
                writer.insert([{"v": number}])
                query.processAllAvailable()
                assert got == [*range(number + 1)]
    finally:
        query.stop()
    query.processAllAvailable()


@pytest.mark.slow
def test_rows_of_a_streaming_dataframe_are_awaited(spark: SparkSession, tmp_path: Path) -> None:
    got: list[Any] = []
    (tmp_path / "in").mkdir()
    rows = spark.readStream.schema("v INT, at TIMESTAMP").json(str(tmp_path / "in"))
    made = rt.Pipeline(spark, home=tmp_path / "home").sql("SELECT STREAM v FROM s;")
    made.source("s", rows, rowtime="at")
    made.sink("result", lambda batch: got.extend(batch.table().column("v").to_pylist() if batch.count else []))
    query = made.start(tmp_path / "check")
    try:
        for number in (1, 2):
            (tmp_path / "in" / f"{number}.json").write_text(f'{{"v": {number}, "at": "2024-01-01T10:00:0{number}Z"}}\n')
            query.processAllAvailable()
            assert got == [*range(1, number + 1)]
    finally:
        query.stop()


def test_the_error_that_ends_the_query_is_raised(spark: SparkSession, tmp_path: Path) -> None:
    def fail(_batch: Any) -> None:
        raise ZeroDivisionError("for the test")

    made = rt.Pipeline(spark, home=tmp_path / "home").sql("CREATE STREAM s (v INT); SELECT STREAM v FROM s;")
    query = made.sink("result", fail).start(tmp_path / "check")
    with rt.writer("s", home=tmp_path / "home", writer="w") as writer:
        writer.insert([{"v": 1}])
    with pytest.raises(Exception, match="for the test"):
        query.processAllAvailable()
