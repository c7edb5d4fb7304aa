"""EMIT CHANGES whose select list omits the columns that order the changes: the rows have one order all the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

import rowtime as rt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """
CREATE STREAM s (k STRING, v INT, ev TIMESTAMP) EVENT SHAPE POINT (ev) BOUND EVERY 3 ROWS DELAY INTERVAL '20' SECOND;
CREATE STREAM found (k STRING, v INT, other INT, change STRING) USING parquet OPTIONS (path '{out}');
CREATE VIEW long AS SELECT STREAM k, v FROM ALTER_DURATION(s, INTERVAL '1' MINUTE) AS x;
CREATE VIEW pairs AS SELECT STREAM a.k, a.v, b.v AS other FROM long AS a JOIN long AS b ON a.k = b.k EMIT CHANGES;
CREATE PUMP p AS INSERT INTO found SELECT STREAM k, v, other, change FROM pairs;
"""


def test_the_order_does_not_depend_on_the_place(spark: SparkSession, tmp_path: Path) -> None:
    got: dict[str, list[Any]] = {}
    for way in ("driver", "spark"):
        place = tmp_path / way
        pipeline = rt.Pipeline(spark, home=place / "home", small_ticks=way).sql(SQL.format(out=place / "out"))
        for stream in pipeline.compile().defines:
            if stream.format == "log":
                pipeline.home.define(stream.name, stream.as_json())
        with rt.writer("s", home=place / "home") as log:
            log.insert([{"k": "ab"[n % 2], "v": n, "ev": f"2024-01-01 10:00:{7 * n:02}"} for n in range(8)])
        pipeline.run_available(place / "check")
        files = sorted((place / "out").glob("*.parquet"))
        got[way] = [row for path in files for row in pq.read_table(path).to_pylist()]
    assert len(got["driver"]) > 8
    assert got["driver"] == got["spark"]
