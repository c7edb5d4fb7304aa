"""The contract of operators: a class without a required method is refused when it is built, not when it is called."""

from __future__ import annotations

import pytest

from rowtime.operators.contract import Operator, Unary
from rowtime.operators.events.alter_lifetime import AlterLifetime
from rowtime.operators.events.anti_join import AntiJoin
from rowtime.operators.events.chop import Chop
from rowtime.operators.events.clip import Clip
from rowtime.operators.events.event_groups import EventGroups
from rowtime.operators.events.event_table_join import EventTableJoin
from rowtime.operators.events.lifetime_join import LifetimeJoin
from rowtime.operators.events.period_filter import PeriodFilter
from rowtime.operators.events.speculative_groups import SpeculativeGroups
from rowtime.operators.events.stitch import Stitch
from rowtime.operators.every import OPERATORS
from rowtime.operators.rows.select import Select
from rowtime.operators.streams.spark_query import SparkQuery
from rowtime.operators.streams.table import Table
from rowtime.operators.streams.table_select import TableSelect
from rowtime.operators.streams.union_all import UnionAll
from rowtime.plan.stored import CLASSES


class Silent(Unary):
    """It has no step."""


class Shapeless(Operator):
    """It has no edge."""


def test_an_operator_that_lacks_an_answer_cannot_be_built() -> None:
    with pytest.raises(TypeError, match="step"):
        Silent()  # type: ignore[abstract]
    with pytest.raises(TypeError, match="emits"):
        Shapeless()  # type: ignore[abstract]


FOR_VERSIONS = (
    Select, AlterLifetime, UnionAll, PeriodFilter, LifetimeJoin, AntiJoin, Chop, Stitch, Clip, EventGroups,
    EventTableJoin, SparkQuery, Table, TableSelect,
)  # fmt: skip


@pytest.mark.parametrize("known", OPERATORS, ids=lambda known: known.__name__)
def test_an_operator_has_a_form_for_versions_or_says_that_it_has_none(known: type[Operator]) -> None:
    if issubclass(known, FOR_VERSIONS) and known is not SpeculativeGroups and not known.final_only:
        assert known.on_versions is not Operator.on_versions
    else:
        with pytest.raises(TypeError, match=f"{known.kind}: it has no form for versions"):
            known.on_versions(object.__new__(known), [])


ASKED_OF_A_KIND = (
    "awaits_event", "holds_itself", "holds_results", "is_gate", "merges_writers", "passes_bounds", "promotes",
    "side_by_side",
)  # fmt: skip


@pytest.mark.parametrize("known", OPERATORS, ids=lambda known: known.__name__)
def test_classes_of_one_kind_answer_alike_for_plans_that_have_kinds_alone(known: type[Operator]) -> None:
    for name in ASKED_OF_A_KIND:
        assert getattr(CLASSES[known.kind], name) is getattr(known, name), name
