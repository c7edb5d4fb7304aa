"""`insert` takes rows as Python objects, Arrow, pandas, Polars and JSON, with the same meaning."""

from __future__ import annotations

import datetime as dt
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
from rowtime.client.home import Home
from rowtime.client.log_items import Rows
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
        ({"k": "a"}, "R216", "a single dict is given"),
        ([("a", 1)], "R216", "row 0 is not a dict but a value of the type tuple"),
        ([{"k": "a"}, None], "R216", "row 1 is not a dict but a value of the type NoneType"),
        (7, "R216", "a value of the type int is given"),
        (None, "R216", "a value of the type NoneType is given"),
        (pd.Series([1]), "R216", "a Series of pandas is given"),
        (pd.DataFrame({"k": [1, "a"]}), "R206", "Arrow rejects the columns"),
        (pd.DataFrame({"n": [1.5]}), "R206", "row 0, column n (int32): 1.5 does not fit"),
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


def test_the_hint_works(home: Home) -> None:
    with rt.writer("s", home=home.path) as writer:
        with pytest.raises(Refused, match=re.escape("insert([{…}])")):
            writer.insert({"k": "a"})  # type: ignore[arg-type]  # what the test is about
        writer.insert([{"k": "a"}])
        writer.insert('{"k": "b"}')
        writer.insert(pl.DataFrame({"k": ["c"]}))
    assert [row["k"] for row in stored(home)] == ["a", "b", "c"]
