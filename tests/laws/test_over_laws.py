"""The laws over OVER: the oracle's rows with any cut, any order of writers, and restarts."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

import rowtime.operators.over.slices as slices_module
from rowtime.runtime.session import derive
from tests.laws.checking import check, outcome
from tests.laws.deeper_pipelines import close_items
from tests.laws.fault_rows import EXAMPLE, item
from tests.laws.over_pipelines import OVER
from tests.laws.pipelines import LONG, Law, shuffled
from tests.laws.test_deeper_laws import ticks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.testing.transcripts import ScriptItem

pytestmark = pytest.mark.sampled(8)


IN_TURN = [  # every other one runs with the slow tests
    pytest.param(law, id=law.name, marks=[pytest.mark.slow] if n % 2 else []) for n, law in enumerate(OVER)
]


@pytest.mark.parametrize("law", IN_TURN)
def test_a_window_equals_its_oracle_in_any_cut(spark: SparkSession, law: Law) -> None:
    session = derive(spark)

    @ticks
    @given(close_items())
    def holds(made: list[ScriptItem]) -> None:
        count = len(made)
        chance = random.Random(count)
        cut = sorted({*chance.sample(range(1, count + 1), min(2, count)), count})
        served = shuffled(made, count)
        check(law, served, outcome(session, law, served, cut, restart=True))
        check(law, made, outcome(session, law, made, [count]))
        if LONG:
            check(law, made, outcome(session, law, made, range(1, count + 1)))

    holds()


FEW = ("ranges of time a key", "running aggregates a key")
STATES = [pytest.param(law, marks=[] if law.name in FEW else [pytest.mark.slow], id=law.name) for law in OVER]


@pytest.mark.parametrize("law", STATES)
def test_no_state_is_left_after_the_end(spark: SparkSession, law: Law) -> None:
    found = outcome(derive(spark), law, EXAMPLE, [6, len(EXAMPLE)])
    check(law, EXAMPLE, found)
    assert found.held == 0


@pytest.mark.parametrize("name", [*FEW, "numbers of rows over a union"])
def test_many_rows_are_processed_in_parallel_slices(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(slices_module, "SLICE", 1)
    law = {law.name: law for law in OVER}[name]
    check(law, EXAMPLE, outcome(derive(spark), law, EXAMPLE, [4, len(EXAMPLE)]))


def test_a_key_that_lives_on_keeps_its_rows(spark: SparkSession) -> None:
    law = {law.name: law for law in OVER}["keys that expire"]
    made = [item(number, "a", "x", number) for number in range(1, 11)]
    check(law, made, outcome(derive(spark), law, made, range(1, 11)))
