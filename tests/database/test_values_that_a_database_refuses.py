"""What a database would refuse after the commit is refused before it: by check, or row by row at the pump's gate."""

from __future__ import annotations

import datetime as dt
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from postgres import programs

import rowtime as rt

if TYPE_CHECKING:
    from postgres import Postgres
    from pyspark.sql import SparkSession

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


@pytest.mark.parametrize(
    ("there", "columns", "rows", "said"),
    [
        ("s varchar(3)", "s STRING", [{"s": "abc  "}, {"s": "abcd"}], r"row 1 .*varchar\(3\).*'abcd'"),
        ("n int", "n BIGINT", [{"n": -(2**31)}, {"n": 2**31}], r"row 1 .*int4.*2147483648"),
        ("n numeric(4, 2)", "n DECIMAL(10, 2)", [{"n": "99.99"}, {"n": "100"}], r"row 1 .*numeric.*100.00"),
        ("s text NOT NULL", "s STRING", [{"s": ""}, {"s": None}], r"row 1 .*NOT NULL.*NULL"),
    ],
    ids=["length", "whole", "decimal", "null"],
)
def test_a_value_that_does_not_fit_the_table_was_committed_before_the_table_refused_it(
    spark: SparkSession,
    postgres: Postgres,
    tmp_path: Path,
    there: str,
    columns: str,
    rows: list[dict[str, object]],
    said: str,
    request: pytest.FixtureRequest,
) -> None:
    table = f"fit_{request.node.callspec.id}"
    asked(postgres, f"CREATE TABLE {table} (rowtime timestamptz, {there})")
    pipeline = made(spark, tmp_path, postgres, table, columns)
    pipeline.run_available(tmp_path / "check")
    with rt.writer("a", home=tmp_path / "home", writer="w") as writer:
        writer.insert([{**row, "rowtime": AT} for row in rows])
    with pytest.raises(rt.Refused, match=f"R545 {said}"):
        pipeline.run_available(tmp_path / "check")
    assert asked(postgres, f"SELECT count(*) FROM {table}") == ["0"]
    column, kind = there.split(maxsplit=1)[0], "varchar(9)" if "char" in there else "numeric(12, 2)"
    asked(postgres, f"ALTER TABLE {table} ALTER {column} " + ("DROP NOT NULL" if "NULL" in there else f"TYPE {kind}"))
    pipeline.run_available(tmp_path / "check")
    assert asked(postgres, f"SELECT count(*) FROM {table}") == ["2"]
