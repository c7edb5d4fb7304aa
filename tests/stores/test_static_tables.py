"""Static tables of files in a bucket: Spark reads them with its own file system."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.core.errors import Failure, Refused
from rowtime.core.stores import place_of
from rowtime.operators.contract import Column
from rowtime.operators.streams.table import Table
from rowtime.runtime.static_tables import rows_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def files(kind: str, url: str) -> None:
    rows, made = pa.table({"k": [1, 2], "name": ["a", "b"]}), io.BytesIO()
    if kind == "parquet":
        pq.write_table(rows, made)
    elif kind == "csv":
        pyarrow.csv.write_csv(rows, made)
    else:
        made.write(b'{"k": 1, "name": "a"}\n{"k": 2, "name": "b"}\n')
    (place_of(url) / f"1.{kind}").upload(made.getvalue())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
def test_a_table_of_files_in_a_bucket_is_read(spark: SparkSession, bucket: str, kind: str) -> None:
    files(kind, f"{bucket}/names")
    given = (("path", f"{bucket}/names"), *((("header", "true"),) if kind == "csv" else ()))
    node = Table("t", "t", (Column("k", "INT"), Column("name", "STRING")), (kind, given))
    assert sorted(map(tuple, rows_of(spark, node, None).collect())) == [(1, "a"), (2, "b")]


@pytest.mark.slow
def test_the_error_for_a_missing_bucket_names_the_table(spark: SparkSession, bucket: str) -> None:
    assert bucket
    node = Table("t", "names", (Column("k", "INT"),), ("parquet", (("path", "s3://no-such-bucket/x"),)))
    with pytest.raises(Failure, match="R581 the table names: the bucket s3://no-such-bucket"):
        rows_of(spark, node, None)


def test_a_directory_in_a_bucket_cannot_be_a_stream(tmp_path: Path) -> None:
    script = """CREATE STREAM s (v INT) USING json OPTIONS (path 's3://bucket/in');
    CREATE STREAM o (v INT); INSERT INTO o SELECT STREAM v FROM s;"""
    made = rt.Pipeline(home=tmp_path / "home").sql(script)
    with pytest.raises(Refused, match=r"R586 .*s3://bucket/in(.|\n)*Delta or Iceberg"):
        made._engine(tmp_path / "check", rt.Limits(), ends=False)
