"""Expressions that only Spark knows: it computes their different values, and the rows stay where they are."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F  # noqa: N812 - Spark's name

import rowtime as rt
from rowtime.runtime.executors.executor import Executor, InProcess, SparkJob
from rowtime.runtime.executors.tasks import Tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """
CREATE STREAM a (k STRING, x DOUBLE, url STRING, ev TIMESTAMP)
  USING parquet OPTIONS (path '{source}', rowtime.column 'ev');
CREATE STREAM minutes (m TIMESTAMP, name STRING, c BIGINT, s DOUBLE) USING parquet OPTIONS (path '{out}');
CREATE VIEW visits AS SELECT STREAM INITCAP(k) AS name, x, CAST(REGEXP_EXTRACT(url, '(?<=/p)(.+)', 1) AS INT) AS page
  FROM a WHERE url RLIKE '(?<=/)p' AND x > 0;
CREATE PUMP p AS INSERT INTO minutes
  SELECT STREAM FLOOR(v.ROWTIME TO MINUTE) AS m, name, COUNT(*) AS c, SUM(BROUND(x, 1)) AS s
  FROM visits AS v GROUP BY FLOOR(v.ROWTIME TO MINUTE), name;
SELECT STREAM FLOOR(v.ROWTIME TO MINUTE) AS m, page, BROUND(AVG(x), 2) AS mean, HEX(MAX(name)) AS code
  FROM visits AS v GROUP BY FLOOR(v.ROWTIME TO MINUTE), page HAVING CBRT(COUNT(*)) > 1;
"""
TICKS = 4
BEGIN = 1_704_067_200_000_000
BAD = 2  # the tick with a row whose page is no number


def write_files(folder: Path) -> None:
    folder.mkdir(parents=True)
    for tick in range(TICKS):
        count = 40
        times = [BEGIN + (tick * count + n) * 2_000_000 for n in range(count)]
        urls = [f"/p{n % 3}" if n % 7 else "/other" for n in range(count)]
        urls[5] = "/pqr" if tick == BAD else urls[5]
        columns = {"k": [f"{'ab'[n % 2]} user" for n in range(count)], "x": [n / 8 for n in range(count)], "url": urls}
        path = folder / f"{tick}.parquet"
        pq.write_table(pa.table({**columns, "ev": pa.array(times, pa.timestamp("us", "UTC"))}), path)
        os.utime(path, (1_700_000_000 + tick,) * 2)


def run(spark: SparkSession, place: Path, sql: str = SQL, *, tasks: Tasks | None = None) -> Mapping[str, Any]:
    """Run the first ticks, and the others by another engine, as after a stop."""
    write_files(place / "in")
    got: list[Any] = []
    jobs: list[int] = []
    stepped = set[str]()
    for most in (2, 10):
        pipeline = rt.Pipeline(spark, home=place / "home").sql(sql.format(source=place / "in", out=place / "out"))
        pipeline.sink("result", lambda batch: got.append((batch.tick, batch.table().to_pylist())))
        engine = pipeline._engine(place / "check", rt.Limits(files=1), ends=True)
        engine.tap = lambda node, _delta: stepped.add(node.name)
        for _ in range(most):
            engine.tasks = tasks
            before = engine._job_times.next()
            if engine.tick() is None:
                break
            jobs.append(engine._job_times.next() - before)
        totals = dict(engine.entry["totals"])
        engine.stop()
    minutes = [row for path in (place / "out").glob("*.parquet") for row in pq.read_table(path).to_pylist()]
    return {"rows": got, "minutes": sorted(minutes, key=repr), "totals": totals, "jobs": jobs, "stepped": stepped}


def test_rows_stay_on_the_driver_and_are_those_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    driver = run(spark, tmp_path)
    minutes, pages = of_spark(spark, tmp_path / "in")
    assert [(row["name"], row["c"], pytest.approx(row["s"])) for row in driver["minutes"]] == minutes
    rows = [row for _, some in driver["rows"] for row in some]
    assert sorted((row["page"], row["mean"], row["code"]) for row in rows) == pages
    assert sum(gate.get("MALFORMED", 0) for gate in driver["totals"].values()) == 1, driver["totals"]
    assert len(driver["minutes"]) == 12
    assert driver["jobs"][BAD] <= 6, driver["jobs"]


def of_spark(spark: SparkSession, folder: Path) -> tuple[list[Any], list[Any]]:
    """The rows of both queries in Spark, without the row whose page is no number in the second."""
    rows = spark.read.parquet(str(folder)).where("url RLIKE '/p' AND x > 0").selectExpr(
        "date_trunc('MINUTE', ev) AS m", "initcap(k) AS name", "x", "regexp_extract(url, '/p([a-z0-9]+)', 1) AS page"
    )  # fmt: skip
    minutes = rows.groupBy("m", "name").agg(F.expr("count(*) AS c"), F.expr("sum(bround(x, 1)) AS s")).collect()
    pages = rows.where("page <> 'qr'").selectExpr("*", "CAST(page AS INT) AS number").groupBy("m", "number")
    found = pages.agg(
        F.expr("count(*) AS c"), F.expr("bround(avg(x), 2) AS mean"), F.expr("hex(max(name)) AS code")
    ).where("cbrt(c) > 1")  # fmt: skip
    return (
        [(row.name, row.c, row.s) for row in sorted(minutes, key=lambda row: (row.m, row["name"]))],
        sorted((row.number, row.mean, row.code) for row in found.collect()),
    )


@pytest.mark.parametrize("how", [InProcess(), SparkJob()])
def test_a_task_computes_with_values_that_catalyst_computes_in_its_job(
    spark: SparkSession, tmp_path: Path, how: Executor
) -> None:
    tasks = Tasks(how)
    driver, sent = run(spark, tmp_path / "driver"), run(spark, tmp_path / "sent", tasks=tasks)
    for name in ("rows", "minutes", "totals"):
        assert driver[name] == sent[name], name
    assert not tasks.needs
    assert not sent["stepped"]  # the driver computes no tick, not even that of the row that fails
    files = [
        sum(path.is_file() for path in (tmp_path / way / "check" / "state").rglob("*.parquet"))
        for way in ("driver", "sent")
    ]
    assert files[0] == files[1]  # trials leave none behind
    if isinstance(how, SparkJob):
        assert sent["jobs"][0] <= 4  # expressions over groups are met once there are groups
        assert [*sent["jobs"][1:BAD], *sent["jobs"][BAD + 1 :]] == [1] * (len(sent["jobs"]) - 2)
        assert sent["jobs"][BAD] <= 3, sent["jobs"]


def test_an_expression_that_is_written_twice_is_asked_for_once(spark: SparkSession, tmp_path: Path) -> None:
    twice = "SELECT STREAM INITCAP(k) AS a, INITCAP(k) AS b, INITCAP(K) AS c, HEX(k) || HEX(k) AS d FROM a;"
    tasks, sql = Tasks(), SQL[: SQL.index("CREATE STREAM minutes")] + twice
    driver = run(spark, tmp_path / "driver", sql)
    sent = run(spark, tmp_path / "sent", sql, tasks=tasks)
    assert driver["rows"] == sent["rows"]
    assert tasks.needs == ""
    assert sent["stepped"] == set()  # no row of them on the driver
    assert sent["jobs"] == [1] * TICKS


@pytest.mark.parametrize("how", [InProcess(), SparkJob()])
def test_a_task_asks_for_any_number_of_values_that_depend_on_each_other(
    spark: SparkSession, tmp_path: Path, how: Executor
) -> None:
    query, text = "a", "k"
    for _ in range(7):
        query, text = f"(SELECT STREAM HEX({text}) AS k FROM {query} AS s)", "k"
    tasks, sql = Tasks(how), SQL[: SQL.index("CREATE STREAM minutes")] + f"SELECT STREAM k FROM {query} AS s;"
    driver = run(spark, tmp_path / "driver", sql)
    sent = run(spark, tmp_path / "sent", sql, tasks=tasks)
    assert driver["rows"] == sent["rows"]
    assert tasks.needs == ""
    assert sent["stepped"] == set()
    if isinstance(how, SparkJob):
        assert sent["jobs"][1:] == [1] * (
            TICKS - 1
        )  # in the first tick, each value shows that another one depends on it


def test_few_different_values_cost_a_job_in_the_first_tick_only(spark: SparkSession, tmp_path: Path) -> None:
    sql = SQL[: SQL.index("CREATE VIEW")] + "SELECT STREAM INITCAP(k) AS name, x FROM a WHERE url RLIKE '(?<=/)p';"
    driver = run(spark, tmp_path, sql)
    rows = spark.read.parquet(str(tmp_path / "in")).where("url RLIKE '/p'").orderBy("ev")
    expected = rows.selectExpr("initcap(k) AS name", "x").toArrow().to_pylist()
    got = [{name: row[name] for name in ("name", "x")} for _, rows in driver["rows"] for row in rows]
    assert got == expected
    assert driver["jobs"][0] <= 2
    assert driver["jobs"][1] == driver["jobs"][3] == 0


def test_rows_that_are_made_of_one_row_are_made_by_the_task(spark: SparkSession, tmp_path: Path) -> None:
    page = "CAST(REGEXP_EXTRACT(url, '(?<=/p)(.+)', 1) AS INT)"
    several = (
        "CREATE VIEW words AS SELECT STREAM x, url, at, word FROM a LATERAL VIEW POSEXPLODE(SPLIT(k, ' ')) AS at, word;"
        "CREATE VIEW entries AS SELECT STREAM x, url, at, q, v FROM words AS w "
        "LATERAL VIEW OUTER EXPLODE(MAP(word, x)) AS q, v WHERE url LIKE '/p%';"
        "SELECT STREAM q, v, at, STACK(2, x, -x) AS y, "
        f"JSON_TUPLE(CONCAT('{{{{\"p\": ', {page}, '}}}}'), 'p') AS p FROM entries AS e WHERE x < 9 AND {page} >= 0;"
    )
    sql, tasks = SQL[: SQL.index("CREATE STREAM minutes")] + several, Tasks()
    driver = run(spark, tmp_path / "driver", sql)
    sent = run(spark, tmp_path / "sent", sql, tasks=tasks)
    assert len([row for _, rows in driver["rows"] for row in rows]) > 400
    for name in ("rows", "totals"):
        assert driver[name] == sent[name], name
    assert sum(gate.get("MALFORMED", 0) for gate in driver["totals"].values()) == 2, driver["totals"]
    assert (sent["stepped"], tasks.needs) == (set(), "")
    assert sent["jobs"][0] <= 2
    assert [*sent["jobs"][1:BAD], *sent["jobs"][BAD + 1 :]] == [1] * (TICKS - 2)
