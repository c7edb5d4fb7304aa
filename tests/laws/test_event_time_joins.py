"""The law of joins over columns of event times: however the condition is spelled, the pairs are those of a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rowtime.core.errors import RowtimeError
from rowtime.plan.bind import join_range
from tests.laws.checking import check_law
from tests.laws.deeper_pipelines import close_items
from tests.laws.event_time_joins import pipelines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.slow
def test_joins_over_event_times_equal_an_oracle_over_all_rows(spark: SparkSession) -> None:
    check_law(spark, pipelines(), close_items(fair=True), 30)


def _whole_units_taken_for_times(patch: pytest.MonkeyPatch) -> None:
    real = join_range.between

    def narrow(*given: object) -> join_range.Range:
        found = real(*given)  # type: ignore[arg-type]
        low, high = found.low, found.high
        unit = 1_000_000
        low = None if low is None or low % unit != 1 else low + unit - 1
        high = None if high is None or high % unit != unit - 1 else high - unit + 1
        return replace(found, low=found.low if low is None else low, high=found.high if high is None else high)

    for module in ("joins", "join_times"):
        patch.setattr(f"rowtime.plan.bind.{module}.between", narrow)


def _sides_exchanged(patch: pytest.MonkeyPatch) -> None:
    real = join_range._Sum.plus
    patch.setattr(join_range._Sum, "plus", lambda one, other, sign=1: real(other, one, sign))


@pytest.mark.slow
@pytest.mark.parametrize("plant", [_whole_units_taken_for_times, _sides_exchanged], ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_caught(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None]
) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, RowtimeError)) as caught:
        check_law(spark, pipelines(), close_items(fair=True), 30)
    # Other rows, or no range that rowtimes prove.
    assert isinstance(caught.value, AssertionError) or "R152" in str(caught.value)
