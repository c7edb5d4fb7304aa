"""``spark.read`` and ``spark.readStream.format("rowtime")``: each committed row once, also after a crash."""

from __future__ import annotations

import datetime as dt
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException, PythonException, StreamingQueryException

import rowtime as rt
from rowtime.api.data_source import RowtimeDataSource
from rowtime.client.home import Home

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

START = dt.datetime(2026, 1, 1, 10, tzinfo=dt.UTC)


@pytest.fixture
def source(spark: SparkSession) -> SparkSession:
    spark.dataSource.register(RowtimeDataSource)  # Spark finds it by itself in a new session: see the last test
    return spark


def define(home: Path, script: str = "CREATE STREAM clicks (page STRING, n INT)") -> None:
    program = rt.Pipeline(home=home).sql(script).compile()
    for stream in program.defines:
        Home(home).define(stream.name, stream.as_json())


def insert(home: Path, *numbers: int, writer: str = "main", given: bool = True) -> None:
    with rt.writer("clicks", home=home, writer=writer) as clicks:
        times = ({"rowtime": START + dt.timedelta(seconds=n)} if given else {} for n in numbers)
        clicks.insert([{"page": f"p{n}", "n": n, **time} for n, time in zip(numbers, times, strict=False)])


def stream(spark: SparkSession, home: Path, **options: str) -> DataFrame:
    return spark.readStream.format("rowtime").options(home=str(home), **options).load("clicks")


def numbers(rows: list[Any]) -> list[int]:
    return sorted(row["n"] for row in rows)


class Ran:
    """Runs of one streaming query that keeps its batches."""

    def __init__(self, rows: DataFrame, checkpoint: Path) -> None:
        self.batches: dict[int, list[int]] = {}
        self._rows, self._checkpoint = rows, checkpoint

    def run(self) -> list[list[int]]:
        """The numbers of the rows of each new batch."""
        self.batches.clear()

        def keep(batch: DataFrame, number: int) -> None:
            self.batches[number] = numbers(batch.collect())

        writer = self._rows.writeStream.foreachBatch(keep).option("checkpointLocation", str(self._checkpoint))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return [batch for _, batch in sorted(self.batches.items()) if batch]


def test_a_batch_reads_all_rows_with_their_places(source: SparkSession, tmp_path: Path) -> None:
    define(tmp_path)
    insert(tmp_path, 1, 2)
    insert(tmp_path, 3, writer="other")
    read = source.read.format("rowtime").option("home", str(tmp_path)).load("clicks")
    assert read.columns == ["rowtime", "page", "n", "writer", "position", "arrival"]
    rows = {row["n"]: row for row in read.collect()}
    assert {n: (row["page"], row["writer"], row["position"]) for n, row in rows.items()} == {
        1: ("p1", "main", 0), 2: ("p2", "main", 1), 3: ("p3", "other", 0)
    }  # fmt: skip
    seconds = {n: read.filter(f"n = {n}").selectExpr("unix_seconds(rowtime)").first()[0] for n in rows}
    assert seconds == {n: int(START.timestamp()) + n for n in rows}


def test_rows_without_a_rowtime_have_the_time_of_their_arrival(source: SparkSession, tmp_path: Path) -> None:
    define(tmp_path)
    insert(tmp_path, 1, given=False)
    read = source.read.format("rowtime").option("home", str(tmp_path)).load("clicks")
    [row] = read.collect()
    assert row["rowtime"] == row["arrival"]


def test_each_row_comes_once_over_several_runs(source: SparkSession, tmp_path: Path) -> None:
    define(tmp_path / "home")
    insert(tmp_path / "home", 1, 2)
    ran = Ran(stream(source, tmp_path / "home"), tmp_path / "check")
    assert ran.run() == [[1, 2]]
    assert ran.run() == []
    insert(tmp_path / "home", 3)
    insert(tmp_path / "home", 4, writer="other")
    assert ran.run() == [[3, 4]]
    assert ran.run() == []


def test_a_run_is_repeated_after_a_crash_with_the_same_rows(source: SparkSession, tmp_path: Path) -> None:
    """Spark has recorded which rows a batch has, but not that it ended."""
    define(tmp_path / "home")
    insert(tmp_path / "home", 1, 2)
    ran = Ran(stream(source, tmp_path / "home"), tmp_path / "check")
    assert ran.run() == [[1, 2]]
    insert(tmp_path / "home", 3)
    for commit in [*(tmp_path / "check" / "commits").glob("0"), *(tmp_path / "check" / "commits").glob(".0.crc")]:
        commit.unlink()
    assert ran.run() == [[1, 2], [3]]


@pytest.mark.parametrize("limit", ["maxRowsPerTrigger", "maxFilesPerTrigger"])
def test_a_limit_cuts_the_rows_into_batches(source: SparkSession, tmp_path: Path, limit: str) -> None:
    define(tmp_path / "home")
    for n in range(5):
        insert(tmp_path / "home", n)
    rows = stream(source, tmp_path / "home", **{limit: "2"})
    assert Ran(rows, tmp_path / "check").run() == [[0, 1], [2, 3], [4]]


def test_a_query_may_begin_at_the_end(source: SparkSession, tmp_path: Path) -> None:
    define(tmp_path / "home")
    insert(tmp_path / "home", 1, 2)
    ran = Ran(stream(source, tmp_path / "home", startingFrom="latest"), tmp_path / "check")
    assert ran.run() == []
    insert(tmp_path / "home", 3)
    assert ran.run() == [[3]]


def test_what_a_pump_has_written_comes_once_although_both_sides_start_again(
    source: SparkSession, tmp_path: Path
) -> None:
    sql = """CREATE STREAM clicks (page STRING, n INT); CREATE STREAM minutes (minute TIMESTAMP, n BIGINT);
    CREATE PUMP p AS INSERT INTO minutes SELECT STREAM FLOOR(c.ROWTIME TO MINUTE) AS minute, SUM(n) AS n
    FROM clicks AS c GROUP BY FLOOR(c.ROWTIME TO MINUTE);"""
    read = source.readStream.format("rowtime").option("home", str(tmp_path / "home")).load
    define(tmp_path / "home", sql)
    ran, got = Ran(read("minutes"), tmp_path / "check"), list[int]()
    for first in (0, 60, 120):
        insert(tmp_path / "home", first + 1, first + 2)
        rt.Pipeline(source, home=tmp_path / "home").sql(sql).run_available(tmp_path / "pipeline")
        got += [n for batch in ran.run() for n in batch]
    assert got == [3, 123]
    bounds = source.read.format("rowtime").options(home=str(tmp_path / "home"), relation="bounds").load("minutes")
    [(latest,)] = bounds.selectExpr("unix_seconds(max(bound))").collect()
    assert latest == int(START.timestamp()) + 180, "the next row is that of 10:02"


def test_another_history_of_the_log_is_noticed(source: SparkSession, tmp_path: Path) -> None:
    define(tmp_path / "home")
    insert(tmp_path / "home", 1)
    shutil.copytree(tmp_path / "home", tmp_path / "copy")
    insert(tmp_path / "home", 2)
    ran = Ran(stream(source, tmp_path / "home"), tmp_path / "check")
    assert ran.run() == [[1, 2]]
    shutil.rmtree(tmp_path / "home")
    shutil.move(tmp_path / "copy", tmp_path / "home")
    insert(tmp_path / "home", 20)
    insert(tmp_path / "home", 30)
    with pytest.raises(StreamingQueryException, match="R501"):
        ran.run()


def test_a_definition_that_is_not_that_of_the_log_is_noticed(source: SparkSession, tmp_path: Path) -> None:
    define(tmp_path)
    insert(tmp_path, 1)
    before = Home(tmp_path).definition("clicks")
    assert before is not None
    after = {**before, "columns": [{"name": "n", "type": "STRING"}]}
    Home(tmp_path).define("clicks", after, replace=True)
    read = source.read.format("rowtime").option("home", str(tmp_path)).load
    with pytest.raises(PythonException, match="R501 files of the stream clicks have other columns"):
        read("clicks").collect()
    Home(tmp_path).define("clicks", before, replace=True)  # what the hint says
    assert read("clicks").count() == 1


def test_bounds_are_a_relation_of_their_own(source: SparkSession, tmp_path: Path) -> None:
    define(tmp_path)
    with rt.writer("clicks", home=tmp_path) as clicks:
        clicks.insert([{"page": "a", "n": 1, "rowtime": START}])
        clicks.set_rowtime_bound(START + dt.timedelta(hours=1))
        clicks.end()
    read = source.read.format("rowtime").options(home=str(tmp_path), relation="bounds").load("clicks")
    found = read.selectExpr("writer", "position", "unix_seconds(bound)", "ended").orderBy("position").collect()
    assert [tuple(row) for row in found] == [
        ("main", 1, int(START.timestamp()) + 3600, False), ("main", 2, None, True)
    ]  # fmt: skip


def test_it_is_a_table_in_sql(source: SparkSession, tmp_path: Path) -> None:
    define(tmp_path)
    insert(tmp_path, 1, 2)
    source.sql(f"CREATE OR REPLACE TEMPORARY VIEW logged USING rowtime OPTIONS (path 'clicks', home '{tmp_path}')")
    assert source.sql("SELECT SUM(n) FROM logged WHERE page <> 'p1'").first()[0] == 2


def test_a_batch_cannot_begin_at_the_end(source: SparkSession, tmp_path: Path) -> None:
    define(tmp_path)
    insert(tmp_path, 1)
    read = source.read.format("rowtime").option("home", str(tmp_path))
    with pytest.raises(AnalysisException, match="R541 a batch that begins with latest would have no rows"):
        read.option("startingFrom", "latest").load("clicks").count()
    assert read.option("startingFrom", "earliest").load("clicks").count() == 1


@pytest.mark.parametrize(
    ("name", "options", "what"),
    [
        ("nosuch", {}, "R103 there is no stream log nosuch"),
        ("clicks", {"relation": "ledger"}, "R541 relation is ledger"),
        ("clicks", {"startingFrom": "noon"}, "R541 startingFrom is noon"),
        ("clicks", {"maxRowsPerTrigger": "few"}, "R541 maxRowsPerTrigger is few"),
        ("clicks", {"maxRowsPerTrigger": "1", "maxFilesPerTrigger": "1"}, "R541 maxRowsPerTrigger and"),
        ("clicks", {"rows": "1"}, "R540 the data source rowtime has no option rows"),
    ],
)
def test_what_it_cannot_read_is_refused(tmp_path: Path, name: str, options: dict[str, str], what: str) -> None:
    define(tmp_path)
    with pytest.raises(rt.Refused, match=what):
        RowtimeDataSource({"path": name, "home": str(tmp_path), **options}).schema()


def test_columns_have_all_types_that_a_stream_may_have(source: SparkSession, tmp_path: Path) -> None:
    kinds = {
        "b": "BOOLEAN", "t": "TINYINT", "l": "BIGINT", "f": "FLOAT", "d": "DOUBLE", "m": "DECIMAL(38, 3)",
        "y": "BINARY", "c": "CHAR(3)", "s": "STRING COLLATE UTF8_LCASE", "day": "DATE", "at": "TIMESTAMP",
        "local": "TIMESTAMP_NTZ", "many": "ARRAY<STRUCT<a: INT, b: STRING>>",
        "by": "MAP<STRING, TIMESTAMP>",
    }  # fmt: skip
    values = (
        "true, 1, 2, CAST(1.5 AS FLOAT), 2.5, 3.125, X'00FF', 'abc', 'Xy', DATE '2026-01-02',"
        " TIMESTAMP '2026-01-02 03:04:05.000006', TIMESTAMP_NTZ '2026-01-02 03:04:05',"
        " ARRAY(NAMED_STRUCT('a', 1, 'b', CAST(NULL AS STRING))), MAP('k', TIMESTAMP '1900-01-01 00:00:00')"
    )
    columns = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
    rt.Pipeline(source, home=tmp_path).sql(
        f"CREATE STREAM one (n INT); CREATE STREAM types ({columns}); INSERT INTO one (n) VALUES (1);"
        f"CREATE PUMP p AS INSERT INTO types SELECT STREAM {values} FROM one;"
    ).run_available(tmp_path / "check", end=True)
    read = source.read.format("rowtime").option("home", str(tmp_path)).load("types")
    texts = [f"to_json(struct({name}))" for name in kinds]
    expected = source.sql(f"SELECT {values}").toDF(*kinds).selectExpr(*texts).collect()
    assert read.selectExpr(*texts).collect() == expected


FOUND = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
rows = spark.readStream.format("rowtime").option("home", sys.argv[1]).load("clicks")
query = rows.writeStream.format("memory").queryName("got").trigger(availableNow=True).start()
query.awaitTermination()
print(sorted(row.n for row in spark.sql("SELECT n FROM got").collect()))
spark.stop()
"""


@pytest.mark.slow
def test_spark_finds_it_by_its_name(tmp_path: Path) -> None:
    """In a new session, nothing is imported and nothing is registered."""
    define(tmp_path / "home")
    insert(tmp_path / "home", 1, 2)
    (tmp_path / "read.py").write_text(FOUND)
    own = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    ended = subprocess.run(
        [sys.executable, "read.py", str(tmp_path / "home")], cwd=tmp_path, env={**os.environ, **own},
        capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert ended.stdout.splitlines()[-1] == "[1, 2]"
