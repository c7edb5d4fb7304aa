"""Rows on their way from one level of a tick to the next are the same behind it, and as few bytes as they can be."""

from __future__ import annotations

import pickle
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pytest

from rowtime.frames.frame import Frame
from rowtime.runtime.executors.exchanged import Exchanged, united
from rowtime.runtime.late_session import NoSession

if TYPE_CHECKING:
    from rowtime.runtime.tick import RunningTick

FIELDS: Final = [
    ("k", "string"),
    ("n", "int"),
    ("d", "decimal(10,2)"),
    ("t", "timestamp"),
    ("l", "array<int>"),
    ("f", "double"),
]


class Tick:
    spark = NoSession()


def frame(rows: int, alike: int = 0) -> Frame:
    numbers = [0 if alike else n for n in range(rows)]
    table = pa.table(
        {
            "k": pa.array([f"k{n}" for n in numbers], pa.string()),
            "n": pa.array([None if n % 5 == 1 else n for n in range(rows)], pa.int32()),
            "d": pa.array([Decimal(n) / 4 for n in range(rows)], pa.decimal128(10, 2)),
            "t": pa.array([datetime(2024, 1, 1, 0, n % 60) for n in numbers], pa.timestamp("us", "UTC")),  # noqa: DTZ001
            "l": pa.array([[n, None] for n in range(rows)], pa.list_(pa.int32())),
            "f": pa.array([float("nan") if n % 3 else -0.0 for n in range(rows)]),
        }
    )
    return Frame.of(NoSession(), table, FIELDS)  # type: ignore[arg-type]


def behind(given: list[Exchanged]) -> pa.Table:
    tick: RunningTick = Tick()  # type: ignore[assignment]
    return united(tick, [pickle.loads(pickle.dumps(one)) for one in given]).toArrow()  # noqa: S301 - our own


@pytest.mark.parametrize("rows", [0, 1, 2, 97])
@pytest.mark.parametrize("alike", [0, 1])
def test_rows_are_the_same_behind_it(rows: int, alike: int) -> None:
    before = frame(rows, alike)
    assert str(behind([Exchanged.of(before)])) == str(before.toArrow())
    assert Exchanged.of(before).fields == before.dtypes


def test_values_that_all_rows_have_are_sent_once() -> None:
    given = Exchanged.of(frame(50, alike=1).selectExpr("n", "k", "t"))
    assert {*given.alike} == {"k", "t"}
    assert given.rows.column_names == ["n"]
    different = Exchanged.of(frame(50).selectExpr("n", "k", "t"))
    assert not different.alike
    both = behind([given, different])
    assert both["k"].to_pylist() == ["k0"] * 50 + [f"k{n}" for n in range(50)]


def test_only_the_columns_that_are_read_are_sent() -> None:
    given = Exchanged.of(frame(5), ["f", "k"])
    assert [name for name, _ in given.fields] == ["k", "f"]
    assert behind([given]).column_names == ["k", "f"]


@pytest.mark.parametrize("many", [1, 2, 5])
def test_each_row_goes_to_one_task(many: int) -> None:
    given = Exchanged.of(frame(97))
    parts = [behind([part])["d"].to_pylist() for part in given.divided(["k", "n"], many)]
    assert sorted(value for part in parts for value in part) == [Decimal(n) / 4 for n in range(97)]
    assert len(parts) == many


def test_a_slice_is_sent_without_the_rest() -> None:
    """Arrow's own pickle has the whole buffers of the table."""
    table = pa.table({"n": pa.array(range(100_000)), "k": ["x" * 20] * 100_000}).slice(500, 3)
    rows: Frame = Frame.of(NoSession(), table, [("n", "bigint"), ("k", "string")])  # type: ignore[arg-type]
    packed = pickle.dumps(Exchanged.of(rows))
    assert len(packed) < 2_000
    assert behind([pickle.loads(packed)])["n"].to_pylist() == [500, 501, 502]  # noqa: S301 - our own
