"""Rows of one write are divided by their routes: most of them without a copy, few without keeping the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowtime.core.columns import ROUTE
from rowtime.frames.frame import Frame
from rowtime.frames.queries import FEW_ROWS
from rowtime.operators.contract.state import Route
from rowtime.runtime.route_rows import BLOCK, Chosen, rows_for
from rowtime.runtime.segment_writer import _narrowed, repeated, write_routes

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def table(routes: list[int]) -> pa.Table:
    return pa.table({"n": pa.array(range(len(routes)), pa.int64()), ROUTE: pa.array(routes, pa.int32())})


@settings(deadline=None)
@given(st.lists(st.integers(0, 3), max_size=20), st.integers(0, 3), st.lists(st.integers(0, 3), max_size=2))
def test_each_row_goes_to_its_routes(routes: list[int], key: int, more: list[int]) -> None:
    rows = rows_for(table(routes), Route(key, {"n": "n"}, "n", tuple(more))).whole()
    assert rows["n"].to_pylist() == [n for n, route in enumerate(routes) if route in (key, *more)]


@settings(deadline=None)
@given(st.lists(st.integers(0, 1), min_size=1, max_size=40), st.integers(1, 7), st.integers(0, 20), st.integers(1, 20))
def test_many_rows_are_copied_in_blocks(routes: list[int], size: int, start: int, count: int) -> None:
    chosen = Chosen(table(routes), np.flatnonzero(np.array(routes) == 1)).part(start, count)
    expected = [n for n, route in enumerate(routes) if route == 1][start : start + count]
    blocks = [block["n"].to_pylist() for block in chosen.blocks(size)]
    assert [n for block in blocks for n in block] == expected == chosen.whole()["n"].to_pylist()
    assert [len(block) for block in blocks[:-1]] == [size] * (len(blocks) - 1)


@pytest.mark.parametrize(
    ("routes", "shares"), [([0, 1, 1, 1, 2], True), ([0, 1, 2, 2, 2], False), ([1, 0, 1, 1, 1], False)]
)
def test_only_most_rows_that_follow_each_other_are_not_copied(routes: list[int], shares: bool) -> None:
    whole = table(routes)
    rows = rows_for(whole, Route(1, {"n": "n"}, "n")).whole()
    ours, theirs = (of["n"].chunk(0).buffers()[1].address for of in (rows, whole))
    assert (ours == theirs) == shares


def local(spark: SparkSession, rows: pa.Table) -> Any:
    return Frame.of(spark, rows, [("n", "bigint"), ("a.b", "bigint"), ("c", "bigint"), (ROUTE, "int")])


@pytest.mark.parametrize("of", [lambda _, rows: rows, local, lambda spark, rows: spark.createDataFrame(rows)])
def test_columns_that_no_route_has_are_not_computed(spark: SparkSession, of: Any) -> None:
    many = range(FEW_ROWS + 1)
    rows = of(spark, pa.table({"n": many, "a.b": many, "c": many, ROUTE: pa.nulls(len(many), pa.int32())}))
    route = Route(0, {"n": "n"}, "a.b")
    narrowed = _narrowed(rows, {"state": route})
    assert (narrowed if isinstance(narrowed, pa.Table) else narrowed.toArrow()).column_names == ["n", "a.b", ROUTE]
    assert _narrowed(narrowed, {"state": route}) is narrowed


def test_columns_whose_names_differ_in_case_alone_stay(spark: SparkSession) -> None:
    rows = spark.createDataFrame(pa.table({"n": [1], "c": [1], "C": [2]}))
    assert _narrowed(rows, {"state": Route(0, {"n": "n"}, "n")}) is rows


def test_parquet_lists_the_values_only_of_columns_that_repeat_them(tmp_path: Path) -> None:
    """Of more rows than a row group has; in a small file, and with nested columns, of all of them."""
    many = BLOCK + 10
    rows = pa.table(
        {
            "at": pa.array(range(many), pa.timestamp("us", "UTC")),
            "k": [number % 1000 for number in range(many)],
            "text": ["a"] * many,
        }
    )
    assert repeated(rows) == ["k", "text"]
    assert repeated(rows.slice(0, BLOCK)) is True
    assert repeated(rows.append_column("l", pa.array([[1]] * many))) is True
    routes = {"out": Route(0, {name: name for name in rows.column_names}, "us")}
    more = {ROUTE: pa.array([0] * many, pa.int32()), "us": pa.array(range(many))}
    written, _ = write_routes(
        pa.table({**dict(zip(rows.column_names, rows.columns, strict=True)), **more}), tmp_path, "t", routes
    )
    file = pq.ParquetFile(tmp_path / written["out"][0].path)
    group = file.metadata.row_group(0)
    used = [group.column(n).has_dictionary_page for n in range(group.num_columns)]
    assert used == [False, True, True]
    assert file.read().equals(rows)
