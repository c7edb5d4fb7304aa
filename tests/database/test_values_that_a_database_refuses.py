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
