"""Faults planted in the rows of a query: the comparison with batch finds each of them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.queries.agreement import differences, same_stream

BATCH = pa.table(
    {
        "k": ["x", None, "x", "y"],
        "n": pa.array([1, 2, 1, None], pa.int64()),
        "d": [0.1, 2e12, 0.1, None],
        "l": pa.array([[1.5, None], [], [1.5, None], None], pa.list_(pa.float64())),
    }
)
TIMES = pa.array([dt.datetime(2024, 1, 1, 10, minute, tzinfo=dt.UTC) for minute in (0, 0, 1, 5)])
FOUND = BATCH.take([1, 0, 3, 2]).add_column(0, "rowtime", TIMES)


def put(name: str, value: pa.Array) -> pa.Table:
    return FOUND.set_column(FOUND.column_names.index(name), name, value)


def scaled(by: float) -> pa.Table:
    return put("d", pc.multiply(FOUND["d"], by))


FAULTS: dict[str, Callable[[], pa.Table]] = {
    "a row is missing": lambda: FOUND.slice(1),
    "all rows are missing": lambda: pa.table({}),
    "a row comes twice": lambda: FOUND.take([0, 1, 2, 2, 3]),
    "a row stands for another": lambda: put("k", pa.array([None, "x", "y", "y"])),
    "one of two rows alike is another": lambda: FOUND.take([0, 1, 2, 2]),
    "a number is changed": lambda: put("n", pa.array([2, 1, None, 3], pa.int64())),
    "a null is a value": lambda: put("n", pa.array([2, 1, 0, 1], pa.int64())),
    "a value is null": lambda: put("k", pa.array([None, "x", "y", None])),
    "the values of two rows are exchanged": lambda: put("n", pa.array([1, 2, None, 1], pa.int64())),
    "a double differs in its eighth digit": lambda: scaled(1 + 1e-8),
    "a double is not a number": lambda: put("d", pa.array([float("nan"), 0.1, None, 0.1])),
    "a list is longer": lambda: put("l", pa.array([[], [1.5, None], None, [1.5, None, None]], pa.list_(pa.float64()))),
    "a list is in another order": lambda: put("l", pa.array([[], [None, 1.5], None, [1.5, None]])),
    "a type is another": lambda: put("n", FOUND["n"].cast(pa.int32())),
    "a column has another name": lambda: FOUND.rename_columns(["rowtime", "k", "m", "d", "l"]),
    "columns are exchanged": lambda: FOUND.select(["rowtime", "n", "k", "d", "l"]),
    "the order of time is broken": lambda: FOUND.take([0, 2, 1, 3]),
}


def test_the_rows_of_batch_in_another_order_agree() -> None:
    assert differences(FOUND, BATCH) == []
    assert differences(FOUND.slice(0, 0), BATCH.slice(0, 0)) == []
    assert same_stream(FOUND, FOUND)


def test_doubles_may_differ_in_their_last_digits() -> None:
    assert scaled(1 + 1e-12)["d"] != FOUND["d"]
    assert differences(scaled(1 + 1e-12), BATCH) == []
    assert same_stream(scaled(1 + 1e-12), FOUND)


@pytest.mark.parametrize("fault", FAULTS)
def test_the_comparison_finds_a_planted_fault(fault: str) -> None:
    assert differences(FAULTS[fault](), BATCH) != []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_stream_with_a_planted_fault_is_not_the_same_stream(fault: str) -> None:
    assert not same_stream(FAULTS[fault](), FOUND)


@pytest.mark.parametrize("faulty", [FOUND.take([1, 0, 2, 3]), put("rowtime", TIMES.take([0, 2, 2, 3]))])
def test_streams_differ_by_order_and_rowtimes_alone(faulty: pa.Table) -> None:
    assert differences(faulty, BATCH) == []
    assert not same_stream(faulty, FOUND)
