"""The first tick copies static tables: small ones by way of the driver, others by Spark's tasks; the rows are equal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from rowtime.runtime import tick

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ROWS = 7
COLUMNS = {
    "k": "CAST(id % 3 AS BIGINT)",
    "at": "timestamp_micros(-1 - id * 86400000000)",
    "here": "TIMESTAMP_NTZ '0001-01-01 00:00:00'",
    "price": "CAST(id / 3 AS DECIMAL(20, 6))",
    "mean": "IF(id = 1, DOUBLE('NaN'), CAST(id AS DOUBLE))",
    "name": "IF(id = 2, NULL, concat('n', id))",
    "part": "named_struct('x', id, 'y', array(id, NULL))",
    "tags": "map('a', id)",
    "raw": "CAST(concat('r', id) AS BINARY)",
    "waits": "CAST(id AS INTERVAL SECOND)",
}
TYPES = (
    "k BIGINT, at TIMESTAMP, here TIMESTAMP_NTZ, price DECIMAL(20, 6), mean DOUBLE, name STRING,"
    " part STRUCT<x: BIGINT, y: ARRAY<BIGINT>>, tags MAP<STRING, BIGINT>, raw BINARY, waits INTERVAL SECOND"
)
SENT: list[dict[str, Any]] = [{"ROWTIME": f"2024-01-01 00:00:0{n}", "k": n % 4} for n in range(6)]


def joined(spark: SparkSession, folder: Path) -> list[dict[str, Any]]:
    """Send and run twice; before the second time, which reads the copy, the table is removed."""
    sql = f"""CREATE STREAM s (k BIGINT);
        CREATE TABLE t ({TYPES}) USING parquet OPTIONS (path '{folder}/t');
        SELECT STREAM t.* FROM s JOIN t ON s.k = t.k;"""
    rows: list[dict[str, Any]] = []
    for part in ([], SENT[:3], SENT[3:]):
        pipeline = rt.Pipeline(spark, home=folder / "home").sql(sql)
        pipeline.sink("result", lambda batch: rows.extend(batch.table().to_pylist() if batch.count else []))
        if part:
            with rt.writer("s", home=folder / "home", writer="w") as writer:
                writer.insert(part)
        pipeline.run_available(folder / "check")
        if part and (folder / "t").exists():
            (folder / "t").rename(folder / "gone")
    return [{name: row[name] for name in COLUMNS} for row in rows]


@pytest.mark.parametrize("most", [0, ROWS - 1, ROWS, 20_000])
def test_a_copy_has_the_rows_and_types_of_the_table(
    spark: SparkSession, tmp_path: Path, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tick, "FEW_ROWS", most)
    table = spark.range(0, ROWS, 1, 3).selectExpr(*(f"{text} AS {name}" for name, text in COLUMNS.items()))
    table.write.parquet(str(tmp_path / "t"))
    of_key = {key: table.where(f"k = {key}").toArrow().to_pylist() for key in range(4)}
    wanted = sorted(repr(row) for sent in SENT for row in of_key[sent["k"]])
    assert sorted(map(repr, joined(spark, tmp_path))) == wanted  # Spark decides in which order it reads files
