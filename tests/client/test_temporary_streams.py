"""TEMPORARY streams belong to their script; its pumps fill them, through restarts and into a typed sink."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.client.home import Home
from rowtime.plan.program import compile_script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
FILLED = "CREATE PUMP p AS INSERT INTO t SELECT STREAM v FROM a"
HEAD = "CREATE STREAM a (v INT); CREATE TEMPORARY STREAM t (v INT);"


@pytest.mark.slow
def test_rows_of_a_temporary_stream_are_grouped_written_and_verified(spark: SparkSession, tmp_path: Path) -> None:
    script = f"""CREATE STREAM a (v INT); CREATE STREAM b (v INT);
        CREATE TEMPORARY STREAM both (v BIGINT, side STRING);
        CREATE PUMP pa AS INSERT INTO both SELECT STREAM v, 'a' FROM a;
        CREATE PUMP pb AS INSERT INTO both SELECT STREAM v, 'b' FROM b;
        CREATE STREAM o (minute TIMESTAMP, side STRING, total BIGINT) USING parquet OPTIONS (path '{tmp_path}/o');
        CREATE PUMP p AS INSERT INTO o SELECT STREAM FLOOR(x.ROWTIME TO MINUTE) AS minute, side, SUM(v)
          FROM both AS x GROUP BY FLOOR(x.ROWTIME TO MINUTE), side;"""
    made = rt.Pipeline(spark, home=tmp_path / "home").sql(script)
    made.run_available(tmp_path / "check")
    expected: dict[tuple[int, str], int] = {}
    for number in range(3):
        for side in "ab":
            with rt.writer(side, home=tmp_path / "home", writer="w") as writer:
                for second in range(number * 50, number * 50 + 50, 10):
                    writer.insert([{"rowtime": START + dt.timedelta(seconds=second), "v": second}])
                    minute = second // 60
                    expected[minute, side] = expected.get((minute, side), 0) + second
        made.run_available(tmp_path / "check")
    found = [row for file in sorted((tmp_path / "o").glob("*.parquet")) for row in pq.read_table(file).to_pylist()]
    totals = {(int((row["minute"] - START).total_seconds()) // 60, row["side"]): row["total"] for row in found}
    assert totals == {key: total for key, total in expected.items() if key[0] < 2}
    assert not any(one.differences for one in rt.verify(tmp_path / "check", made).outputs)
    assert {*Home(tmp_path / "home").names()} == {"a", "b", "o"}


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("SELECT STREAM v FROM t", "R134"),
        ("INSERT INTO t (v) VALUES (1); CREATE PUMP p AS INSERT INTO t SELECT STREAM v FROM a", "R137"),
        (f"ALTER STREAM t END; {FILLED}", "R137"),
        (f"ALTER STREAM t SET (IDLE AFTER INTERVAL '1' SECOND); {FILLED}", "R137"),
        ("CREATE TEMPORARY STREAM u (v INT) USING csv OPTIONS (path '/x')", "R190"),
        ("CREATE TEMPORARY STREAM u (v INT) IDLE AFTER INTERVAL '1' SECOND", "R190"),
        ("CREATE TEMPORARY FOREIGN STREAM u (v INT) USING csv OPTIONS (path '/x')", "R101"),
        ("CREATE PUMP p AS INSERT INTO t SELECT STREAM v, v AS w FROM a; SELECT STREAM v FROM a", "R132"),
        ("CREATE PUMP p AS INSERT INTO t SELECT STREAM v FROM t", "R123"),
    ],
)
def test_unsupported_temporary_streams_are_refused(script: str, code: str) -> None:
    assert {problem.code for problem in compile_script(f"{HEAD} {script}").problems} == {code}


def test_a_pump_into_an_unread_stream_is_not_a_sink() -> None:
    program = compile_script(f"{HEAD} CREATE PUMP p AS INSERT INTO t SELECT STREAM v FROM a; SELECT STREAM v FROM a")
    assert program.problems == ()
    assert [sink.name for sink in program.sinks] == ["query.result"]
