"""Events that cannot be computed: told apart from the others, and put into the ledger once.

An event may go out as open and come again with its end, or be taken back. It is refused when it is first seen, under
its start; what becomes of its end later adds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rowtime.expr.conditions import conjuncts
from rowtime.operators.attempt import BROKEN, judged
from rowtime.operators.contract import Operator, P, T, Tick, W, quoted
from rowtime.operators.event_groups import EventGroups
from rowtime.operators.finished import in_words, said
from rowtime.operators.lifetimes import D
from rowtime.operators.partials import Accumulators
from rowtime.sql.generate import to_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def refuse_events(tick: Tick, node: Operator, events: DataFrame) -> DataFrame:
    """The events without those in which `BROKEN` says what cannot be computed."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    shown = [name for name in events.columns if not name.startswith("__")]
    failing = events.where(f"{BROKEN} IS NOT NULL").groupBy(*map(quoted, shown), T, BROKEN)
    gone = failing.agg(F.expr(f"sum({D}) AS {D}")).where(f"{D} > 0")
    gone = gone.selectExpr(
        *map(quoted, shown), T, f"'' AS {W}", f"0L AS {P}", BROKEN, f"explode(sequence(1L, {D})) AS __i"
    )
    tick.refuse_computed(node, gone.drop("__i"), BROKEN, None)
    return events.where(f"{BROKEN} IS NULL").drop(BROKEN)


def results(  # noqa: PLR0913 - of which rows, by what, with what
    tick: Tick, node: EventGroups, rows: DataFrame, by: Sequence[str], more: Sequence[str], times: Sequence[str]
) -> DataFrame:
    """The select list of groups of events in a tick that is ``trying``; ``times``: what makes them events."""
    accumulators = Accumulators(tuple((item.column.name, item.expression) for item in node.aggregates))
    groups = accumulators.exact(rows, by, more, {}, of_rows=True)
    return selected(tick, node, groups, times, [(flag, in_words(call)) for flag, call in accumulators.beyond(groups)])


def selected(
    tick: Tick, node: EventGroups, groups: DataFrame, times: Sequence[str], beyond: Sequence[tuple[str, str]] = ()
) -> DataFrame:
    """The select list over keys and aggregates, as events."""
    values = {item.column.name: to_spark(item.expression) for item in node.items}
    demands = [(to_spark(item.expression), said(node, item.expression)) for item in node.items]
    tests = [(to_spark(part), said(node, part)) for part in conjuncts(node.having)]
    ours = [name for name in groups.columns if name.startswith("__")]
    found = judged(groups, tests, values, demands, ours, beyond)
    return refuse_events(tick, node, found.selectExpr(*map(quoted, values), *times, BROKEN))
