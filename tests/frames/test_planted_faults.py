"""Faults planted in the driver's computation: the comparisons with Spark, or a law, catch each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from rowtime.core.errors import Failure
from rowtime.frames import regular_expressions, translated
from rowtime.runtime.session import derive
from tests.frames import frame_faults as faults
from tests.frames import test_arrays as of_arrays
from tests.frames import test_frame as of_rows
from tests.frames import test_same_as_spark as of_values
from tests.laws import test_planted_faults as of_laws

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Check = Callable[["SparkSession"], None]


@pytest.fixture
def forget() -> Iterator[Callable[[], None]]:
    """Forget translations: those from before a fault would hide it, and its own would stay."""

    def forgotten() -> None:
        regular_expressions.regex.cache_clear()
        translated._scope.cache_clear()

    yield forgotten
    forgotten()


def _rows(what: str) -> Check:
    return lambda spark: of_rows.test_rows_equal_those_of_spark(spark, what)


def _values(types: tuple[str, str]) -> Check:
    return lambda spark: of_values.test_an_expression_has_the_value_of_spark(spark, *types)


def _odd(name: str) -> Check:
    return lambda spark: of_values.check_odd_texts(spark, getattr(of_values, name))


def _law(name: str) -> Check:
    return lambda spark: of_laws.check_law(derive(spark), name)


CHECKED: list[tuple[faults.Plant, str, Check]] = [
    *((plant, what, _rows(what)) for what, plant in faults.ROWS),
    *((plant, " ".join(types), _values(types)) for types, plant in faults.VALUES),
    *((plant, name, _law(name)) for name, plant in faults.LAWS),
    *((plant, "arrays", lambda spark: of_arrays.test_collected_values_equal_those_of_spark(spark, "bigint"))
      for plant in faults.ARRAYS),
    *((plant, name, _odd(name)) for name, plant in faults.ODD_TEXTS),
    *((plant, "halves", of_values.check_near_halves) for plant in faults.HALVES),
    *((plant, "elements", of_values.test_elements_are_those_of_spark) for plant in faults.ELEMENTS),
    (faults.nulls_are_sorted_last, "sorted rows",
     lambda spark: of_rows.test_rows_are_sorted_like_in_spark(spark, ["k", "n"])),
    (faults.both_zeros_are_groups, "a negative zero",
     lambda spark: of_rows.test_a_group_of_both_zeros_has_the_positive_one(spark, [-0.0])),
    (faults.sums_wrap_around, "a sum beyond its type", of_rows.test_a_sum_beyond_its_type_is_not_computed),
    (faults.what_cannot_be_computed_is_no_rows, "an overflow",
     lambda spark: of_rows.test_rows_that_cannot_be_computed_raise_and_are_not_dropped(spark, "n * 4")),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plant", "check"),
    [(plant, check) for plant, _, check in CHECKED],
    ids=[f"{plant.__name__}-{what}" for plant, what, _ in CHECKED],
)
def test_a_planted_fault_is_caught(
    spark: SparkSession, forget: Callable[[], None], monkeypatch: pytest.MonkeyPatch, plant: faults.Plant, check: Check
) -> None:
    plant(monkeypatch)
    forget()
    with pytest.raises((AssertionError, pytest.fail.Exception, Failure)):  # the engine may find it itself (R901)
        check(spark)
