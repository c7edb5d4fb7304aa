"""Temporary views and catalog tables of the session as static tables: the rows of the first start are kept."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.state.checkpoint import Checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
STREAM = "CREATE STREAM a (k STRING, v BIGINT);\n"
SQL = (
    STREAM
    + """CREATE STREAM out (hour TIMESTAMP, city STRING, n INT, total BIGINT) USING parquet OPTIONS (path '{at}/out');
CREATE VIEW named AS SELECT STREAM c.city, twice(a.v) AS w FROM a JOIN {cities} AS c ON a.k = c.k WHERE small(a.v);
CREATE PUMP p AS INSERT INTO out
  SELECT STREAM FLOOR(n.ROWTIME TO HOUR) AS hour, city, COUNT(*), SUM(w) FROM named AS n
  GROUP BY FLOOR(n.ROWTIME TO HOUR), city;
"""
)
ROWS = [(START + dt.timedelta(minutes=11 * n), "abcd"[n % 4], n % 7) for n in range(40)]
CITIES = {"a": "Rome", "b": "Oslo", "c": "Rome"}


def session_of(spark: SparkSession, cities: dict[str, str]) -> SparkSession:
    session = spark.newSession()
    session.udf.register("twice", lambda v: 2 * v, "BIGINT")
    session.udf.register("small", lambda v: v < 6, "BOOLEAN")
    session.createDataFrame([*cities.items()], "k STRING, city STRING").createOrReplaceTempView("cities")
    return session


def send(folder: Path, rows: list[tuple[dt.datetime, str, int]]) -> None:
    with rt.writer("a", home=folder / "home", writer="w") as writer:
        writer.insert([{"rowtime": at, "k": k, "v": v} for at, k, v in rows])


def rows(pipeline: rt.Pipeline, folder: Path, given: list[tuple[dt.datetime, str, int]]) -> list[dict[str, Any]]:
    """The rows of a query over input that comes after its first start."""
    got: list[dict[str, Any]] = []
    pipeline.sink("result", lambda batch: got.extend(batch.table().to_pylist() if batch.count else []))
    pipeline.run_available(folder / "check")
    send(folder, given)
    pipeline.run_available(folder / "check")
    return got


def written(folder: Path) -> list[tuple[Any, ...]]:
    found = [row for file in sorted((folder / "out").glob("*.parquet")) for row in pq.read_table(file).to_pylist()]
    return sorted((row["hour"], row["city"], row["n"], row["total"]) for row in found)


def expected() -> list[tuple[Any, ...]]:
    """The expected rows, computed by hand: hours that have ended."""
    groups: dict[tuple[dt.datetime, str], list[int]] = {}
    for at, k, v in ROWS:
        if k in CITIES and v < 6:
            groups.setdefault((at.replace(minute=0), CITIES[k]), []).append(2 * v)
    last = ROWS[-1][0].replace(minute=0)
    return sorted((hour, city, len(vs), sum(vs)) for (hour, city), vs in groups.items() if hour < last)


@pytest.mark.parametrize("cut", [17, pytest.param(40, marks=pytest.mark.slow)])
def test_a_view_a_udf_in_where_and_group_and_a_typed_sink_go_on_after_a_restart(
    spark: SparkSession, tmp_path: Path, cut: int
) -> None:
    """The second session has other rows in the view, and the third has no view: the rows of the first start count."""
    others = {"a": "Bern", "d": "Bern"}
    for number, begin in enumerate(range(0, len(ROWS), cut)):
        session = session_of(spark, CITIES if number == 0 else others)
        if begin + cut >= len(ROWS) and number:
            session.catalog.dropTempView("cities")
        pipeline = rt.Pipeline(session, home=tmp_path / "home").sql(SQL.format(at=tmp_path, cities="cities"))
        if number == 0:
            pipeline.run_available(tmp_path / "check")
            assert session.table("cities").count() == len(CITIES)
        send(tmp_path, ROWS[begin : begin + cut])
        query = pipeline.run_available(tmp_path / "check")
        assert query.changes in ([], ())
    assert written(tmp_path) == expected()
    assert rt.verify(tmp_path / "check", pipeline, home=tmp_path / "home").equal


def test_a_view_with_other_columns_keeps_its_first_definition(spark: SparkSession, tmp_path: Path) -> None:
    sql = STREAM + "SELECT STREAM v, city FROM a JOIN cities USING (k)"
    got: list[dict[str, Any]] = []

    def run(session: SparkSession) -> None:
        pipeline = rt.Pipeline(session, home=tmp_path / "home").sql(sql)
        pipeline.sink("result", lambda batch: got.extend(batch.table().to_pylist() if batch.count else []))
        pipeline.run_available(tmp_path / "check")

    session = session_of(spark, CITIES)
    run(session)
    session.sql("SELECT 'a' AS k, 7 AS other").createOrReplaceTempView("cities")
    send(tmp_path, [(START, "b", 1)])
    run(session)
    assert [(row["v"], row["city"]) for row in got] == [(1, "Oslo")]


@pytest.mark.slow  # two pipelines
def test_a_table_of_a_catalog_and_one_that_the_script_declares(spark: SparkSession, tmp_path: Path) -> None:
    session = session_of(spark, CITIES)
    session.sql(f"CREATE DATABASE places LOCATION '{tmp_path}/places'")
    try:
        session.sql("CREATE TABLE places.towns USING parquet AS SELECT k, city FROM cities")
        session.sql("USE places")
        declared = STREAM + "CREATE TABLE cities (k STRING, city STRING) USING session;\n"
        for number, (script, name) in enumerate([(STREAM, "places.towns"), (STREAM, "towns"), (declared, "cities")]):
            folder = tmp_path / str(number)
            pipeline = rt.Pipeline(session, home=folder / "home")
            pipeline.sql(f"{script} SELECT STREAM t.city FROM a JOIN {name} AS t ON a.k = t.k")
            got = rows(pipeline, folder, [(START, "c", 1), (START, "d", 1)])
            assert [row["city"] for row in got] == ["Rome"], name
    finally:
        session.sql("USE default")
        session.sql("DROP DATABASE places CASCADE")


@pytest.mark.slow
def test_a_view_computes_what_the_session_shows(spark: SparkSession, tmp_path: Path) -> None:
    """Texts of times use the session's time zone, and division follows the session's settings."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    session.conf.set("spark.sql.ansi.enabled", "false")
    query = "SELECT 'a' AS k, CAST(TIMESTAMP_SECONDS(0) AS STRING) AS at, 1 / 0 AS q"
    session.sql(query).createOrReplaceTempView("of_frame")
    session.sql(f"CREATE TEMPORARY VIEW of_text AS {query}")
    for name in ("of_frame", "of_text"):
        pipeline = rt.Pipeline(session, home=tmp_path / name / "home")
        pipeline.sql(f"{STREAM} SELECT STREAM at, q FROM a JOIN {name} USING (k)")
        got = rows(pipeline, tmp_path / name, [(START, "a", 1)])
        assert [(row["at"], row["q"]) for row in got] == [("1970-01-01 09:00:00", None)], name


def test_definitions_of_the_script_and_the_home_come_first(spark: SparkSession, tmp_path: Path) -> None:
    session = session_of(spark, CITIES)
    for name in ("a", "ledger", "v"):
        session.sql("SELECT 1 AS x").createOrReplaceTempView(name)
    sql = STREAM + "CREATE VIEW v AS SELECT STREAM k FROM a; SELECT STREAM v.k FROM v; SELECT STREAM tick FROM LEDGER"
    program = rt.Pipeline(session, home=tmp_path / "home").sql(sql).compile()
    assert not [node for node in program.operators if node.kind == "table"]


def test_anything_but_a_table_is_refused_with_what_to_do(spark: SparkSession, tmp_path: Path) -> None:
    session = session_of(spark, CITIES)

    def refused(sql: str) -> tuple[str, str]:
        with pytest.raises(rt.Refused) as ended:
            rt.Pipeline(session, home=tmp_path / "home").sql(STREAM + sql).run_available(tmp_path / "check")
        (problem,) = ended.value.problems
        return problem.code, problem.hint

    assert refused("SELECT STREAM city FROM cities")[0] == "R124"
    assert refused("SELECT STREAM x FROM a JOIN nowhere USING (k)")[0] == "R103"
    session.sql("SELECT 'a' AS k, 1 AS x, 2 AS x").createOrReplaceTempView("twins")
    assert refused("SELECT STREAM a.v FROM a JOIN twins USING (k)")[0] == "R209"
    session.sql("SELECT 'a' AS k, 1 AS x, 2 AS y").createOrReplaceTempView("twins")
    rt.Pipeline(session, home=tmp_path / "home").sql(STREAM + "SELECT STREAM x FROM a JOIN twins USING (k)").compile()
    session.sql("SELECT 'a' AS k, NULL AS x").createOrReplaceTempView("nulls")
    assert refused("SELECT STREAM x FROM a JOIN nulls USING (k)")[0] == "R155"
    session.sql("SELECT 'a' AS k, CAST(NULL AS INT) AS x").createOrReplaceTempView("nulls")
    rt.Pipeline(session, home=tmp_path / "home").sql(STREAM + "SELECT STREAM x FROM a JOIN nulls USING (k)").compile()
    code, hint = refused("CREATE TABLE gone (k STRING) USING session; SELECT STREAM a.v FROM a JOIN gone USING (k)")
    assert (code, hint) == ("R155", "Create the view or the table before the pipeline starts for the first time.")


def test_the_script_of_the_checkpoint_says_which_tables_it_had(spark: SparkSession, tmp_path: Path) -> None:
    session = session_of(spark, CITIES)
    sql = STREAM + "SELECT STREAM city FROM a JOIN cities USING (k) -- the end"
    rt.Pipeline(session, home=tmp_path / "home").sql(sql).run_available(tmp_path / "check")
    plan = Checkpoint(tmp_path / "check").plan
    assert plan is not None
    assert plan.sql == f"{sql}\n;\nCREATE TABLE `cities` (`k` string, `city` string) USING session"


def test_a_streaming_view_is_delivered_as_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    session.readStream.format("rate").load().createOrReplaceTempView("beats")
    sql = STREAM + "SELECT STREAM beats.value FROM a OVER (RANGE INTERVAL '1' MINUTE PRECEDING) AS a JOIN {} ON TRUE"
    with pytest.raises(rt.Refused, match="R124") as ended:
        rt.Pipeline(session, home=tmp_path).sql(sql.format("beats")).compile()
    assert "pipeline.source('beats', spark.table('beats'))" in ended.value.problems[0].hint
    taken = rt.Pipeline(session, home=tmp_path).source("beats", session.table("beats"))
    taken.sql(sql.format("beats OVER (RANGE INTERVAL '1' MINUTE PRECEDING) AS beats")).compile()
