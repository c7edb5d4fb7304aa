"""Rows of one write are divided by their routes: most of them without a copy, few without keeping the others."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowtime.core.columns import ROUTE
from rowtime.operators.contract.state import Route
from rowtime.runtime.segment_writer import _rows_for


def table(routes: list[int]) -> pa.Table:
    return pa.table({"n": pa.array(range(len(routes)), pa.int64()), ROUTE: pa.array(routes, pa.int32())})


@settings(deadline=None)
@given(st.lists(st.integers(0, 3), max_size=20), st.integers(0, 3), st.lists(st.integers(0, 3), max_size=2))
def test_each_row_goes_to_its_routes(routes: list[int], key: int, more: list[int]) -> None:
    rows = _rows_for(table(routes), Route(key, {"n": "n"}, "n", tuple(more)))
    assert rows["n"].to_pylist() == [n for n, route in enumerate(routes) if route in (key, *more)]


@pytest.mark.parametrize(
    ("routes", "shares"), [([0, 1, 1, 1, 2], True), ([0, 1, 2, 2, 2], False), ([1, 0, 1, 1, 1], False)]
)
def test_only_most_rows_that_follow_each_other_are_not_copied(routes: list[int], shares: bool) -> None:
    whole = table(routes)
    rows = _rows_for(whole, Route(1, {"n": "n"}, "n"))
    ours, theirs = (of["n"].chunk(0).buffers()[1].address for of in (rows, whole))
    assert (ours == theirs) == shares
