"""`insert` takes rows as Python objects, Arrow, pandas, Polars and JSON, with the same meaning."""

from __future__ import annotations

import datetime as dt
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.client.arrow_types import arrow_type
from rowtime.client.home import Home
from rowtime.client.log_items import Rows
from rowtime.client.rows import batch
from rowtime.client.stream_log import scan
from rowtime.core.errors import Refused

NOON = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
DICTS: list[dict[str, Any]] = [
    {"rowtime": NOON, "k": "a", "n": 1, "price": Decimal("1.10"), "x": 0.5},
    {"rowtime": NOON + dt.timedelta(microseconds=1), "k": "ä", "n": None, "price": None, "x": None},
]
JSON = (
    '{"rowtime": "2024-01-01 12:00:00", "k": "a", "n": 1, "price": 1.10, "x": 0.5}\n\n'
    '{"rowtime": "2024-01-01T12:00:00.000001Z", "k": "ä", "n": null}\n'
)
FORMS: dict[str, Any] = {
    "dicts": DICTS,
    "a generator of dicts": (row for row in DICTS),
    "a table of Arrow": pa.Table.from_pylist(DICTS),
    "a record batch": pa.RecordBatch.from_pylist(DICTS),
    "a reader of record batches": pa.Table.from_pylist(DICTS).to_reader(),
    "pandas": pd.DataFrame(DICTS),
    "pandas with an index": pd.DataFrame(DICTS).set_index("rowtime"),
    "pandas, filtered": pd.DataFrame([DICTS[0], *DICTS]).iloc[1:],
    "Polars": pl.DataFrame(DICTS),
    "DuckDB": duckdb.from_arrow(pa.Table.from_pylist(DICTS)),
    "lines of JSON": JSON,
    "bytes of JSON": JSON.encode(),
}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    columns = [("k", "STRING"), ("n", "INT"), ("price", "DECIMAL(10, 2)"), ("x", "DOUBLE")]
    listed = [{"name": name, "type": kind, "nullable": True} for name, kind in columns]
    made.define("s", {"columns": listed, "format": None, "options": {}})
    return made


def stored(home: Home) -> list[dict[str, Any]]:
    log = home.log_path("s")
    files = [entry.path for entry in scan(log, {})["main"] if isinstance(entry, Rows)]
    found = [row for path in files for row in pq.read_table(f"{log}/{path}").to_pylist()]
    return [{"rowtime": row["__t"], **{name: row[name] for name in ("k", "n", "price", "x")}} for row in found]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_rows(home: Home, form: str) -> None:
    with rt.writer("s", home=home.path) as writer:
        assert writer.insert(FORMS[form]) == 0
        assert writer.position == 2
    assert stored(home) == DICTS


@pytest.mark.parametrize(
    ("given", "code", "what"),
    [
        ({"k": "a"}, "R216", "insert takes a list of rows, not a single dict"),
        ([("a", 1)], "R216", "row 0 is not a dict but a value of the type tuple"),
        ([{"k": "a"}, None], "R216", "row 1 is not a dict but a value of the type NoneType"),
        (7, "R216", "a value of the type int was given, but insert takes rows"),
        (None, "R216", "a value of the type NoneType was given"),
        (pd.Series([1]), "R216", "a Series of pandas was given"),
        (pl.Series([1]), "R216", "a single column was given (Series), but insert takes rows"),
        (pa.chunked_array([[1]]), "R216", "a single column was given (ChunkedArray), but insert takes rows"),
        (pd.DataFrame({"k": [1, "a"]}), "R206", "Arrow rejects the columns"),
        (pd.DataFrame({"n": [1.5]}), "R206", "row 0, column n (INT): 1.5 does not fit: it has a fraction"),
        (pl.DataFrame({"k": [1]}), "R206", "row 0, column k"),
        (pl.DataFrame({"z": [1]}), "R205", "the stream has no column z"),
        ('{"k": 1', "R206", "line 1 of the text is not JSON"),
        ('\n["a"]', "R206", "line 2 of the text is not a JSON object"),
        (b"\xff", "R206", "the text is not UTF-8"),
    ],
)
def test_a_value_that_is_not_rows_is_refused_and_nothing_is_written(
    home: Home, given: Any, code: str, what: str
) -> None:
    with rt.writer("s", home=home.path) as writer, pytest.raises(Refused, match=re.escape(what)) as refused:
        writer.insert(given)
    assert [problem.code for problem in refused.value.problems] == [code]
    assert not scan(home.log_path("s"), {}).get("main")


@pytest.mark.parametrize(
    ("kind", "value", "why"),
    [
        ("INT", "one", "(INT): 'one' does not fit: it is a text, and the column takes a number"),
        ("INT", 1.5, "it has a fraction"),
        ("INT", 3_000_000_000, "it is out of range"),
        ("TINYINT", True, "(TINYINT): True does not fit: it is a boolean, and the column takes a number"),
        ("STRING", 7, "(STRING): 7 does not fit: it is a number, and the column takes a text"),
        ("DOUBLE", "x", "(DOUBLE): 'x' does not fit: it is a text, and the column takes a number"),
        ("BOOLEAN", 1, "it is a number, and the column takes a boolean"),
        ("DECIMAL(5, 2)", "12345.67", "(DECIMAL(5, 2)): '12345.67' does not fit: it has too many digits"),
        ("DECIMAL(5, 2)", "much", "it is not a number"),
        ("TIMESTAMP", "soon", "(TIMESTAMP): 'soon' does not fit: it is not a timestamp, such as 2024-01-31 23:59:59"),
        ("DATE", "soon", "(DATE): 'soon' does not fit: it is not a date, such as 2024-01-31"),
        ("ARRAY<MAP<STRING, INT>>", 7, "(ARRAY<MAP<STRING, INT>>): 7 does not fit: "),
        ("STRUCT<a: BIGINT>", {"b": 1}, "(STRUCT<a: BIGINT>): {'b': 1} does not fit: it has no field b"),
    ],
)
def test_a_misfit_is_explained_with_types_of_sql(kind: str, value: object, why: str) -> None:
    schema = pa.schema([pa.field("v", arrow_type(kind))])
    for given in ([{"v": value}], *([pa.table({"v": [value]})] if kind != "DATE" else [])):
        with pytest.raises(Refused) as refused:
            batch(given, schema)
        assert f"R206 row 0, column v {why}" in str(refused.value) or f" does not fit: {why}" in str(refused.value)


def test_the_hint_works(home: Home) -> None:
    with rt.writer("s", home=home.path) as writer:
        with pytest.raises(Refused, match=re.escape("insert([{…}])")):
            writer.insert({"k": "a"})  # type: ignore[arg-type]  # what the test is about
        writer.insert([{"k": "a"}])
        writer.insert('{"k": "b"}')
        writer.insert(pl.DataFrame({"k": ["c"]}))
    assert [row["k"] for row in stored(home)] == ["a", "b", "c"]


@pytest.mark.parametrize("depth", [500, 995, 2_000, 100_000])
def test_deeply_nested_json_is_refused_with_its_line(home: Home, depth: int) -> None:
    line = f'{{"k": {"[" * depth}1{"]" * depth}}}'
    with rt.writer("s", home=home) as log, pytest.raises(Refused, match="R206") as refused:
        log.insert(f'{{"k": "a"}}\n{line}')
    assert depth == 500 or "line 2 of the text has more arrays" in str(refused.value)
    deep: Any = 1
    for _ in range(depth):
        deep = [deep]
    with rt.writer("s", home=home) as log, pytest.raises(Refused, match="R206"):
        log.insert([{"k": deep}])
    assert not scan(home.log_path("s"), {})


def test_a_nested_part_is_sent_as_a_text(home: Home) -> None:
    nested = f"{'[' * 2_000}1{']' * 2_000}"
    with rt.writer("s", home=home) as log:
        log.insert(json.dumps({"k": nested}))
    assert stored(home)[0]["k"] == nested
