"""The law of groups of groups: the stamp is the greatest rowtime that a row of the group can have."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from rowtime.expr.grids import on_grid
from rowtime.operators.rows.ends import Ends
from rowtime.plan.bind import group_plan, union_order
from tests.laws.checking import check_law
from tests.laws.deeper_pipelines import close_items
from tests.laws.grid_pipelines import pipelines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _at_the_width(patch: pytest.MonkeyPatch) -> None:
    """A column of groups is the rowtime less a width, as if every rowtime occurred."""
    real = group_plan.at_end
    patch.setattr(group_plan, "at_end", lambda key, *, closed: on_grid(real(key, closed=closed)))


def _by_spelling(patch: pytest.MonkeyPatch) -> None:
    """Inputs of a union have the same rowtimes only if their groups are spelled alike."""
    patch.setattr(union_order, "spelled", lambda way: way)


def _one_instant_early(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ends, "stamp_text", property(lambda ends: f"timestamp_micros({ends.end_text} - 1)"))


@pytest.mark.slow
def test_groups_of_groups_equal_an_oracle_that_lists_rowtimes(spark: SparkSession) -> None:
    check_law(spark, pipelines(), close_items(), 30)


@pytest.mark.slow
@pytest.mark.parametrize("plant", [_at_the_width, _by_spelling, _one_instant_early], ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_caught(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None]
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        check_law(spark, pipelines(), close_items(), 30)
