"""Values that a database would refuse after the commit are refused before it: by check, at the start, at the gate."""

from __future__ import annotations

import datetime as dt
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.operators.gates.pump_gate import PumpGate
from rowtime.sql.generate import to_spark
from tests.database.postgres import programs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.database.postgres import Postgres

AT = dt.datetime(2024, 1, 1, 10, tzinfo=dt.UTC)


def asked(server: Postgres, query: str) -> list[str]:
    command = [str(programs() / "psql"), "-h", "127.0.0.1", "-p", str(server.port), "-U", "rowtime", "-d", "postgres"]
    found = subprocess.run([*command, "-qtA", "-F", "|", "-c", query], capture_output=True, text=True, check=True)
    return found.stdout.splitlines()


def made(spark: SparkSession, folder: Path, server: Postgres, table: str, columns: str) -> rt.Pipeline:
    using = f"USING jdbc OPTIONS (url '{server.url}', user 'rowtime', dbtable '{table}')"
    given = columns.replace(" NOT NULL", "").replace("VARCHAR(3)", "STRING")
    text = f"""CREATE STREAM a ({given}); CREATE STREAM o ({columns}) {using};
      CREATE PUMP p AS INSERT INTO o SELECT STREAM * FROM a"""
    return rt.Pipeline(spark, home=folder / "home").sql(text)


@pytest.mark.parametrize(
    ("kind", "odd"),
    [
        ("MAP<STRING, INT>", "MAP"),
        ("STRUCT<x: INT>", "STRUCT"),
        ("ARRAY<STRUCT<x: INT>>", "STRUCT"),
        ("ARRAY<ARRAY<INT>>", "an ARRAY in an ARRAY"),
        ("VARIANT", "VARIANT"),
        ("INTERVAL DAY TO SECOND", "INTERVAL"),
    ],
)
def test_a_type_that_no_table_has_ended_the_run_for_good(kind: str, odd: str) -> None:
    sql = f"CREATE STREAM a (m {kind}); CREATE STREAM o (m {kind}) USING jdbc OPTIONS ({{}} dbtable 't');"
    text = f"{sql} INSERT INTO o SELECT STREAM * FROM a"
    (problem,) = (p for p in rt.check(text.format("url 'jdbc:postgresql:d',")) if p.code == "R544")
    assert problem.message.endswith(odd)
    assert problem.place is not None
    flat = text.replace(kind, "ARRAY<STRING>")
    assert rt.check(flat.format("url 'jdbc:postgresql:d',")) == []
    assert [p.code for p in rt.check(flat.format("url 'jdbc:mysql:d',"))] == ["R544"]


@pytest.mark.slow
def test_a_text_with_nul_ended_the_run_for_good(spark: SparkSession, postgres: Postgres, tmp_path: Path) -> None:
    pipeline = made(spark, tmp_path, postgres, "nul", "s STRING, l ARRAY<STRING>, v VARCHAR(3)")
    pipeline.run_available(tmp_path / "check")
    rows = [
        ("a\0b", ["x"], "v"),
        ("good", ["x"], "v"),
        ("c", ["x", "y\0"], "v"),
        ("d", ["x"], "long"),
        (None, None, None),
    ]
    with rt.writer("a", home=tmp_path / "home", writer="w") as writer:
        writer.insert([{"s": s, "l": each, "v": v, "rowtime": AT} for s, each, v in rows])
    query = pipeline.run_available(tmp_path / "check")
    assert asked(postgres, "SELECT s, l, v FROM nul ORDER BY s NULLS LAST") == ["good|{x}|v", "||"]
    assert query.ledger["p"] == {"in": 5, "accepted": 2, "MALFORMED": 3}
    kept = pq.read_table(query.rejected("p")[0])
    assert sorted(kept["raw_record"].to_pylist()) == [
        "l without the character NUL",
        "s without the character NUL",
        "v VARCHAR(3)",
    ]
    assert "a\0b" in kept["s"].to_pylist()


def test_jdbc_moved_the_days_of_october_1582(spark: SparkSession, postgres: Postgres, tmp_path: Path) -> None:
    pipeline = made(spark, tmp_path, postgres, "old", "t TIMESTAMP, d DATE, n TIMESTAMP_NTZ, l ARRAY<DATE>")
    pipeline.run_available(tmp_path / "check")
    days = ["0001-01-01", "1582-10-04", "1582-10-10", "1582-10-15", "1970-01-01", "2024-02-29", "9999-12-31"]
    with rt.writer("a", home=tmp_path / "home", writer="w") as writer:
        for day in days:
            time = f"{day} 23:59:59.999999"
            writer.insert([{"t": time, "d": day, "n": time, "l": [dt.date.fromisoformat(day), None], "rowtime": AT}])
        writer.insert([{"t": None, "d": None, "n": None, "l": None, "rowtime": AT}])
    pipeline.run_available(tmp_path / "check")
    found = asked(postgres, "SET TIME ZONE 'UTC'; SELECT t, d, n, l FROM old ORDER BY t NULLS LAST")
    time = "23:59:59.999999"
    assert found == [*(f"{day} {time}+00|{day}|{day} {time}|{{{day},NULL}}" for day in days), "|||"]
    kinds = asked(postgres, "SELECT data_type FROM information_schema.columns WHERE table_name = 'old' ORDER BY 1")
    zoned = "timestamp with time zone"
    assert kinds == ["ARRAY", "date", zoned, zoned, "timestamp without time zone"]


def test_javas_calendar_moved_the_days_of_october_1582_on_their_way_into_other_databases(spark: SparkSession) -> None:
    columns = "d DATE, n TIMESTAMP_NTZ, t TIMESTAMP, s INT"
    sql = f"""CREATE STREAM a ({columns}); CREATE STREAM o ({columns}) USING jdbc OPTIONS (url '{{}}', dbtable 't');
      INSERT INTO o SELECT STREAM * FROM a"""
    for url, count in (("jdbc:postgresql:d", 0), ("jdbc:mysql:d", 3)):
        program = rt.Pipeline().sql(sql.format(url)).compile()
        (gate,) = (node for node in program.operators if isinstance(node, PumpGate))
        assert len(gate.holds) == count
    days = ("1582-10-03", "1582-10-04", "1582-10-05", "1582-10-14", "1582-10-15", "1582-10-16", "0001-01-01")
    values = ", ".join(f"('{day}')" for day in days)
    casts = "CAST(c AS DATE) AS d, CAST(c AS TIMESTAMP_NTZ) AS n, CAST(c || ' 00:00:00Z' AS TIMESTAMP) AS t"
    rows = spark.sql(f"SELECT {casts} FROM VALUES {values} AS v (c)")
    fits = [[row[0] for row in rows.selectExpr(to_spark(over)).collect()] for _, over in gate.holds]
    plain = [True, True, False, False, True, True, True]
    assert fits == [plain, plain, [True, False, False, False, False, True, True]]


NARROW = "rowtime timestamptz, s varchar(3), n int, d numeric(4, 2), r text NOT NULL, f smallint, o text"
WIDE = "s STRING, n BIGINT, d DECIMAL(10, 3), r STRING, f DOUBLE"


def send(folder: Path, *rows: dict[str, object]) -> None:
    fits = {"s": "abc  ", "n": 2**31 - 1, "d": "-99.994", "r": "", "f": 32767.4}
    with rt.writer("a", home=folder / "home", writer="w") as writer:
        writer.insert([{**fits, **row, "rowtime": AT} for row in rows])


@pytest.mark.slow
def test_a_value_that_does_not_fit_the_table_stopped_the_tick(
    spark: SparkSession, postgres: Postgres, tmp_path: Path
) -> None:
    asked(postgres, f"CREATE TABLE narrow ({NARROW})")
    pipeline = made(spark, tmp_path, postgres, "narrow", WIDE)
    pipeline.run_available(tmp_path / "check")
    bad: list[dict[str, object]] = [{"s": "abcd"}, {"n": -(2**31) - 1}, {"d": "99.995"}, {"r": None}]
    bad += [{"f": 32768.0}, {"f": float("nan")}]
    send(tmp_path, {}, *bad, dict.fromkeys("sndf"))
    query = pipeline.run_available(tmp_path / "check")
    assert query.ledger["p"] == {"in": 8, "accepted": 2, "MALFORMED": 6}
    assert asked(postgres, "SELECT s, n, d, r, f FROM narrow ORDER BY s") == ["abc|2147483647|-99.99||32767", "||||"]
    told = [word for path in query.rejected("p") for word in pq.read_table(path)["raw_record"].to_pylist()]
    types = ["s varchar(3)", "n int4", "d numeric(4, 2)", "r NOT NULL", "f int2", "f int2"]
    assert sorted(told) == sorted(f"{kind} in the table" for kind in types)

    # The columns of a changed table are read again at the next start; a replay judges each row by those of its time.
    asked(postgres, "ALTER TABLE narrow ALTER n TYPE bigint, ALTER s TYPE varchar(2) USING 'ab'")
    send(tmp_path, {}, {"s": "ab", "n": 2**31})
    query = pipeline.run_available(tmp_path / "check")
    assert query.ledger["p"] == {"in": 10, "accepted": 3, "MALFORMED": 7}
    assert asked(postgres, "SELECT count(*) FROM narrow") == ["3"]
    assert rt.verify(tmp_path / "check", spark=spark, home=tmp_path / "home").equal


def test_a_column_that_the_table_lacks_was_found_after_the_commit(
    spark: SparkSession, postgres: Postgres, tmp_path: Path
) -> None:
    asked(postgres, "CREATE TABLE lacks (rowtime timestamptz, m int)")
    said = "R547 the table lacks has no column n, which the pump p writes\nIts columns are rowtime, m"
    with pytest.raises(rt.Refused, match=said):
        made(spark, tmp_path, postgres, "lacks", "n INT").run_available(tmp_path / "check")
