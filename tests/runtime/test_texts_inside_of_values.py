"""CHAR and VARCHAR inside of arrays, maps and structs have their lengths at every edge: files, pumps and clients."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.client.arrow_types import arrow_schema
from rowtime.client.rows import batch
from rowtime.core.errors import Refused

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

KINDS = {
    "a": "ARRAY<VARCHAR(2)>",
    "s": "STRUCT<c: CHAR(3), `it's`: ARRAY<STRUCT<v: VARCHAR(1)>>, n: INT>",
    "m": "MAP<CHAR(2), CHAR(1)>",
}
FITS: dict[str, Any] = {
    "a": ["x", "xy  ", None],
    "s": {"c": "a", "it's": [{"v": "y "}, None], "n": 1},
    "m": {"k": "", "lm": None},
}
ROWS: list[dict[str, Any]] = [
    FITS,
    {"a": None, "s": None, "m": None},
    {"a": [], "s": {"c": None, "it's": None, "n": None}, "m": {}},
]
WRONG: list[dict[str, Any]] = [
    {**FITS, "a": ["x", "xyz"]},
    {**FITS, "s": {**FITS["s"], "c": "abcd"}},
    {**FITS, "s": {**FITS["s"], "it's": [None, {"v": "xy"}]}},
    {**FITS, "m": {"abc": "x"}},
    {**FITS, "m": {"k": "xy"}},
    {**FITS, "m": {"k": "x", "k ": "y"}},  # these become one key
]
FITTED = [
    {
        "a": ["x", "xy", None],
        "s": {"c": "a  ", "it's": [{"v": "y"}, None], "n": 1},
        "m": {"k ": " ", "lm": None},
    },
    *ROWS[1:],
]


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """The columns of a row, a map as a mapping."""
    return {name: dict(row[name]) if name == "m" and row[name] is not None else row[name] for name in KINDS}


def schema() -> pa.Schema:
    return arrow_schema({"columns": [{"name": name, "type": kind} for name, kind in KINDS.items()]})


@pytest.mark.slow
def test_texts_inside_of_other_values_had_no_length_at_the_gates_of_streams_and_pumps(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    table = pa.Table.from_pylist([*ROWS, *WRONG], pa.schema([field.remove_metadata() for field in schema()]))
    pq.write_table(table, tmp_path / "in" / "1.parquet")
    columns = ", ".join(f"{name} {kind}" for name, kind in KINDS.items())
    texts = re.sub(r"(VAR)?CHAR\(\d\)", "STRING", columns)
    using = f"USING parquet OPTIONS (path '{tmp_path}/in')"
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(f"""
        CREATE STREAM sized ({columns}) {using}; CREATE STREAM texts ({texts}) {using}; CREATE STREAM log ({columns});
        CREATE PUMP p AS INSERT INTO log SELECT STREAM * FROM texts;
        CREATE PUMP q AS INSERT INTO o SELECT STREAM * FROM log;
        CREATE PUMP r AS INSERT INTO o2 SELECT STREAM * FROM sized""")
    got: dict[str, list[Any]] = {"o": [], "o2": []}
    for name, into in got.items():
        pipeline.sink(name, lambda b, into=into: into.extend(map(plain, b.table().to_pylist()) if b.count else []))
    query = pipeline.run_available(tmp_path / "check")
    pipeline.run_available(tmp_path / "check")
    assert got == {"o": FITTED, "o2": FITTED}
    for gate in ("sized", "p"):
        assert query.ledger[gate] == {"in": 9, "accepted": 3, "MALFORMED": 6}
        refused = [row for path in query.rejected(gate) for row in pq.read_table(path).to_pylist()]
        broken = "assmmm"
        found = [plain(row)[name] for name, row in zip(broken, refused, strict=True)]
        assert found == [row[name] for name, row in zip(broken, WRONG, strict=True)], "as they came"
        assert [row["raw_record"] for row in refused] == [f"{name} {KINDS[name]}" for name in broken]


def test_a_client_could_insert_texts_inside_of_other_values_that_are_too_long() -> None:
    told = pa.schema([field.remove_metadata() for field in schema()])
    for given in (ROWS, pa.Table.from_pylist(ROWS, told)):
        assert [plain(row) for row in batch(given, schema()).columns.to_pylist()] == FITTED
    for wrong in WRONG:
        with pytest.raises(Refused, match=r"R206 row 1, column [asm] .*(more than \d char|equal at their declared)"):
            batch([ROWS[0], wrong], schema())
