"""The laws of semantics 3, 4 and 5 over random items: the output is a function of the items, not of the cut."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from rowtime.operators.every import OPERATORS
from rowtime.plan.program import compile_script
from rowtime.runtime.session import derive
from tests.laws.buffer_pipelines import BUFFERS
from tests.laws.checking import check, outcome, same_holding
from tests.laws.deeper_pipelines import DEEPER
from tests.laws.fault_rows import EXAMPLE, item
from tests.laws.join_pipelines import JOINS
from tests.laws.lifetime_pipelines import LIFETIMES
from tests.laws.match_pipelines import MATCHES
from tests.laws.over_pipelines import OVER
from tests.laws.panes_pipelines import PANES
from tests.laws.pipelines import LAWS, LONG, Law, items, shuffled, transcript
from tests.laws.pump_pipelines import PUMPED
from tests.laws.session_pipelines import SESSIONS
from tests.laws.sorted_pipelines import SORTED
from tests.laws.speculation_pipelines import SPECULATION
from tests.laws.window_pipelines import WINDOWS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.testing.transcripts import ScriptItem

pytestmark = pytest.mark.sampled(8)

CHAINED = (*DEEPER, *SORTED, *WINDOWS, *SESSIONS)

ticks = settings(
    max_examples=40 if LONG else 3,
    deadline=None,
    derandomize=not LONG,
    database=None,
    phases=[Phase.generate, Phase.shrink] if LONG else [Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)


def test_every_class_of_operators_has_a_law() -> None:
    rows = [transcript(law, ()).sql for law in (*LAWS, *CHAINED, *JOINS, *OVER, *PANES, *BUFFERS, *PUMPED, *MATCHES)]
    events = [law.transcript(()).sql for law in (*LIFETIMES, *SPECULATION)]
    plans = [compile_script(sql) for sql in (*rows, *events)]
    assert set(OPERATORS) == {type(node) for plan in plans for node in plan.operators}


@pytest.mark.parametrize("law", LAWS, ids=[law.name for law in LAWS])
def test_the_output_equals_the_oracle_however_it_is_cut_and_restarted(spark: SparkSession, law: Law) -> None:
    session = derive(spark)

    @ticks
    @given(items())
    def holds(made: list[ScriptItem]) -> None:
        count = len(made)
        chance = random.Random(count)
        cut = sorted({*chance.sample(range(1, count + 1), min(2, count)), count})
        whole, parts = outcome(session, law, made, [count]), outcome(session, law, made, cut, restart=True)
        check(law, made, whole)
        check(law, made, parts)
        same_holding(whole, parts)
        other = shuffled(made, count)
        check(law, other, outcome(session, law, other, cut))

    holds()


CHAINS = [
    pytest.param(law, marks=pytest.mark.slow, id=law.name)
    for law in (*CHAINED, *PANES)
    if not law.columns.count("WITHIN")
]
LOOSE = [pytest.param(law, id=law.name) for law in DEEPER if law.columns.count("WITHIN")]


@pytest.mark.parametrize("law", [*(pytest.param(law, id=law.name) for law in LAWS), *LOOSE, *CHAINS])
def test_no_state_is_left_after_the_end(spark: SparkSession, law: Law) -> None:
    found = outcome(derive(spark), law, EXAMPLE, [6, len(EXAMPLE)])
    check(law, EXAMPLE, found)
    assert found.held == 0


def test_a_merge_holds_only_rows_that_are_not_out(spark: SparkSession) -> None:
    made = [item(1, "a", "x", 2), item(2, "a", "y", 2), item(3, "a", "x", 2)]
    law = LAWS[0]
    found = outcome(derive(spark), law, made, [1, 2, 3])
    check(law, made, found)
    assert [row["n"] for _, row in found.rows] == [1, 3], "only y may not go out: x may send another row of this time"
    assert [sum(holding.values()) for holding in found.holding] == [1, 1, 1]
