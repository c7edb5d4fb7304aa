"""Faults planted in the engine, one per operator: the laws catch each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rowtime.runtime.session import derive
from tests.laws import gate_faults, match_faults, order_faults, over_faults, window_faults
from tests.laws.arrival_pipelines import BY_ARRIVAL
from tests.laws.checking import check, outcome
from tests.laws.deeper_pipelines import DEEPER
from tests.laws.fault_rows import CUT, EXAMPLE, Plant
from tests.laws.guard_pipelines import GUARDS
from tests.laws.match_pipelines import MATCHES
from tests.laws.over_pipelines import OVER
from tests.laws.pipelines import LAWS
from tests.laws.pump_pipelines import PUMPED
from tests.laws.session_pipelines import SESSIONS
from tests.laws.set_bound_pipelines import BY_HAND
from tests.laws.sorted_pipelines import SORTED
from tests.laws.window_pipelines import WINDOWS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LAW = {
    law.name: law
    for law in (
        *LAWS,
        *DEEPER,
        *WINDOWS,
        *SESSIONS,
        *SORTED,
        *OVER,
        *BY_HAND,
        *BY_ARRIVAL,
        *GUARDS,
        *PUMPED,
        *MATCHES,
    )
}
FAMILIES = (gate_faults, order_faults, window_faults, over_faults, match_faults)
FAULTS = tuple(fault for family in FAMILIES for fault in family.FAULTS)
EXAMPLES = {name: example for family in FAMILIES for name, example in family.EXAMPLES.items()}


@pytest.mark.slow
@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize(("name", "plant"), FAULTS, ids=[plant.__name__.strip("_") for _, plant in FAULTS])
def test_a_planted_fault_is_caught(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, name: str, plant: Plant
) -> None:
    session = derive(spark)
    plant(monkeypatch)
    with pytest.raises(Exception, match=r".*") as caught:
        check_law(session, name)
    assert isinstance(caught.value, AssertionError), caught.value


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({name for name, _ in FAULTS}))
def test_without_a_fault_nothing_is_caught(spark: SparkSession, name: str) -> None:
    check_law(derive(spark), name)


def check_law(session: SparkSession, name: str) -> None:
    items, cut = EXAMPLES.get(name, (EXAMPLE, CUT))
    check(LAW[name], items, outcome(session, LAW[name], items, cut))
