"""Spark and rowtime read back what CSV and JSON sinks write: every value is unchanged, or its type is refused."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from rowtime.plan.program import compile_script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = "i INT, s STRING, n TIMESTAMP_NTZ, t TIMESTAMP, d DOUBLE, e DECIMAL(38, 10), dd DATE"
NESTED = "b BINARY, a ARRAY<STRING>, m MAP<STRING, DOUBLE>, x STRUCT<b: BINARY, n: TIMESTAMP_NTZ>"
OPTIONS = {"csv": {"multiLine": "true", "nullValue": "\\N", "header": "true"}, "json": {}}
TEXTS = [
    "a,b",
    'q"q',
    "new\nline",
    "",
    None,
    " sp ",
    "\\back",
    "tail\\",
    'a\\"b',
    "cr\rx",
    "cr\r\nlf",
    "#c",
    "\u2028",
    '"',
]
NUMBERS = [float("nan"), float("inf"), float("-inf"), -0.0, 5e-324, 1e300, None, 0.1]
OLD = [dt.datetime.fromisoformat(text) for text in ("1582-10-10 10:00:00.123456", "1700-02-28 23:59:59.999999")]


def rows() -> list[dict[str, Any]]:
    found = []
    for i, text in enumerate(TEXTS):
        at = OLD[i % 2] if i % 3 else None
        number = NUMBERS[i % len(NUMBERS)]
        whole = {
            "i": i, "s": text, "n": at, "t": at and at.replace(tzinfo=dt.UTC), "d": number,
            "e": Decimal("1234567890123456789012345678.0123456789"), "dd": dt.date(1, 1, 1), "b": b"\x00\xff",
            "a": [text, None], "m": {"k": number}, "x": {"b": b"", "n": at}, "rowtime": i,
        }  # fmt: skip
        found.append(whole)
    return found


def script(folder: Path, *, options: bool) -> str:
    """Streams of both kinds; ``options``: those that readers need."""
    made = f"CREATE STREAM a ({COLUMNS}, {NESTED});"
    for kind, told in OPTIONS.items():
        columns = COLUMNS if kind == "csv" else f"{COLUMNS}, {NESTED}"
        given = {k: v for k, v in told.items() if options or k == "header"}
        listed = "".join(f", {name} '{value}'" for name, value in given.items())
        made += f"CREATE STREAM {kind}s ({columns}) USING {kind} OPTIONS (path '{folder}/{kind}'{listed});"
    return made


def plain(table: Any) -> list[str]:
    """Rows as text that distinguishes NaN, minus zero and NULL; without the rowtime."""
    listed = table.to_pylist() if hasattr(table, "to_pylist") else table
    return [repr({name: value for name, value in row.items() if name != "rowtime"}) for row in listed]


@pytest.mark.slow
def test_texts_and_times_changed_on_their_way_through_text_files(spark: SparkSession, tmp_path: Path) -> None:
    names = {kind: COLUMNS if kind == "csv" else f"{COLUMNS}, {NESTED}" for kind in OPTIONS}
    simple = ["i", "s", "n", "t", "d", "e", "dd"]
    listed = {"csv": simple, "json": [*simple, "b", "a", "m", "x"]}
    writing = script(tmp_path, options=False) + "".join(
        f"CREATE PUMP p{kind} AS INSERT INTO {kind}s SELECT STREAM {', '.join(listed[kind])} FROM a;"
        for kind in OPTIONS
    )
    given = rt.Pipeline(spark, home=tmp_path / "home").sql(writing)
    for stream in given.compile().defines:
        given.home.define(stream.name, stream.as_json(), replace=True)
    with rt.writer("a", home=tmp_path / "home") as log:
        log.insert(rows())
    given.run_available(tmp_path / "check")
    assert rt.verify(tmp_path / "check", spark=spark, home=tmp_path / "home").equal

    reading = rt.Pipeline(spark, home=tmp_path / "home2").sql(script(tmp_path, options=True))
    got: dict[str, list[Any]] = {kind: [] for kind in OPTIONS}
    for kind in OPTIONS:
        reading.sink(f"o{kind}", lambda batch, kind=kind: got[kind].extend(batch.table().to_pylist()))
        reading.sql(f"CREATE PUMP r{kind} AS INSERT INTO o{kind} SELECT STREAM * FROM {kind}s;")
    reading.run_available(tmp_path / "check2")
    for kind, options in OPTIONS.items():
        wanted = [{name: row[name] for name in listed[kind]} for row in rows()]
        reader = spark.read.options(**options).schema(f"rowtime TIMESTAMP, {names[kind]}").format(kind)
        read = reader.load(str(tmp_path / kind)).orderBy("i").toArrow().to_pylist()
        for found in (read, got[kind]):
            assert plain(_alike(found)) == plain(_alike(wanted)), kind


def _alike(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Arrow returns maps as lists of pairs, and times in UTC with another name of the zone."""

    def value(one: Any) -> Any:
        if isinstance(one, list) and one and isinstance(one[0], tuple):
            return dict(one)
        return one.replace(tzinfo=dt.UTC) if isinstance(one, dt.datetime) and one.tzinfo else one

    return [{name: value(one) for name, one in row.items()} for row in found]


@pytest.mark.parametrize(
    ("kind", "column", "refused"),
    [
        ("csv", "v BINARY", True),
        ("csv", "v ARRAY<INT>", True),
        ("csv", "v STRUCT<a: INT>", True),
        ("csv", "v VARCHAR(3)", False),
        ("json", "v MAP<STRING, INT>", False),
        ("json", "v ARRAY<MAP<INT, INT>>", True),
        ("json", "v BINARY", False),
        ("json", "v INTERVAL DAY TO SECOND", False),
        ("parquet", "v INTERVAL DAY TO SECOND", True),
        ("parquet", "v MAP<INT, BINARY>", False),
        ("parquet", "v ARRAY<INTERVAL DAY TO SECOND>", True),
    ],
)
def test_a_type_that_cannot_be_read_back_was_written(kind: str, column: str, refused: bool) -> None:
    sql = f"""CREATE STREAM a ({column});
    CREATE STREAM o ({column}) USING {kind} OPTIONS (path 'out');
    CREATE PUMP p AS INSERT INTO o SELECT STREAM v FROM a;"""
    # logs cannot store these
    problems = [problem for problem in compile_script(sql).problems if problem.code != "R208"]
    assert [(problem.code, problem.place and problem.place.line) for problem in problems] == [("R530", 3)] * refused


def test_a_null_alone_on_its_line_was_lost() -> None:
    sql = """CREATE STREAM a (v STRING{0});
    CREATE STREAM o (v STRING{0}) USING csv OPTIONS (path 'out', rowtime.column ''{1});
    CREATE PUMP p AS INSERT INTO o SELECT STREAM v FROM a;"""
    assert [problem.code for problem in compile_script(sql.format("", "")).problems] == ["R530"]
    assert not compile_script(sql.format("", ", nullValue 'NULL'")).problems
    assert not compile_script(sql.format(" NOT NULL", "")).problems
