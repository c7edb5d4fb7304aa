"""Sub-queries in HAVING, ON, OVER and over groups: the results are Spark's for the same text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

START = datetime(2024, 1, 1, 10, tzinfo=UTC)
ROWS = [(START + timedelta(minutes=7 * n), n % 4 if n % 5 else None, n * n % 11) for n in range(60)]
ITEMS = [(0, 3), (1, 5), (2, 5), (2, 40), (None, 7)]
HOUR = "DATE_TRUNC('HOUR', s.ROWTIME)"
QUERIES = {
    "a value in HAVING": f"""SELECT STREAM {HOUR} AS h, COUNT(*) AS n, SUM(qty) AS q FROM s GROUP BY {HOUR}
        HAVING SUM(qty) > (SELECT MAX(least) FROM items) AND COUNT(*) > 3""",
    "IN of a key in HAVING": f"""SELECT STREAM {HOUR} AS h, item, COUNT(*) AS n FROM s GROUP BY {HOUR}, item
        HAVING item IN (SELECT item FROM items WHERE least > 3)""",
    "NOT IN of an aggregate": f"""SELECT STREAM {HOUR} AS h, MAX(qty) AS most FROM s GROUP BY {HOUR}
        HAVING MAX(qty) NOT IN (SELECT least FROM items) OR COUNT(*) > (SELECT COUNT(*) FROM items)""",
    "EXISTS about a key and an aggregate": f"""SELECT STREAM {HOUR} AS h, s.item, SUM(s.qty) AS q FROM s
        GROUP BY {HOUR}, s.item
        HAVING EXISTS (SELECT 1 FROM items WHERE items.item = s.item AND items.least < SUM(s.qty))""",
    "a value of the key in the select list": f"""SELECT STREAM {HOUR} AS h, s.item AS of,
        SUM(qty) - (SELECT MAX(least) FROM items WHERE items.item = s.item) AS over FROM s GROUP BY {HOUR}, s.item""",
    "both, and WHERE": f"""SELECT STREAM {HOUR} AS h, COUNT(*) * (SELECT MIN(least) FROM items) AS n FROM s
        WHERE item IN (SELECT item FROM items) GROUP BY {HOUR} HAVING COUNT(*) < (SELECT MAX(least) FROM items)""",
    "ON of an inner join": """SELECT STREAM s.qty, i.least FROM s JOIN items AS i ON s.item = i.item
        AND i.least IN (SELECT least FROM items WHERE item = 1) AND s.qty > (SELECT MIN(least) FROM items)""",
    "an argument of a window": """SELECT STREAM qty, SUM(qty + (SELECT MAX(least) FROM items WHERE items.item = s.item))
        OVER (ORDER BY s.ROWTIME ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) AS x FROM s""",
    "a key of a window": """SELECT STREAM qty, COUNT(*) OVER (PARTITION BY qty > (SELECT MIN(least) FROM items)
        ORDER BY s.ROWTIME RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW) AS n FROM s""",
}


def of_spark(query: str) -> str:
    """The text for Spark, which needs a sub-query about a key inside of an aggregate."""
    of_key = "(SELECT MAX(least) FROM items WHERE items.item = s.item) AS over"
    return query.replace("STREAM", "").replace(of_key, f"FIRST({of_key.removesuffix(' AS over')}) AS over")


@pytest.mark.slow  # two starts and Spark itself for each
@pytest.mark.parametrize("name", QUERIES)
def test_the_answer_equals_that_of_spark(name: str, spark: SparkSession, tmp_path: Path) -> None:
    spark.createDataFrame(ITEMS, "item INT, least INT").write.parquet(str(tmp_path / "items"))
    script = f"""CREATE STREAM s (item INT, qty INT);
    CREATE TABLE items (item INT, least INT) USING parquet OPTIONS (path '{tmp_path}/items');
    """
    home, got = tmp_path / "home", list[dict[str, Any]]()
    made = rt.Pipeline(spark, home=home).sql(script + QUERIES[name])
    made.sink("result", lambda batch: got.extend(batch.table().to_pylist() if batch.count else []))
    for stream in made.compile().defines:
        made.home.define(stream.name, stream.as_json())
    for part in (ROWS[:23], ROWS[23:]):
        with rt.writer("s", home=home) as log:
            log.insert([{"rowtime": at, "item": item, "qty": qty} for at, item, qty in part])
            if part[-1] is ROWS[-1]:
                log.end()
        made.run_available(tmp_path / "check")
    spark.createDataFrame(ITEMS, "item INT, least INT").createOrReplaceTempView("items")
    spark.createDataFrame(ROWS, "ROWTIME TIMESTAMP, item INT, qty INT").createOrReplaceTempView("s")
    try:
        expected = [tuple(row) for row in spark.sql(of_spark(QUERIES[name])).collect()]
    finally:
        for view in ("items", "s"):
            spark.catalog.dropTempView(view)
    found = [tuple(_plain(value) for key, value in row.items() if key != "rowtime") for row in got]
    assert sorted(map(repr, found)) == sorted(map(repr, expected))
    assert found, "the case says nothing"
    assert rt.verify(tmp_path / "check", spark=spark, home=home).equal


def _plain(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value
