"""The laws over MATCH_RECOGNIZE: the oracle's rows with any cut, any order of writers, and restarts."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

import rowtime.kernels.matching.matcher as matcher_module
from rowtime.runtime.session import derive
from tests.laws.checking import check, outcome
from tests.laws.deeper_pipelines import close_items
from tests.laws.fault_rows import EXAMPLE
from tests.laws.match_pipelines import MATCHES
from tests.laws.pipelines import LONG, Law, shuffled
from tests.laws.test_deeper_laws import ticks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.testing.transcripts import ScriptItem

pytestmark = pytest.mark.sampled(8)

IN_TURN = [  # every other one runs with the slow tests
    pytest.param(law, id=law.name, marks=[pytest.mark.slow] if n % 2 else []) for n, law in enumerate(MATCHES)
]


@pytest.mark.parametrize("law", IN_TURN)
def test_matches_equal_the_oracle_in_any_cut(spark: SparkSession, law: Law) -> None:
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


@pytest.mark.parametrize("law", IN_TURN)
def test_no_state_is_left_after_the_end(spark: SparkSession, law: Law) -> None:
    found = outcome(derive(spark), law, EXAMPLE, [6, len(EXAMPLE)])
    check(law, EXAMPLE, found)
    assert found.held == 0


@pytest.mark.parametrize("law", MATCHES[:2], ids=lambda law: law.name)
def test_starts_are_tried_in_pieces(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, law: Law) -> None:
    monkeypatch.setattr(matcher_module, "AT_ONCE", 1)
    check(law, EXAMPLE, outcome(derive(spark), law, EXAMPLE, [len(EXAMPLE)]))
