"""The laws over joins: the pairs are the oracle's in any cut, and nothing stays behind."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from rowtime.runtime.session import derive
from tests.laws.checking import check, outcome
from tests.laws.deeper_pipelines import close_items
from tests.laws.join_pipelines import JOINS
from tests.laws.pipelines import LONG, Law, shuffled
from tests.laws.test_deeper_laws import ticks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.testing.transcripts import ScriptItem


@pytest.mark.parametrize("law", JOINS, ids=[law.name for law in JOINS])
def test_a_join_gives_what_its_oracle_gives_in_any_cut(spark: SparkSession, law: Law) -> None:
    session = derive(spark)

    @ticks
    @given(close_items(fair=True))
    def holds(made: list[ScriptItem]) -> None:
        count = len(made)
        chance = random.Random(count)
        cut = sorted({*chance.sample(range(1, count + 1), min(2, count)), count})
        served = shuffled(made, count)
        check(law, served, outcome(session, law, served, cut, restart=chance.random() < 0.5))
        check(law, made, outcome(session, law, made, [count]))
        if LONG:
            check(law, made, outcome(session, law, made, range(1, count + 1)))

    holds()


@pytest.mark.parametrize("law", JOINS, ids=[law.name for law in JOINS])
def test_no_row_is_kept_after_the_end(spark: SparkSession, law: Law) -> None:
    from tests.laws.test_planted_faults import EXAMPLE

    found = outcome(derive(spark), law, EXAMPLE, [6, len(EXAMPLE)], restart=True)
    check(law, EXAMPLE, found)
    assert found.held == 0
