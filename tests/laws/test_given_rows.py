"""The counts of rows that a tick records for operators are right, over the pipelines of the laws."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import pytest

from rowtime.runtime.given_rows import GivenRows
from rowtime.runtime.session import derive
from tests.laws.checking import outcome
from tests.laws.fault_rows import EXAMPLE
from tests.laws.join_pipelines import JOINS
from tests.laws.panes_pipelines import PANES
from tests.laws.pipelines import LAWS, Law
from tests.laws.session_pipelines import SESSIONS
from tests.laws.window_pipelines import WINDOWS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.operators.contract import Delta

pytestmark = pytest.mark.sampled(40)
PLANS = (*LAWS, *JOINS, *PANES, *SESSIONS, *WINDOWS)


class Checked:
    """Counts the rows of every operator, also of those that the journal leaves out."""

    def __init__(self) -> None:
        self.known = 0

    def of(self, given: GivenRows, deltas: Mapping[str, Delta], noted: Mapping[str, int]) -> None:
        for name, delta in deltas.items():
            said = noted.get(name, given.in_delta(delta))
            if said is None:
                continue
            self.known += bool(said)
            if delta.rows is not None:
                assert delta.rows.count() == said, name
            else:
                assert delta.files or said == 0, name


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> Checked:
    found, noted = Checked(), GivenRows.by_operator

    def by_operator(given: GivenRows, deltas: Mapping[str, Delta], operators: Collection[str]) -> dict[str, int]:
        before = noted(given, deltas, operators)
        found.of(given, deltas, before)
        return before

    monkeypatch.setattr(GivenRows, "by_operator", by_operator)
    return found


@pytest.mark.parametrize("law", PLANS, ids=[law.name for law in PLANS])
def test_operators_gave_as_many_rows_as_the_tick_notes(spark: SparkSession, law: Law, checked: Checked) -> None:
    outcome(derive(spark), law, EXAMPLE, [6, 9, len(EXAMPLE)])
    assert checked.known or not any(kind in law.operators for kind in ("group by", "session"))


def test_a_wrong_number_is_found(spark: SparkSession, checked: Checked, monkeypatch: pytest.MonkeyPatch) -> None:
    in_delta = GivenRows.in_delta

    def wrong(given: GivenRows, delta: Delta) -> int:
        return (in_delta(given, delta) or 0) + (delta.rows is not None)

    monkeypatch.setattr(GivenRows, "in_delta", wrong)
    with pytest.raises(AssertionError):
        outcome(derive(spark), LAWS[0], EXAMPLE, [len(EXAMPLE)])
