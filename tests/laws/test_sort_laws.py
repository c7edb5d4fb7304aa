"""The laws of gates that use more than the rows' times: bounds set by hand, arrival times, other rows."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tests.laws.arrival_pipelines import BY_ARRIVAL, items_by_arrival
from tests.laws.checking import check, check_items, outcome
from tests.laws.deeper_pipelines import close_items
from tests.laws.guard_pipelines import FILLED, GUARDS_BY_ARRIVAL, VOTED
from tests.laws.pipelines import LONG, SET, Law
from tests.laws.set_bound_pipelines import BY_HAND, items_with_a_bound

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.testing.transcripts import ScriptItem

pytestmark = pytest.mark.sampled(8)


@pytest.mark.parametrize("law", BY_HAND, ids=[law.name for law in BY_HAND])
def test_a_bound_that_is_set_is_an_item_in_any_cut(spark: SparkSession, law: Law) -> None:
    check_items(spark, law, items_with_a_bound(), _in_cuts)


@pytest.mark.parametrize("law", [*BY_ARRIVAL, *GUARDS_BY_ARRIVAL], ids=lambda law: law.name)
def test_the_arrival_time_decides_the_same_in_any_cut(spark: SparkSession, law: Law) -> None:
    check_items(spark, law, items_by_arrival(), _in_cuts)


@pytest.mark.parametrize("law", [VOTED, FILLED], ids=lambda law: law.name)
def test_the_guard_of_a_stream_decides_the_same_in_any_cut(spark: SparkSession, law: Law) -> None:
    check_items(spark, law, close_items(untimed=law is VOTED, fair=law is FILLED), _in_cuts)


def _in_cuts(session: SparkSession, law: Law, made: list[ScriptItem]) -> None:
    """Compare several cuts with the oracle; a bound that is set by hand ends a tick in each."""
    count = len(made)
    chance = random.Random(count)
    there = [item.number for item in made if item.stream == SET]
    cut = sorted({*chance.sample(range(1, count + 1), min(2, count)), *there, count})
    check(law, made, outcome(session, law, made, cut, restart=chance.random() < 0.5))
    check(law, made, outcome(session, law, made, sorted({*there, count})))
    if LONG:
        check(law, made, outcome(session, law, made, range(1, count + 1)))
