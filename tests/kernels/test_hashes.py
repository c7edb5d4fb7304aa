"""Hashes of keys, which the state stores: equal keys have equal hashes, in this and every other version."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rowtime.kernels.hashes import hashes
from rowtime.kernels.identity import numbered

COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int32(), [None, 0, -1, 7]),
    "bigint": (pa.int64(), [None, 0, -(2**63), 2**63 - 1]),
    "boolean": (pa.bool_(), [None, True, False]),
    "double": (pa.float64(), [None, 0.5, math.nan, math.inf]),
    "decimal": (pa.decimal128(30, 2), [None, Decimal("0.05"), Decimal("-0.05"), Decimal(2**70)]),
    "text": (pa.string(), [None, "", "a", "aa", "ab", "ba", "ä", "long " * 50]),
    "bytes": (pa.binary(), [None, b"", b"\0", b"\0\0"]),
    "date": (pa.date32(), [None, 0, 1]),
    "timestamp": (pa.timestamp("us", "UTC"), [None, 0, -1]),
    "struct": (pa.struct({"a": pa.int32(), "b": pa.string()}), [{"a": 1, "b": "x"}, {"a": 1, "b": None}]),
    "list": (pa.list_(pa.float64()), [None, [], [None], [1.0], [1.0, 2.0], [2.0, 1.0], [math.nan]]),
    "lists": (pa.list_(pa.list_(pa.string())), [None, [["a", "b"]], [["a"], ["b"]], [[], ["a", "b"]], [None]]),
    "map": (pa.map_(pa.string(), pa.int32()), [None, [], [("a", 1)], [("a", 2)], [("b", 1)]]),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_equal_keys_have_equal_hashes_in_any_place_and_others_differ(name: str) -> None:
    kind, values = COLUMNS[name]
    found = hashes([pa.array(values, kind)])
    assert len(set(found.tolist())) == len(values)
    turned = pa.array([values[-1], *reversed(values), values[0]], kind).slice(1, len(values))
    assert hashes([turned]).tolist() == found[::-1].tolist()
    assert hashes([pa.array(values[:1], kind)]).tolist() == found[:1].tolist()


def test_keys_that_are_equal_in_group_by_have_one_hash() -> None:
    other = np.array([0x7FF8000000000001], np.int64).view(np.float64)[0]
    zero, minus, nan, another = hashes([pa.array([0.0, -0.0, math.nan, other])]).tolist()
    assert zero == minus
    assert nan == another


def test_the_order_of_columns_counts() -> None:
    one, other = pa.array([1, 2]), pa.array([2, 1])
    assert hashes([one, other]).tolist() == hashes([other, one])[::-1].tolist()
    assert hashes([one, other]).tolist() != hashes([other, one]).tolist()


@pytest.mark.parametrize("name", COLUMNS)
def test_equal_values_have_one_number_and_others_differ(name: str) -> None:
    kind, values = COLUMNS[name]
    found = numbered(pa.array([*values, *reversed(values)], kind).slice(1))
    assert len(set(found.tolist())) == len(values)
    assert found[: len(values) - 1].tolist() == found[len(values) - 1 : -1].tolist()[::-1]


def test_nested_values_that_are_equal_in_spark_have_one_number() -> None:
    other = np.array([0x7FF8000000000001], np.int64).view(np.float64)[0]
    floats = pa.array([0.0, -0.0, math.nan, other], pa.float64())
    for column in (
        floats,
        floats.cast(pa.float32()),
        pa.StructArray.from_arrays([floats], ["x"]),
        pa.ListArray.from_arrays(pa.array(range(5), pa.int32()), floats),
    ):
        zero, minus, nan, another = numbered(column).tolist()
        assert zero == minus != nan == another
        assert len(set(hashes([column]).tolist())) == 2
    assert numbered(pa.nulls(2)).tolist() == [0, 0]


def test_hashes_never_change_because_state_is_sorted_by_them() -> None:
    columns = [pa.array([1, None]), pa.array(["a", "rowtime"]), pa.array([Decimal("1.50"), None])]
    assert hashes(columns).tolist() == [-6082668906506955586, -7096128590335941895]


@pytest.mark.parametrize("kind", [kind for kind, _ in COLUMNS.values()], ids=COLUMNS)
def test_no_rows_have_no_hashes_and_nulls_have_one(kind: pa.DataType) -> None:
    assert hashes([pa.array([], kind)]).tolist() == []
    assert len(set(hashes([pa.nulls(3, kind)]).tolist())) == 1
