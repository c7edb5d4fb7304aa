"""Results of single features of the SQL, row by row."""

from __future__ import annotations

import datetime as dt
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import rowtime as rt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(4)

HOUR = "GROUP BY FLOOR(a.ROWTIME TO HOUR)"


def run(
    spark: SparkSession, folder: Path, sql: str, rows: list[dict[str, Any]], *, cut: int = 0
) -> list[dict[str, Any]]:
    """The rows of the last query of ``sql`` over stream ``a``, sent in two parts if ``cut``."""
    got: list[dict[str, Any]] = []
    pipeline = rt.Pipeline(spark, home=folder / "home").sql(sql)
    pipeline.sink("result", lambda batch: got.extend(batch.table().to_pylist() if batch.count else []))
    for stream in pipeline.compile().defines:
        pipeline.home.define(stream.name, stream.as_json(), replace=True)
    timed = [{"rowtime": f"2024-01-01 10:00:{number:02}", **row} for number, row in enumerate(rows)]
    for part in (timed[:cut], timed[cut:]):
        with rt.writer("a", home=folder / "home") as log:
            log.insert(part)
        pipeline.run_available(folder / "check")
    with rt.writer("a", home=folder / "home") as log:
        log.set_rowtime_bound("2024-01-02 00:00:00")
    pipeline.run_available(folder / "check")
    return got


def test_collecting_aggregates_use_stream_order(spark: SparkSession, tmp_path: Path) -> None:
    sql = f"""CREATE STREAM a (v STRING, f BOOLEAN);
        SELECT STREAM LISTAGG(v, '-') AS l, STRING_AGG(v) FILTER (WHERE f) AS s, COLLECT_SET(v) AS c, MODE(v) AS m,
          LISTAGG(DISTINCT v, '-') AS d, ARRAY_AGG(DISTINCT v) AS e, LISTAGG(v, '') WITHIN GROUP (ORDER BY v DESC) AS o,
          EVERY(f) AS every, SOME(f) AS some, LISTAGG(v) FILTER (WHERE v > 'x') AS nothing FROM a {HOUR}"""
    values = ["c", "a", None, "b", "a", "c", "d"]
    rows = [{"v": v, "f": n % 2 == 0} for n, v in enumerate(values)]
    [row] = run(spark, tmp_path, sql, rows, cut=4)
    del row["rowtime"]
    assert row == {
        "l": "c-a-b-a-c-d", "s": "cad", "c": ["c", "a", "b", "d"], "m": "a", "d": "c-a-b-d", "e": ["c", "a", "b", "d"],
        "o": "dccbaa", "every": False, "some": True, "nothing": None,
    }  # fmt: skip


def test_an_insert_with_a_list_of_columns_goes_by_the_list(spark: SparkSession, tmp_path: Path) -> None:
    sql = """CREATE STREAM a (v INT, w STRING); CREATE STREAM b (p STRING, q INT, r DOUBLE);
        CREATE PUMP f AS INSERT INTO b (q, p) SELECT STREAM v, w FROM a; SELECT STREAM * FROM b"""
    [row] = run(spark, tmp_path, sql, [{"v": 7, "w": "x"}])
    assert {name: row[name] for name in "pqr"} == {"p": "x", "q": 7, "r": None}


FLOATS = ("NaN", "nan", "Infinity", "-inf", "+INF", " 1.5 ", ".5", "5.", "-1e3", "1e400", "1_0", "+nan", "x", "")
"""Texts, of which Spark casts the first ones to DOUBLE."""


def test_values_may_be_texts_that_spark_casts_to_double(spark: SparkSession, tmp_path: Path) -> None:
    """With Spark's own casts as the oracle; NaN is compared as text."""
    cast = ", ".join(f"try_cast('{text}' AS DOUBLE)" for text in FLOATS)
    expected = list(spark.sql(f"SELECT {cast}").collect()[0])
    good = [text for text, value in zip(FLOATS, expected, strict=True) if value is not None]
    assert good == list(FLOATS[:10])
    values = ", ".join(f"(DOUBLE('{text}'), CAST('{text}' AS FLOAT), - DOUBLE('{text}'))" for text in good)
    sql = f"CREATE STREAM a (v DOUBLE, f FLOAT, m DOUBLE); INSERT INTO a VALUES {values}; SELECT STREAM v, f, m FROM a"
    got: list[dict[str, Any]] = []
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(f"{sql}; ALTER STREAM a END")
    pipeline.sink("result", lambda batch: got.extend(batch.table().to_pylist() if batch.count else []))
    pipeline.run_available(tmp_path / "check")
    given = [value for value in expected if value is not None]
    assert [str(row["v"]) for row in got] == [str(row["f"]) for row in got] == list(map(str, given))
    assert [str(row["m"]) for row in got] == [str(-value) for value in given]
    for text in FLOATS[10:]:
        bad = f"CREATE STREAM b (v DOUBLE); INSERT INTO b VALUES (DOUBLE('{text}')); SELECT STREAM v FROM b"
        with pytest.raises(rt.Refused, match="R206 "):
            rt.Pipeline(spark, home=tmp_path / "bad").sql(bad).run_available(tmp_path / "checks" / f"{len(text)}")


def test_the_time_of_the_query_is_that_of_its_first_start(spark: SparkSession, tmp_path: Path) -> None:
    sql = "CREATE STREAM a (v INT); SELECT STREAM CURRENT_TIMESTAMP AS n, NOW() AS m, CURRENT_DATE AS d FROM a"
    before = dt.datetime.now(dt.UTC)
    rows = run(spark, tmp_path, sql, [{"v": n} for n in range(4)], cut=2)
    assert len(rows) == 4
    assert len({row["n"] for row in rows}) == 1
    assert all(row["n"] == row["m"] and row["d"] == row["n"].date() for row in rows)
    assert before <= rows[0]["n"] <= dt.datetime.now(dt.UTC)


def test_a_dropped_stream_starts_anew_once(spark: SparkSession, tmp_path: Path) -> None:
    old = "CREATE STREAM a (v INT); SELECT STREAM v FROM a"
    assert len(run(spark, tmp_path, old, [{"v": 1}])) == 1
    got: list[int] = []
    pipeline = rt.Pipeline(spark, home=tmp_path / "home")
    pipeline.sql(
        "DROP STREAM a; CREATE STREAM a (v INT); INSERT INTO a (ROWTIME, v) VALUES (TIMESTAMP '2024-01-01', 2);"
    )
    pipeline.sql("SELECT STREAM v FROM a")
    pipeline.sink("result", lambda batch: got.extend(batch.table()["v"].to_pylist() if batch.count else []))
    pipeline.run_available(tmp_path / "anew")
    pipeline.run_available(tmp_path / "anew")
    assert got == [2]
    assert pipeline.home.definition("a") is not None


def test_a_row_that_breaks_its_declaration_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    lines = ['{"v": 1, "w": "a"}', '{"v": null, "w": "b"}', '{"v": -1, "w": "c"}', '{"v": "x", "w": "d"}', '{"v": 5}']
    (tmp_path / "in" / "1.json").write_text("\n".join(lines))
    got: list[dict[str, Any]] = []
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(f"""
        CREATE STREAM a (v INT NOT NULL CHECK (v > 0), w STRING CHECK (w <> 'z'))
          USING json OPTIONS (path '{tmp_path}/in');
        SELECT STREAM v, w FROM a""")
    pipeline.sink("result", lambda batch: got.extend(batch.table().to_pylist() if batch.count else []))
    query = pipeline.run_available(tmp_path / "check", end=True)
    assert [(row["v"], row["w"]) for row in got] == [(1, "a"), (5, None)]
    assert query.ledger["a"] == {"in": 5, "accepted": 2, "MALFORMED": 3}
    rows = [row for path in query.rejected("a") for row in pq.read_table(path).to_pylist()]
    broken = {row["position"]: row["raw_record"] for row in rows}
    assert [text for _, text in sorted(broken.items())] == ["NOT `v` IS NULL", "`v` > 0", '{"v": "x", "w": "d"}']


def test_rows_made_from_one_row_are_rows_like_any(spark: SparkSession, tmp_path: Path) -> None:
    sql = """CREATE STREAM a (v INT);
        SELECT STREAM x, ROW_NUMBER() OVER () AS n FROM (SELECT STREAM EXPLODE(ARRAY(v, -v)) AS x FROM a) AS e"""
    rows = run(spark, tmp_path, sql, [{"v": n} for n in (1, 2, 3)], cut=1)
    assert [(row["x"], row["n"]) for row in rows] == [(1, 1), (-1, 2), (2, 3), (-2, 4), (3, 5), (-3, 6)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "csv", "json"])
def test_a_table_is_any_batch_source_as_it_was_at_the_first_start(
    kind: str, spark: SparkSession, tmp_path: Path
) -> None:
    cities = spark.createDataFrame([("x", "Oslo"), ("y", None), ("y", "Bergen")], "w STRING, city STRING")
    cities.coalesce(1).write.format(kind).save(str(tmp_path / "cities"))
    sql = f"""CREATE STREAM a (v INT, w STRING);
        CREATE TABLE cities (w STRING, city STRING) USING {kind} OPTIONS (path '{tmp_path}/cities');
        SELECT STREAM v, c.city FROM a LEFT JOIN cities AS c ON a.w = c.w AND (c.city IS NULL OR v > 1)"""
    found = run(spark, tmp_path, sql, [{"v": 1, "w": "x"}, {"v": 2, "w": "y"}, {"v": 3, "w": "z"}], cut=1)
    assert [(row["v"], row["city"]) for row in found] == [(1, None), (2, None), (2, "Bergen"), (3, None)]
    shutil.rmtree(tmp_path / "cities")
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(sql).sink("result", lambda _: None)
    with rt.writer("a", home=tmp_path / "home") as log:
        log.insert([{"v": 4, "w": "x", "rowtime": "2024-01-03 00:00:00"}])
    query = pipeline.run_available(tmp_path / "check")  # the copy in the checkpoint is used
    assert query.ledger["a"]["accepted"] == 4
