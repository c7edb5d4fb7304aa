"""Semi joins with tables and sub-queries in a run: restarts, changed tables, a typed sink, verify and traces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import rowtime as rt
from tests.runtime.test_hints_of_runs import rows, told

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SQL = """
CREATE STREAM sales (item INT, qty INT);
CREATE TABLE items (item INT, price DOUBLE) USING parquet OPTIONS (path '{folder}/items');
CREATE TABLE closed (item INT) USING parquet OPTIONS (path '{folder}/closed');
CREATE STREAM totals (hour TIMESTAMP, c INT, most DECIMAL(10, 2)) USING parquet OPTIONS (path '{folder}/out');
CREATE VIEW known AS SELECT STREAM s.item, s.qty FROM sales AS s LEFT SEMI JOIN items USING (item);
CREATE PUMP p AS INSERT INTO totals
  SELECT STREAM FLOOR(known.ROWTIME TO HOUR) AS hour, COUNT(*) AS c, MAX(qty) AS most FROM known
  WHERE item NOT IN (SELECT item FROM closed WHERE item IS NULL OR item IN (SELECT item FROM closed))
    AND qty < (SELECT MAX(price) FROM items WHERE items.item = known.item)
  GROUP BY FLOOR(known.ROWTIME TO HOUR);
"""
TABLE = "CREATE TABLE names (x STRING, v INT) USING parquet OPTIONS (path '{}');"


def written(folder: Path) -> list[dict[str, Any]]:
    found = pq.read_table(folder / "out").to_pylist()
    return sorted(({"hour": row["hour"].hour, "c": row["c"], "most": str(row["most"])} for row in found),
                  key=lambda row: row["hour"])  # fmt: skip


@pytest.mark.slow
def test_each_start_sees_the_tables_of_the_first(spark: SparkSession, tmp_path: Path) -> None:
    items = spark.createDataFrame([(1, 10.0), (1, 20.0), (2, 5.0), (None, 99.0)], "item INT, price DOUBLE")
    items.write.parquet(str(tmp_path / "items"))
    spark.createDataFrame([(3,)], "item INT").write.parquet(str(tmp_path / "closed"))
    made = rt.Pipeline(spark, home=tmp_path / "home").sql(SQL.format(folder=tmp_path))
    for stream in made.compile().defines:
        made.home.define(stream.name, stream.as_json())
    for hour, sales in enumerate(
        [[(1, 15), (2, 4), (3, 1)], [(1, 25), (1, 19), (2, 9)], [(None, 1), (2, 1)], [(9, 0)]]
    ):
        with rt.writer("sales", home=tmp_path / "home") as log:
            log.insert(
                [
                    {"rowtime": f"2024-01-01 1{hour}:00:0{n}", "item": item, "qty": qty}
                    for n, (item, qty) in enumerate(sales)
                ]
            )
        made.run_available(tmp_path / "check")
        if not hour:  # a later start does not use these rows
            spark.createDataFrame([(1,), (None,)], "item INT").write.mode("overwrite").parquet(str(tmp_path / "closed"))
    expected = [{"hour": 10, "c": 2, "most": "15.00"}, {"hour": 11, "c": 1, "most": "19.00"}]
    expected += [{"hour": 12, "c": 1, "most": "1.00"}]
    assert written(tmp_path) == expected
    found = rt.verify(tmp_path / "check", spark=spark, home=tmp_path / "home")
    assert found.equal, str(found)
    traced = made.run_available(tmp_path / "check").trace({"c": 2})
    read = [item.columns for item in traced.items if item.operator == "sales" and item.kind == "row"]
    assert read == [{"item": 1, "qty": 15}, {"item": 2, "qty": 4}]


@pytest.mark.slow  # six pipelines
def test_several_rows_are_not_one_value(spark: SparkSession, tmp_path: Path) -> None:
    spark.createDataFrame([("1", 1), ("2", 2), ("2", 3), (None, 4), (None, 5)], "x STRING, v INT").write.parquet(
        str(tmp_path / "names")
    )
    table = TABLE.format(tmp_path / "names")
    for value, expected in (("SELECT {} FROM names", [5, 5]), ("SELECT {} FROM names WHERE names.x = s.x", [1, 3])):
        sql = f"{table} SELECT STREAM ({value}) AS v FROM s"
        (taken,) = told(spark, tmp_path, sql.format("v"), "R167", r"SELECT (MAX)\(…\)")
        assert [row["v"] for row in rows(spark, tmp_path, sql.format(f"{taken}(v)"))] == expected
    one = "SELECT v FROM names WHERE names.x = s.x AND v <> 3"
    assert [row["v"] for row in rows(spark, tmp_path, f"{table} SELECT STREAM ({one}) AS v FROM s")] == [1, 2]
    unasked = "SELECT v FROM names WHERE names.x = s.x AND names.x <> '2'"
    assert [row["v"] for row in rows(spark, tmp_path, f"{table} SELECT STREAM ({unasked}) AS v FROM s")] == [1, None]


@pytest.mark.slow  # some pipelines
def test_a_sub_query_that_cannot_be_computed_ends_the_first_start(spark: SparkSession, tmp_path: Path) -> None:
    spark.createDataFrame([("1", 0)], "x STRING, v INT").write.parquet(str(tmp_path / "names"))
    sql = f"{TABLE.format(tmp_path / 'names')} SELECT STREAM x FROM s WHERE n NOT IN (SELECT 1 DIV v FROM names{{}})"
    (taken,) = told(spark, tmp_path, sql.format(""), "R168", r"rows: … AND (v <> 0)")
    assert [row["x"] for row in rows(spark, tmp_path, sql.format(f" WHERE {taken}"))] == ["1", "2"]
    text = sql.format("").replace("1 DIV v", "{}(CONCAT('a', v) AS INT)")
    (taken,) = told(spark, tmp_path, text.format("CAST"), "R168", r"(TRY_CAST)\(v AS INT\)")
    assert rows(spark, tmp_path, text.format(taken)) == []


def test_a_sub_query_reads_a_view_of_the_session(spark: SparkSession, tmp_path: Path) -> None:
    spark.createDataFrame([("2", 1), ("3", None)], "x STRING, v INT").createOrReplaceTempView("seen_before")
    try:
        sql = (
            "SELECT STREAM x FROM s WHERE x {} IN (SELECT x FROM seen_before) AND n > (SELECT MAX(v) FROM seen_before)"
        )
        assert [rows(spark, tmp_path, sql.format(word)) for word in ("", "NOT")] == [[{"x": "2"}], [{"x": "1"}]]
    finally:
        spark.catalog.dropTempView("seen_before")
