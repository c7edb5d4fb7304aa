"""Every pipeline of the laws over rows that gives a number also runs behind a typed pump, however it is cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from rowtime.core.time import END
from rowtime.runtime.session import derive
from rowtime.testing.transcripts import ScriptItem
from tests.laws.checking import check_cuts
from tests.laws.pipelines import Law, items
from tests.laws.pump_pipelines import PUMPED
from tests.laws.test_laws import ticks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def ends(made: Sequence[ScriptItem]) -> list[ScriptItem]:
    """The end of both streams: a pump judges a row when it comes, so all rows have to be out to be compared."""
    open_yet = [name for name in "ab" if not any(item.stream == name and item.at == END for item in made)]
    return [ScriptItem(len(made) + n, name, "x", None, END) for n, name in enumerate(open_yet, 1)]


def test_there_are_pipelines_of_many_kinds() -> None:
    assert len(PUMPED) >= 90, [law.name for law in PUMPED]


@pytest.mark.parametrize(
    "law",
    [pytest.param(law, id=law.name, marks=[pytest.mark.slow] if number else []) for number, law in enumerate(PUMPED)],
)
def test_what_a_pump_refuses_is_a_function_of_the_items(spark: SparkSession, law: Law) -> None:
    session = derive(spark)

    @ticks
    @given(items())
    def holds(made: list[ScriptItem]) -> None:
        check_cuts(session, law, [*made, *ends(made)])

    holds()
