"""The laws over buffering operators: a delay, a gate with permits, and the event time after them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from rowtime.operators.gates.permit_gate import PermitGate
from rowtime.operators.streams.delay import Delay
from rowtime.runtime.session import derive
from rowtime.testing.transcripts import ScriptItem
from tests.laws.buffer_pipelines import BUFFERS
from tests.laws.checking import check, outcome
from tests.laws.pipelines import HALF, ORIGIN, Law, items, shuffled
from tests.laws.test_deeper_laws import ticks
from tests.oracle.feed import END

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(8)

LAWS = {law.name: law for law in BUFFERS}
CASES = [pytest.param(law, id=law.name, marks=[] if law is BUFFERS[1] else [pytest.mark.slow]) for law in BUFFERS]


@pytest.mark.parametrize("law", CASES)
def test_buffered_output_is_a_function_of_the_items(spark: SparkSession, law: Law) -> None:
    session = derive(spark)

    @ticks
    @given(items())
    def holds(made: list[ScriptItem]) -> None:
        count = len(made)
        chance = random.Random(count)
        cut = sorted({*chance.sample(range(1, count + 1), min(2, count)), count})
        check(law, made, outcome(session, law, made, cut, restart=chance.random() < 0.5))
        other = shuffled(made, count)
        check(law, other, outcome(session, law, other, [count]))

    holds()


def _row(number: int, stream: str, at: int, v: int = 1) -> ScriptItem:
    values = {"n": number, "v": v, "ev": ORIGIN, "rowtime": ORIGIN + at * HALF}
    return ScriptItem(number, stream, "x", values, None)


ROWS = [
    _row(1, "a", 0), _row(2, "a", 1), _row(3, "b", 1, 2), _row(4, "b", 4, 0), _row(5, "b", 6), _row(6, "a", 7),
    _row(7, "a", 8), _row(8, "a", 9), _row(9, "b", 9), ScriptItem(10, "b", "x", None, END),
    ScriptItem(11, "a", "x", None, END),
]  # fmt: skip
"""Rows that wait for permits, permits that wait for a row, a permit of none and one of two, and a row without a permit.
"""


def test_rows_wait_for_permits_and_permits_for_rows(spark: SparkSession) -> None:
    law = LAWS["a gate with permits"]
    for cut in (range(1, 12), [5, 11]):
        found = outcome(derive(spark), law, ROWS, list(cut), restart=True)
        check(law, ROWS, found)
        assert {row["n"]: row["reason"] for row in found.refused} == {8: "NO_PERMIT"}
        assert [(row["writer"], row["position"]) for row in found.refused] == [("x", 8)]
        assert found.held == 0


@pytest.mark.slow
@pytest.mark.usefixtures("both_ways")
def test_a_gate_that_drops_waiting_rows_and_a_delay_that_does_not_wait_are_caught(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, early = LAWS["a gate with permits"], ROWS[:8]
    monkeypatch.setattr(PermitGate, "_head", lambda _self, _tick, control, _upto: control)
    with pytest.raises(AssertionError):
        check(gate, early, outcome(derive(spark), gate, early, [2, 8]))
    monkeypatch.setattr(Delay, "promises", lambda self, clocks, _: {w: at + self.by for w, at in clocks[0].items()})
    law = LAWS["a delay beside another stream"]
    with pytest.raises(AssertionError):
        check(law, ROWS[:5], outcome(derive(spark), law, ROWS[:5], [3, 5]))
