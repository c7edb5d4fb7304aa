"""Every pipeline of the laws over rows with a number also runs before a typed pump, with every cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given

from rowtime.core.time import END, to_micros
from rowtime.runtime.session import derive
from rowtime.testing.runner import play
from rowtime.testing.transcripts import ScriptItem
from tests.laws.checking import check_cuts
from tests.laws.lifetime_pipelines import LifetimeLaw, events
from tests.laws.pipelines import Law, items
from tests.laws.pump_pipelines import PUMPED, PUMPED_EVENTS
from tests.laws.test_laws import ticks
from tests.oracle import feed as f

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def ends(made: Sequence[ScriptItem]) -> list[ScriptItem]:
    """The end of both streams: a pump judges a row when it arrives, so all rows have to be out for the comparison."""
    open_yet = [name for name in "ab" if not any(item.stream == name and item.at == END for item in made)]
    return [ScriptItem(len(made) + n, name, "x", None, END) for n, name in enumerate(open_yet, 1)]


def test_there_are_pipelines_of_many_kinds() -> None:
    assert len(PUMPED) >= 110, [law.name for law in PUMPED]


@pytest.mark.parametrize(
    "law",
    [pytest.param(law, id=law.name, marks=[pytest.mark.slow] if number else []) for number, law in enumerate(PUMPED)],
)
def test_refusals_of_a_pump_are_a_function_of_the_items(spark: SparkSession, law: Law) -> None:
    session = derive(spark)

    @ticks
    @given(items())
    def holds(made: list[ScriptItem]) -> None:
        check_cuts(session, law, [*made, *ends(made)])

    holds()


@pytest.mark.slow
@pytest.mark.parametrize("law", PUMPED_EVENTS, ids=[law.name for law in PUMPED_EVENTS])
def test_a_pump_accepts_groups_of_events_that_fit(spark: SparkSession, law: LifetimeLaw) -> None:
    session = derive(spark)

    @ticks
    @given(events())
    def holds(sent: list[ScriptItem]) -> None:
        open_yet = [name for name in "sr" if not any(item.stream == name and item.at == END for item in sent)]
        made = [*sent, *(ScriptItem(len(sent) + n, name, "x", None, END) for n, name in enumerate(open_yet, 1))]
        assume(all(event.end < END for event in law.gates(made)["s"].events))
        count = len(made)
        for cut in ([count], sorted({count // 2 or 1, count})):
            found = play(session, law.transcript(made), cut)
            (items,) = law.oracle(law.gates(made)).values()
            rows = [{"rowtime": row.at, **row.values} for row in f.rows_of(items)]
            shown = [{n: v if isinstance(v, int) else to_micros(v) for n, v in row.items()} for _, row in found.rows]
            assert shown == rows

    holds()
