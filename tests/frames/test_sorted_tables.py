"""Arrow tables in the order of columns, as Spark sorts them."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowtime.frames import tables
from rowtime.frames.tables import sorted_by

NUMBERS = st.integers(-(2**63), 2**63 - 1)
ROWS = st.lists(
    st.tuples(st.integers(0, 3) | NUMBERS, st.sampled_from(["", "a", "b", "é", "z", "𝄞", "\uffff"]), NUMBERS)
)


def table(rows: list[tuple[int, str, int]]) -> pa.Table:
    arrays = [pa.array([row[n] for row in rows], kind) for n, kind in enumerate((pa.int64(), pa.string(), pa.int64()))]
    numbers = pa.array(range(len(rows)), pa.int64())
    return pa.table([*arrays, numbers], names=["t", "w", "p", "number"])


def by_value(row: tuple[int, str, int]) -> tuple[int, bytes, int]:
    return row[0], row[1].encode(), row[2]


def values(of: pa.Table) -> list[tuple[int, str, int]]:
    return list(zip(*(of[name].to_pylist() for name in ("t", "w", "p")), strict=True))


@settings(deadline=None)
@given(ROWS)
def test_rows_are_sorted_by_all_columns_and_stay_whole(rows: list[tuple[int, str, int]]) -> None:
    result = sorted_by(before := table(rows), ["t", "w", "p"])
    assert result is not None
    assert values(result) == sorted(rows, key=by_value)
    assert [rows[number] for number in result["number"].to_pylist()] == values(result)
    assert (result is before) == (rows == sorted(rows, key=by_value))


@settings(deadline=None)
@given(ROWS, st.integers(1, 5), st.randoms())
def test_ordered_runs_are_put_in_order(rows: list[tuple[int, str, int]], runs: int, chance: object) -> None:
    ordered = sorted(rows, key=by_value)
    size = max(1, len(ordered) // runs)
    parts = [ordered[start : start + size] for start in range(0, len(ordered), size)]
    chance.shuffle(parts)  # type: ignore[attr-defined]
    result = sorted_by(table([row for part in parts for row in part]), ["t", "w", "p"])
    assert result is not None
    assert values(result) == ordered


def test_runs_are_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(tables.np, "lexsort")  # a sort would call it
    rows = table([(5, "a", 1), (6, "a", 0), (1, "b", 7), (1, "b", 9), (3, "a", 2)])
    result = sorted_by(rows, ["t", "w", "p"])
    assert result is not None
    assert result["number"].to_pylist() == [2, 3, 4, 0, 1]


def test_runs_that_interleave_are_sorted() -> None:
    result = sorted_by(table([(1, "a", 1), (4, "a", 0), (2, "b", 7), (9, "b", 9)]), ["t"])
    assert result is not None
    assert result["t"].to_pylist() == [1, 2, 4, 9]


def test_runs_that_end_and_begin_with_equal_values_are_sorted_by_the_other_columns() -> None:
    result = sorted_by(table([(4, "a", 2), (5, "a", 9), (3, "a", 1), (4, "a", 1)]), ["t", "w", "p"])
    assert result is not None
    assert values(result) == [(3, "a", 1), (4, "a", 1), (4, "a", 2), (5, "a", 9)]


def test_times_dates_and_booleans_are_sorted() -> None:
    columns = {
        "at": [datetime(2030, 1, 1, tzinfo=UTC), datetime(1900, 1, 1, tzinfo=UTC)],
        "day": [date(2030, 1, 1), date(1900, 1, 1)],
        "flag": [True, False],
        "small": pa.array([3, -3], pa.int8()),
    }
    for name in columns:
        result = sorted_by(pa.table(columns), [name])
        assert result is not None
        assert result.to_pylist() == pa.table(columns).to_pylist()[::-1]


@pytest.mark.parametrize("column", [[1, None], [1.5, float("nan")], [b"b", b"a"], [[2], [1]]])
def test_null_and_types_that_spark_sorts_otherwise_are_left_to_a_query(column: list[object]) -> None:
    assert sorted_by(pa.table({"c": column}), ["c"]) is None
