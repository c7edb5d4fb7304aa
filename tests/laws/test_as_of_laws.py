"""The laws over joins as of a time: the rows are the oracle's with any cut, and no state remains."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

import rowtime.plan.bind.as_of as as_of_module
from rowtime.kernels.window_functions import Nth
from rowtime.operators.over.over import Over
from rowtime.operators.streams.union_all import UnionAll
from rowtime.runtime.session import derive
from tests.laws.as_of_pipelines import AS_OF
from tests.laws.checking import check, check_cuts, outcome
from tests.laws.deeper_pipelines import close_items
from tests.laws.fault_rows import EXAMPLE
from tests.laws.pipelines import Law
from tests.laws.test_deeper_laws import ticks
from tests.laws.test_join_laws import MEETING, TICKS

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from rowtime.testing.transcripts import ScriptItem

pytestmark = pytest.mark.sampled(8)

FEW = ("the last row of the key", "two joins as of a time")


def _laws(*names: str) -> list[object]:
    """All laws; by default only those of some names are run."""
    return [pytest.param(law, marks=[] if law.name in names else [pytest.mark.slow], id=law.name) for law in AS_OF]


LAW = {law.name: law for law in AS_OF}


@pytest.mark.parametrize("law", _laws(FEW[0]))
def test_an_as_of_join_equals_its_oracle_in_any_cut(spark: SparkSession, law: Law) -> None:
    session = derive(spark)

    @ticks
    @given(close_items(fair=True))
    def holds(made: list[ScriptItem]) -> None:
        check_cuts(session, law, made)

    holds()


def _ties_after(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(as_of_module, "UnionAll", lambda name, inputs: UnionAll(name, inputs[::-1]))


def _rows_of_any_key(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(as_of_module, "Over", lambda *args: replace(Over(*args), keys=()))


def _first_rows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(as_of_module, "_LAST", Nth(1, last=False, ignore_nulls=True))


FAULTS = (_ties_after, _rows_of_any_key, _first_rows)


@pytest.mark.slow
@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("plant", FAULTS, ids=[plant.__name__.strip("_") for plant in FAULTS])
def test_a_planted_fault_is_caught(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None]
) -> None:
    plant(monkeypatch)
    law = LAW["the last row of the key"]
    with pytest.raises(AssertionError):
        check(law, MEETING, outcome(derive(spark), law, MEETING, TICKS))


@pytest.mark.parametrize("law", _laws(*FEW))
def test_every_tick_may_be_the_last_before_a_restart(spark: SparkSession, law: Law) -> None:
    check(law, MEETING, outcome(derive(spark), law, MEETING, TICKS, restart=True))


@pytest.mark.slow
@pytest.mark.parametrize("law", AS_OF, ids=[law.name for law in AS_OF])
def test_no_row_is_kept_after_the_end(spark: SparkSession, law: Law) -> None:
    found = outcome(derive(spark), law, EXAMPLE, [6, len(EXAMPLE)], restart=True)
    check(law, EXAMPLE, found)
    assert found.held == 0
