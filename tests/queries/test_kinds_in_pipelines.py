"""Values of types that are no plain ones go through views, orders, state, sinks and restarts unchanged."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.frames.tables import handed_out
from tests.frames.test_arrays import _plain
from tests.ways import in_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEGIN: Final = 1_704_067_200_000_000
TEXTS: Final = ['{"a": 1}', "[1, null]", '"x"', None, "null", "1.50", '"X"', "true"]
VALUES: Final = {
    "collated text": ("STRING COLLATE UNICODE_CI", "s COLLATE UNICODE_CI"),
    "an array of it": ("ARRAY<STRING COLLATE UTF8_LCASE>", "array(s COLLATE UTF8_LCASE, NULL)"),
    "a struct of it": ("STRUCT<x: STRING COLLATE UNICODE_CI, n: BIGINT>", "struct(s COLLATE UNICODE_CI AS x, n)"),
    "a map to it": ("MAP<BIGINT, STRING COLLATE UNICODE_CI>", "map(n, s COLLATE UNICODE_CI)"),
    "an interval": ("INTERVAL DAY TO SECOND", "IF(s IS NULL, NULL, make_dt_interval(CAST(n AS INT), 1, 2, 3.000004))"),
    "an array of intervals": ("ARRAY<INTERVAL DAY TO SECOND>", "array(make_dt_interval(CAST(n AS INT)), NULL)"),
    "a variant": ("VARIANT", "parse_json(s)"),
    "a struct of a variant": ("STRUCT<v: VARIANT>", "named_struct('v', parse_json(s))"),
    "an array of variants": ("ARRAY<VARIANT>", "array(parse_json(s), NULL)"),
    "nested": (
        "ARRAY<STRUCT<a: ARRAY<BIGINT>, m: MAP<STRING, BINARY>>>",
        "array(named_struct('a', array(n, NULL), 'm', map('k', CAST(s AS BINARY))), NULL)",
    ),
}  # fmt: skip
SQL: Final = """
CREATE STREAM a (n BIGINT, s STRING, ev TIMESTAMP) USING parquet OPTIONS (path '{at}/in', rowtime.column 'at');
CREATE VIEW x AS SELECT STREAM n, {text} AS v, ev FROM a;
CREATE VIEW y AS SELECT STREAM ev AS ROWTIME, n, v FROM x ORDER BY ev WITHIN INTERVAL '2' SECOND;
SELECT STREAM n, v FROM y WHERE n >= 0;
"""
FILES: Final = """
CREATE STREAM o (n BIGINT, v {kind}) USING parquet OPTIONS (path '{at}/out', rowtime.column '');
CREATE PUMP p AS INSERT INTO o SELECT STREAM n, v FROM y;
"""


def write(folder: Path, number: int) -> None:
    """A file with half of the rows; a row is out of order."""
    folder.mkdir(exist_ok=True)
    numbers = [0, 2, 1, 3] if number == 0 else [4, 5, 7, 6]
    times = pa.array([BEGIN + n * 1_000_000 for n in numbers], pa.timestamp("us", "UTC"))
    at = pa.array([BEGIN + (4 * number + n) * 1_000_000 for n in range(4)], pa.timestamp("us", "UTC"))
    table = pa.table({"n": numbers, "s": pa.array([TEXTS[n] for n in numbers], pa.string()), "ev": times, "at": at})
    pq.write_table(table, folder / f"{number}.parquet")
    os.utime(folder / f"{number}.parquet", (1_700_000_000 + number,) * 2)


def listed(table: pa.Table) -> list[str]:
    return [repr([_plain(value) for value in row]) for row in zip(*(table[name] for name in ("n", "v")), strict=True)]


@pytest.mark.parametrize("parts", [0, 1, 2])
@pytest.mark.parametrize("name", VALUES)
def test_values_go_through_a_pipeline_unchanged(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, parts: int
) -> None:
    """Two runs, so that rows and values wait in a checkpoint; their types are those of Spark."""
    if parts:
        in_tasks(monkeypatch, parts)
    kind, text = VALUES[name]
    sql = SQL.format(at=tmp_path, text=text)
    files = sql + FILES.format(at=tmp_path, kind=kind)
    sql = sql if rt.check(files) else files
    got: list[pa.Table] = []
    for number in range(2):
        write(tmp_path / "in", number)
        pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(sql)
        pipeline.sink("result", lambda batch: got.append(batch.table()) if batch.count else None)
        ledger = pipeline.run_available(tmp_path / "check", end=number == 1).ledger
        assert all(not {"MALFORMED", "LATE"} & {*counts} for counts in ledger.values()), ledger
    rows = spark.read.parquet(str(tmp_path / "in")).selectExpr("n", f"{text} AS v").orderBy("n")
    expected = handed_out(rows)
    assert len(got) > 1
    assert [row for table in got for row in listed(table)] == listed(expected)
    if sql == files:
        kept = [row for path in sorted((tmp_path / "out").glob("*.parquet")) for row in pq.read_table(path)["v"]]
        assert repr([*map(_plain, kept)]) == repr([*map(_plain, expected["v"])])
    assert rt.verify(tmp_path / "check", spark=spark, home=tmp_path / "home").equal
