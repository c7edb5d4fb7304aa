"""Events that cannot be computed: separates them from the others, and counts them once in the ledger.

An event may be emitted as open and come again with its end, or be retracted. It is refused when it is first seen, under
its start; later changes of its end add nothing, even if they remove it. So each change counts by itself: whether its
end comes in the same tick does not matter. With numbered changes (EMIT CHANGES), a failure comes with a change, like
any other result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from rowtime.core.columns import (
    BROKEN,
    CHANGED_BY,
    LIFETIME_END,
    LIFETIME_START,
    MET,
    POSITION,
    ROWTIME,
    START,
    STOP,
    WEIGHT,
    WINDOW_END,
    WRITER,
)
from rowtime.expr.conditions import conjuncts
from rowtime.operators.contract import Delta, Operator, Tick, quoted
from rowtime.operators.events.versions import differences
from rowtime.operators.groups.finished import in_words, query_text
from rowtime.operators.rows.attempt import NamedSql, all_computed, judged
from rowtime.operators.rows.lifetimes import derived_columns, instant
from rowtime.operators.rows.partials import Accumulators
from rowtime.sql.generate import to_spark

if TYPE_CHECKING:
    from rowtime.frames.frame import Frame
    from rowtime.operators.events.event_groups import EventGroups


def refuse_events(tick: Tick, node: Operator, events: Frame, *, more: Sequence[str] = ()) -> Frame:
    """Return the events without those for which `BROKEN` says what cannot be computed.

    Each that a change adds is reported; ``more``: with these columns too.
    """
    shown = [name for name in events.columns if not name.startswith("__")]
    changes = [name for name in (CHANGED_BY,) if name in events.columns]  # others are final
    by = [*map(quoted, shown), ROWTIME, WRITER, BROKEN, *changes, *more]
    sums = [f"sum({WEIGHT}) AS {WEIGHT}", f"min({POSITION}) AS {POSITION}"]
    gone = events.where(f"{BROKEN} IS NOT NULL").grouped(by, sums).where(f"{WEIGHT} > 0")
    places = (ROWTIME, POSITION, WRITER, BROKEN)
    gone = gone.selectExpr(*map(quoted, shown), *places, f"explode(sequence(1L, {WEIGHT})) AS __i")
    tick.refuse_computed(node, gone.drop("__i"), BROKEN)
    return events.where(f"{BROKEN} IS NULL").drop(BROKEN)


def fitting(tick: Tick, node: EventGroups, delta: Delta) -> Delta:
    """Return new events without those for which a key or an argument of an aggregate cannot be computed.

    This is checked when they come, so that refusals do not depend on when a window is due.
    """
    expressions = _first_expressions(node, in_windows=False)
    if delta.rows is None or not expressions:
        return delta
    if not tick.trying:
        return replace(delta, rows=all_computed(delta.rows, [text for text, _ in expressions]), **_UNREAD)
    shape = node.inputs[0].emits()
    values = {name: quoted(name) for name in shape.names}
    attempts = judged(delta.rows, [], values, expressions, [name for name in shape.internals if name not in values])
    return replace(delta, rows=refuse_events(tick, node, attempts), **_UNREAD)


_UNREAD: dict[str, Any] = {"files": None, "timeline": None}


def fitting_in_windows(tick: Tick, node: EventGroups, each: Frame, *, new: bool = True) -> Frame:
    """Return events in windows (`WINDOW_END`) without those for which an argument that depends on the window fails.

    Such an event is still in its other windows. It is refused once for each window in which it fails, if it is ``new``.
    """
    expressions = _first_expressions(node, in_windows=True)
    if not expressions:
        return each
    if not tick.trying:
        return all_computed(each, [text for text, _ in expressions])
    attempts = judged(each, [], {}, expressions, each.columns)
    if new:
        placed = attempts.selectExpr("*", f"{instant(START)} AS {ROWTIME}", f"'' AS {WRITER}", f"0L AS {POSITION}")
        refuse_events(tick, node, placed, more=[WINDOW_END])
    return attempts.where(f"{BROKEN} IS NULL").drop(BROKEN)


def _first_expressions(node: EventGroups, *, in_windows: bool) -> list[NamedSql]:
    """Return the expressions computed for each event: those that depend on its window, or the others."""
    expressions = []
    for part in node.computed_first():
        depends = any(column.name in (LIFETIME_START, LIFETIME_END) for column in part.find_all(exp.Column))
        if depends == in_windows and not isinstance(part, exp.Column):
            expressions.append((to_spark(part), in_words(part)))
    return expressions


def results(  # noqa: PLR0913 - the rows, the groups, and the columns
    tick: Tick, node: EventGroups, rows: Frame, by: Sequence[str], more: Sequence[str], times: Sequence[str]
) -> Frame:
    """Return the select list of groups of events in a tick that is ``trying``; ``times`` make the groups events."""
    return refused(tick, node, tried_groups(node, rows, by, more), times)


def tried_groups(node: EventGroups, rows: Frame, by: Sequence[str], more: Sequence[str] = ()) -> Frame:
    """Return the select list of groups of events, with hidden columns and the failures."""
    groups, beyond = exact_groups(node, rows, by, more)
    return tried(node, groups, [(flag, in_words(call)) for flag, call in beyond])


def exact_groups(
    node: EventGroups, rows: Frame, by: Sequence[str], more: Sequence[str] = ()
) -> tuple[Frame, list[tuple[str, exp.Expr]]]:
    """Return the groups ``by`` of rows with their aggregates; and the conditions that one overflows its type."""
    accumulators = Accumulators(tuple((item.column.name, item.expression) for item in node.aggregates))
    groups = accumulators.exact(rows, by, more, {}, of_rows=True)
    return groups, accumulators.beyond(groups)


def tried(node: EventGroups, groups: Frame, beyond: Sequence[NamedSql]) -> Frame:
    """Return the same over keys and aggregates; ``beyond``: conditions that these cannot be computed."""
    values = {item.column.name: to_spark(item.expression) for item in node.items}
    demands = [(to_spark(item.expression), query_text(node, item.expression)) for item in node.items]
    tests = [(to_spark(part), query_text(node, part)) for part in conjuncts(node.having)]
    ours = [name for name in groups.columns if name.startswith("__")]
    return judged(groups, [tests], values, demands, ours, beyond)


def refused(tick: Tick, node: EventGroups, attempts: Frame, times: Sequence[str]) -> Frame:
    """Return the groups of `tried` as events, without those that cannot be computed."""
    values = [quoted(item.column.name) for item in node.items]
    return refuse_events(tick, node, attempts.selectExpr(*values, *times, BROKEN))


def changed(tick: Tick, node: EventGroups, results: Frame) -> Frame:
    """Return the changes by versions of groups (`differences`); a failing group counts as no result.

    So the version before it is retracted, and those that fail and are new with a change are refused.
    """
    shown, broken = [item.column.name for item in node.items], [BROKEN] if BROKEN in results.columns else []
    changes = differences(results, [*shown, *broken]).selectExpr(
        *node.item_names, *derived_columns("__x", STOP, WEIGHT, CHANGED_BY, MET), *broken
    )
    return refuse_events(tick, node, changes) if broken else changes
