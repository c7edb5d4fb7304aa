"""CURRENT_ROW_TIMESTAMP equals ROWTIME if that is the arrival time; then it ascends and closes groups."""

from __future__ import annotations

import logging
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rowtime as rt
from rowtime.plan.check import proof_of
from rowtime.plan.program import compile_script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEGIN = datetime(2024, 1, 1, 10, tzinfo=UTC)
FILES = "CREATE STREAM s (k INT, t TIMESTAMP) USING csv OPTIONS (path '/in'{});"
LOG = "CREATE STREAM s (k INT, t TIMESTAMP);"
COUNTS = "SELECT STREAM COUNT(*) AS n FROM {} GROUP BY FLOOR(CURRENT_ROW_TIMESTAMP TO HOUR)"


def codes(script: str) -> list[str]:
    """The codes of problems, without the warning that the time of change of files decides a result (R226)."""
    return [problem.code for problem in rt.check(script) if problem.code != "R226"]


@pytest.mark.parametrize("stream", [
    FILES.format(""),
    FILES.format("").replace("csv", "json"),
    FILES.format("").replace("csv", "delta"),
    "CREATE STREAM s (k INT) USING kafka OPTIONS (kafka.bootstrap.servers 'b:9092', subscribe 't');",
    "CREATE STREAM s (timestamp TIMESTAMP, value BIGINT) USING rate;",
])  # fmt: skip
def test_it_closes_groups_where_rowtime_is_the_arrival_time(stream: str) -> None:
    assert codes(stream + COUNTS.format("s")) == []
    assert codes(f"{stream} CREATE VIEW v AS SELECT STREAM * FROM s WHERE 1 > 0; {COUNTS.format('v')}") == []
    assert codes(f"{stream} {COUNTS.format('(SELECT STREAM * FROM s UNION ALL SELECT STREAM * FROM s) AS u')}") == []


@pytest.mark.parametrize(("stream", "read"), [
    (LOG, "s"),
    (FILES.format(", rowtime.column 't'"), "s"),
    (FILES.format(""), "(SELECT STREAM t AS ROWTIME, k FROM s) AS x"),
    (FILES.format(""), "(SELECT STREAM t AS ROWTIME, k FROM s ORDER BY t WITHIN INTERVAL '1' MINUTE) AS x"),
    (FILES.format(""), "(SELECT STREAM * FROM s ORDER BY FLOOR(s.ROWTIME TO MINUTE), k) AS x"),
    (FILES.format(""), "STREAM(DELAY(CURSOR(SELECT STREAM * FROM s), INTERVAL '1' HOUR)) AS x"),
    (FILES.format(""), "TABLE(SESSION(TABLE s, DESCRIPTOR(ROWTIME), INTERVAL '1' MINUTE)) AS x"),
    (FILES.format("") + LOG.replace("s (", "l ("), "(SELECT STREAM * FROM s UNION ALL SELECT STREAM * FROM l) AS x"),
])  # fmt: skip
def test_it_has_no_order_elsewhere_and_the_reason_is_reported(stream: str, read: str) -> None:
    (problem,) = rt.check(stream + COUNTS.format(read))
    assert problem.code == "R104"
    assert "CURRENT_ROW_TIMESTAMP: rows come in the order of ROWTIME, which is not the arrival time here" in str(
        problem
    )


def test_the_expression_alone_has_no_order() -> None:
    assert rt.order_of("CURRENT_ROW_TIMESTAMP", {}) == "none"
    assert "not the arrival time here" in str(proof_of("FLOOR(CURRENT_ROW_TIMESTAMP TO DAY)", {}))


def test_a_moved_rowtime_is_not_an_arrival_time() -> None:
    moved = FILES.format("") + "SELECT STREAM t AS ROWTIME, k, CURRENT_ROW_TIMESTAMP AS c FROM s"
    program = compile_script(moved)
    assert [node.emits().stamped for node in program.operators if node.kind == "stream"] == [True]
    assert not program.sinks[0].input.emits().stamped


def test_times_of_files_that_go_back_are_raised(spark: SparkSession, tmp_path: Path) -> None:
    """With the time of the file itself, the last row would belong to an hour that is closed."""

    def write(name: str, minutes: int) -> None:
        (tmp_path / "in").mkdir(exist_ok=True)
        path, at = tmp_path / "in" / name, (BEGIN + timedelta(minutes=minutes)).timestamp()
        path.write_text("1\n")
        os.utime(path, (at, at))

    sql = f"""
      CREATE STREAM s (k INT) USING csv OPTIONS (path '{tmp_path / "in"}');
      CREATE STREAM o (c TIMESTAMP, r TIMESTAMP) USING parquet OPTIONS (path '{tmp_path / "rows"}');
      CREATE STREAM h (n BIGINT) USING parquet OPTIONS (path '{tmp_path / "hours"}');
      CREATE PUMP p AS INSERT INTO o SELECT STREAM CURRENT_ROW_TIMESTAMP, s.ROWTIME FROM s;
      CREATE PUMP q AS INSERT INTO h {COUNTS.format("s")};
    """
    for number, minutes in enumerate((10, 70, 20)):
        write(f"{number}.csv", minutes)
        query = rt.Pipeline(spark, home=tmp_path / "home").sql(sql).run_available(tmp_path / "check", end=minutes == 20)
    rows = spark.read.parquet(str(tmp_path / "rows")).collect()
    assert len(rows) == 3
    assert all(row["c"] == row["r"] == row["rowtime"] for row in rows)
    hours = spark.read.parquet(str(tmp_path / "hours")).collect()
    assert sum(row["n"] for row in hours) == 3
    assert query.ledger["s"] == {"in": 3, "accepted": 3}


@pytest.mark.parametrize("way", ["run", "preview"])
def test_python_is_warned_where_a_time_of_change_decides_a_result(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture, way: str
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "0.csv").write_text("1,2026-05-04 10:00:00\n")
    streams = (f"CREATE STREAM {n} (k INT, t TIMESTAMP) USING csv OPTIONS (path '{tmp_path}/{n}');" for n in ("a", "b"))
    near = "b.ROWTIME BETWEEN a.ROWTIME AND a.ROWTIME + INTERVAL '1' HOUR"
    query = f"SELECT STREAM a.k FROM a JOIN b ON a.k = b.k AND {near}"
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql("".join(streams))
    with caplog.at_level(logging.WARNING, logger="rowtime"):
        if way == "preview":
            pipeline.preview(query)
        else:
            pipeline.sql(query).sink("result", lambda _: None).run_available(tmp_path / "checkpoint")
    assert [(vars(record)["event"], vars(record)["code"]) for record in caplog.records] == [("script", "R226")] * 2
