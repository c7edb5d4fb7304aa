"""NaN equals NaN and is greater than every number, and both zeros are equal, as in Spark, on every path of a row."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rowtime.client.parquet_statistics import trusted
from tests.answers import answers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAN = math.nan
OTHER_NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8000000000001))[0]
WINDOW = "OVER (RANGE INTERVAL '9' SECOND PRECEDING)"
QUERIES = {
    "filter": "SELECT STREAM v FROM a WHERE v > 0",
    "nested": "SELECT STREAM (s).x AS v FROM a WHERE (s).x > 0",
    "zero": "SELECT STREAM v FROM a WHERE v = 0.0",
    "joined": f"SELECT STREAM l.n AS n, r.n AS v FROM a {WINDOW} AS l JOIN a {WINDOW} AS r"
    " ON l.v = r.v AND r.v > 0 AND l.n < r.n",
    "over": "SELECT STREAM COUNT(*) OVER (PARTITION BY v) AS v FROM a",
    "distinct": "SELECT STREAM COUNT(DISTINCT v) OVER (ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) AS v FROM a",
    "grouped": "SELECT STREAM v, COUNT(*) AS n FROM a GROUP BY FLOOR(a.ROWTIME TO MINUTE), v",
}


def shown(rows: list[dict[str, Any]]) -> list[str]:
    return [" ".join(str(value) for value in row.values()) for row in rows]


@pytest.mark.slow
def test_nan_passes_a_filter_whatever_it_was_inserted_with_and_is_one_key(spark: SparkSession, tmp_path: Path) -> None:
    parts = [[1.0], [-1.0, NAN], [0.0], [-0.0, OTHER_NAN]]
    values = iter(range(9))
    rows = [[{"n": next(values), "v": v, "s": {"x": v}} for v in part] for part in parts]
    defined = "CREATE STREAM a (n INT, v DOUBLE, s STRUCT<x: DOUBLE>);"
    got = {name: shown(found) for name, found in answers(spark, tmp_path, defined, QUERIES, rows, ticks=True).items()}
    assert got == {
        "filter": ["1.0", "nan", "nan"],
        "nested": ["1.0", "nan", "nan"],
        "zero": ["0.0", "-0.0"],
        "joined": ["2 5"],
        "over": ["1", "1", "1", "1", "2", "2"],
        "distinct": ["1", "2", "3", "4", "4", "4"],
        "grouped": ["-1.0 1", "0.0 2", "1.0 1", "nan 2"],
    }


def test_statistics_of_files_that_others_wrote_hide_no_nan(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    times = pa.array([0, 1_000_000, 2_000_000], pa.timestamp("us", "UTC"))
    fields = {"at": times, "v": pa.array([-1.0, NAN, -2.0]), "s": pa.array([{"x": -1.0}, {"x": NAN}, None])}
    pq.write_table(pa.table(fields), tmp_path / "in" / "one.parquet")
    defined = f"""CREATE STREAM a (n INT);
        CREATE STREAM f (v DOUBLE, s STRUCT<x: DOUBLE>) USING parquet
          OPTIONS (path '{tmp_path / "in"}', rowtime.column 'at');"""
    queries = {
        "plain": "SELECT STREAM v FROM f WHERE v > 0",
        "nested": "SELECT STREAM v FROM f WHERE (s).x > 0 AND f.ROWTIME >= TIMESTAMP '1970-01-01 00:00:00'",
    }
    got = answers(spark, tmp_path, defined, queries, [[{"n": 1}]])
    assert [shown(found) for found in got.values()] == [["nan"], ["nan"]]


def test_columns_of_floating_point_have_statistics_only_if_they_hide_nothing(tmp_path: Path) -> None:
    columns = {
        "n": pa.array([1, 2]),
        "good": pa.array([1.0, None]),
        "bad": pa.array([1.0, NAN]),
        "a.b": pa.array([1.0, 2.0]),
        "s": pa.array([{"x": 1.0, "y": [1]}, None], pa.struct([("x", pa.float32()), ("y", pa.list_(pa.int32()))])),
        "m": pa.array([[("k", 1.0)], []], pa.map_(pa.string(), pa.float64())),
    }
    rows = pa.table(columns)
    for known, expected in ((rows, {"n", "good", "a.b", "s.y.list.element", "m.key_value.key"}), (None, None)):
        pq.write_table(rows, tmp_path / "x.parquet", write_statistics=trusted(rows.schema, known))
        group = pq.read_metadata(tmp_path / "x.parquet").row_group(0)
        parts = [group.column(number) for number in range(group.num_columns)]
        found = {part.path_in_schema for part in parts if part.statistics is not None}
        assert found == (expected or {"n", "s.y.list.element", "m.key_value.key"})
    assert trusted(pa.schema([("n", pa.int64()), ("t", pa.string())])) is True
