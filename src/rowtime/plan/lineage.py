"""Lineage: which rows of an operator's inputs can have made one of its rows.

What an operator passes on is the same on both sides; rows of events meet in time. So each rule is about values
alone, and needs nothing that a run would have to record. It is to name every row that had a part, and where an operator
tells less, it names more: of a group all rows of its keys, of an operator without a rule all rows before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sqlglot import exp

from rowtime.core.time import END
from rowtime.expr.generators import generator
from rowtime.operators.alter_lifetime import AlterLifetime
from rowtime.operators.anti_join import AntiJoin
from rowtime.operators.bounded_events import BoundedEvents
from rowtime.operators.chop import Chop
from rowtime.operators.clip import Clip
from rowtime.operators.contract import Operator, P, T, W, quoted, walk
from rowtime.operators.count_windows import CountWindows
from rowtime.operators.delay import Delay
from rowtime.operators.emit_changes import EmitChanges
from rowtime.operators.emit_lifetimes import EmitLifetimes
from rowtime.operators.event_groups import EventGroups
from rowtime.operators.event_time import EventTimed
from rowtime.operators.group_by import GroupBy
from rowtime.operators.group_values import GroupByValues
from rowtime.operators.hop import Hop
from rowtime.operators.imported_bounds import ImportedBounds
from rowtime.operators.join import PLACES, Join
from rowtime.operators.lifetime_join import LifetimeJoin
from rowtime.operators.lifetime_windows import LifetimeWindows
from rowtime.operators.lifetimes import EVENT, D, E, Q, S, is_lifetimes
from rowtime.operators.limit import Limit
from rowtime.operators.merge import Merge
from rowtime.operators.ordered import Ordered
from rowtime.operators.over import Over
from rowtime.operators.pane_fires import PANE
from rowtime.operators.panes import Panes
from rowtime.operators.passed_bounds import PassedBounds
from rowtime.operators.period_filter import PeriodFilter
from rowtime.operators.permit_gate import PermitGate
from rowtime.operators.pump_gate import PumpGate
from rowtime.operators.rejected import Rejected
from rowtime.operators.select import Select
from rowtime.operators.session import SessionGroup
from rowtime.operators.session_rows import SessionRows
from rowtime.operators.sink import Sink
from rowtime.operators.sort_by import SortBy
from rowtime.operators.sort_by_values import SortByValues
from rowtime.operators.speculative_groups import SpeculativeGroups
from rowtime.operators.stagger import Stagger
from rowtime.operators.stitch import Stitch
from rowtime.operators.table_join import TableJoin
from rowtime.operators.tsort import TSort
from rowtime.operators.union_all import UnionAll, prefix
from rowtime.operators.versions import CHANGED, OF, Versions
from rowtime.sql.generate import literal, to_spark

FROM, UPTO, AT, VERSION = "__from", "__upto", "__at", "__version"
"""Of the row that is asked for: the span of time in question, its rowtime (BIGINT µs), the change that it came with."""
SPAN = (FROM, UPTO)
OVERLAPS = f"{S} < {UPTO} AND {E} > {FROM}"
TOUCHES = f"{S} <= {UPTO} AND {E} >= {FROM}"
Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Link:
    """Which rows of one input can have made a row of an operator; all in Spark SQL.

    ``same``: what is the same, over the row and over the input's row (NULLs are the same). ``where``: over the input's
    row alone. ``meets``: over the input's row and `SPAN`, `AT` and `VERSION` of the row. ``span`` and ``version``:
    what these are, over the row. Below it is the same span (``narrows`` = "no"), what of it the input's row lives
    ("meet"), or the whole life of that ("own").
    """

    same: Pairs = ()
    where: str = "true"
    meets: str = "true"
    span: tuple[str, str] = SPAN
    version: str = "0L"
    narrows: Literal["no", "meet", "own"] = "no"


NOTHING = Link(meets="false")
"""Of an input that gives an operator bounds and no rows."""


def link_of(node: Operator, n: int) -> Link:
    """The rule of an operator for its n-th input; without one, all rows of it are meant."""
    for kinds, rule in RULES:
        if isinstance(node, kinds):
            found = rule(node, n)
            if is_lifetimes(node) and any(isinstance(below, Versions) for below in walk(node.inputs[n])):
                return replace(found, version=Q, meets=f"({found.meets}) AND {Q} <= {VERSION}")
            return found
    return Link()


def _passed(node: Operator, n: int, *ours: str) -> Pairs:
    """The columns that both sides have, and these of ours."""
    below = node.inputs[n].emits()
    names = [name for name in node.emits().names if name in below.names]
    return tuple((quoted(name), quoted(name)) for name in (*names, *ours))


def _named(names: Sequence[tuple[str, str]]) -> Pairs:
    return tuple((quoted(above), quoted(below)) for above, below in names)


# -- rows one by one --------------------------------------------------------------------


def _same(node: Operator, n: int) -> Link:
    below = node.inputs[n].emits().internals
    return Link(_passed(node, n, *(name for name in node.emits().internals if name in below)))


def _selected(node: Select, n: int) -> Link:  # noqa: ARG001 - rules are called alike
    computed = [(quoted(i.column.name), to_spark(i.expression)) for i in node.items if generator(i.expression) is None]
    ours = _named([(name, name) for name in node.emits().internals])
    return Link((*computed, *ours), to_spark(node.where) if node.where is not None else "true")


def _merged(node: Merge, n: int) -> Link:
    return Link(_passed(node, n, T)) if node.numbers else _same(node, n)


def _united(node: UnionAll, n: int) -> Link:
    below = node.inputs[n].emits()
    names = _named(list(zip(node.emits().names, below.names, strict=True)))
    ours = [name for name in (T, P, *EVENT) if name not in EVENT or name in below.extra]
    writer = (W, f"concat({literal(prefix(n))}, {W})")
    return Link((*names, *((name, name) for name in ours), writer))


def _timed_anew(node: Operator, n: int) -> Link:
    """The rows under another rowtime."""
    return Link(_passed(node, n)) if n == 0 else Link(meets=f"{S} <= {AT}")


def _delayed(node: Delay, n: int) -> Link:
    return Link((*_passed(node, n), (S, f"{S} + {node.by}L")))


def _refused(node: Rejected, n: int) -> Link:  # noqa: ARG001
    return NOTHING  # what a gate refuses passes over no edge but this


def _sorted(node: TSort, n: int) -> Link:
    return Link(_passed(node, n, W, P))


def _in_place(node: Operator, n: int) -> Link:
    """The rows under their own rowtime, with other columns beside theirs."""
    return Link(_passed(node, n, T)) if n == 0 else NOTHING


# -- rows together ----------------------------------------------------------------------


def _keys(node: GroupBy | GroupByValues | SessionGroup | Panes | EventGroups) -> Pairs:
    """The keys, as they stand beside the columns or among them."""
    hidden = node.emits().extra
    names = {item.expression.name: item for item in node.items if isinstance(item.expression, exp.Column)}
    found: list[tuple[str, str]] = []
    for key in node.keys:
        own = key.column.name
        shown = own if own in hidden else names[own].column.name if own in names else None
        found += [] if shown is None else [(quoted(shown), to_spark(key.expression))]
    return tuple(found)


def _grouped(node: GroupBy | GroupByValues, n: int) -> Link:
    return Link(_keys(node)) if n == 0 else NOTHING


def _in_pane(node: Panes, n: int) -> Link:
    """The rows of the same keys in the pane; which of them came up to the fire, a run has to tell."""
    if n:
        return NOTHING
    time = node.event.micros
    meets = f"{time} >= {FROM} AND {time} < {UPTO}"
    return Link(_keys(node), meets=meets, span=(f"{PANE} - {node.times.duration}L", PANE))


def _in_session(node: SessionGroup, n: int) -> Link:  # noqa: ARG001
    return Link(_keys(node), meets=f"{S} <= {AT}")


def _over(node: Over, n: int) -> Link:  # noqa: ARG001
    known = [key for key in node.keys if {c.name for c in key.expression.find_all(exp.Column)} <= {*node.passed, T}]
    same = tuple((to_spark(key.expression), to_spark(key.expression)) for key in known)
    spans = [call.frame.lower if call.frame.by_range else None for call in node.calls]
    lowest = f" AND {S} >= {AT} - {max(filter(None, spans), default=0)}L" if node.order is None and all(spans) else ""
    return Link(same, meets=f"{S} <= {AT}{lowest}")


def _joined(node: Join, n: int) -> Link:  # noqa: ARG001
    return Link(tuple(zip(PLACES[n], (T, W, P), strict=True)))


def _looked_up(node: TableJoin, n: int) -> Link:
    there = set(node.emits().names)
    same = _named([(name, old) for old, name in node.sides[n].columns if name in there])
    return Link((*same, (T, T), (W, W), (P, P)) if n == 0 else same)


# -- events -----------------------------------------------------------------------------


def _altered(node: AlterLifetime, n: int) -> Link:
    start, end = node.times()
    return Link((*_passed(node, n, W, P, D, Q), (S, start), (E, end)), narrows="own")


def _emitted(node: EmitLifetimes, n: int) -> Link:
    payload = _passed(node, n)
    if node.form == "POINTS":
        return Link((*payload, (S, S)), span=(S, f"{S} + 1"))
    named = [f"unix_micros({quoted(name)})" for name in node.names]
    start, stop = named[-2], f"coalesce({named[-1]}, {END}L)"
    if node.form == "EDGES":
        stop = f"IF({quoted(node.names[0])} = 'start', {start} + 1, {stop})"
    return Link((*payload, (start, S)), span=(start, stop))


def _changed(node: EmitChanges, n: int) -> Link:  # noqa: ARG001
    """Of an event what came with the change or before it; in question is the whole life of the row that changes."""
    _, start, stop, _ = (quoted(name) for name in node.names)
    below = node.input.emits()
    same = (*_named([(name, name) for name in below.names]), (f"unix_micros({start})", S))
    return Link(
        (*same, *([(W, W)] if below.placed else [])),
        meets=f"{Q} <= {VERSION}",
        version=P,
        span=(f"unix_micros({start})", f"coalesce(unix_micros({stop}), {END}L)"),
    )


def _versioned(node: Versions, n: int) -> Link:  # noqa: ARG001
    payload = _named([(column.name, name) for name, column in node.columns])
    same = (*payload, (Q, P), (S, f"unix_micros({CHANGED[1]})"))
    return Link(same, "true" if node.of is None else f"{OF} = {node.of}")


def _in_snapshot(node: EventGroups, n: int) -> Link:  # noqa: ARG001
    """What is alive, and what ends where it begins or begins where it ends."""
    return Link(_keys(node), meets=TOUCHES, narrows="meet")


def _in_window(node: LifetimeWindows, n: int) -> Link:  # noqa: ARG001
    span = (f"{E} - {node.size}L", E) if node.point else (S, E)
    return Link(_keys(node), meets=OVERLAPS, span=span, narrows="meet")


def _speculated(node: SpeculativeGroups, n: int) -> Link:
    if not node.size:
        return _in_snapshot(node, n)
    span = (f"{E} - {node.size}L", E) if node.point else (S, E)
    return Link(_keys(node), meets=OVERLAPS, span=span, narrows="meet")


def _counted(node: CountWindows, n: int) -> Link:  # noqa: ARG001
    return Link(_keys(node), meets=f"{S} <= {AT}", narrows="own")


def _together(node: LifetimeJoin, n: int) -> Link:
    same = _named(list(zip(node.names[n], node.inputs[n].emits().names, strict=True)))
    return Link(same, meets=OVERLAPS, narrows="meet")


def _left_over(node: AntiJoin, n: int) -> Link:
    """Of the left side the event, of the right whatever may have covered it."""
    names = _named(list(zip(node.names[n], node.inputs[n].emits().names, strict=True)))
    if n == 0:
        return Link(names, meets=OVERLAPS, narrows="meet")
    return Link(_equated(node), meets=TOUCHES, narrows="meet")


def _equated(node: AntiJoin) -> Pairs:
    """The equations of its condition between a column of each side."""
    left, right = set(node.names[0]), dict(zip(node.names[1], node.right.emits().names, strict=True))
    found: list[tuple[str, str]] = []
    for part in [] if node.on is None else node.on.unnest().flatten() if isinstance(node.on, exp.And) else [node.on]:
        sides = (part.left.unnest(), part.right.unnest()) if isinstance(part, exp.EQ) else ()
        for one, other in (sides, sides[::-1]) if sides else ():
            if isinstance(one, exp.Column) and one.name in left and isinstance(other, exp.Column):
                found += [(quoted(one.name), quoted(right[other.name]))] if other.name in right else []
    return tuple(found)


def _clipped(node: Clip, n: int) -> Link:
    """The event, and what began inside the life that it has been left."""
    if n == 0:
        return Link(_passed(node, n, T), narrows="own")
    return Link(_named(node.keys), meets=f"{S} > {AT} AND {S} <= {UPTO}", narrows="own")


def _cut(node: Chop, n: int) -> Link:
    return Link(_passed(node, n), meets=OVERLAPS, narrows="meet")


def _stitched(node: Stitch, n: int) -> Link:
    return Link(_passed(node, n), meets=TOUCHES, narrows="own")


def _gated(node: BoundedEvents, n: int) -> Link:
    """An event of two edges has two rows; any other stands where its row does."""
    return Link(_passed(node, n, *(() if node.shape.edges else (P,))))


Rule = Callable[..., Link]
RULES: tuple[tuple[type | tuple[type, ...], Rule], ...] = (
    ((Sink, Limit, PumpGate), _same),
    (Select, _selected),
    (Merge, _merged),
    (UnionAll, _united),
    (TSort, _sorted),
    (Delay, _delayed),
    (Rejected, _refused),
    ((PermitGate, SortBy, SortByValues, SessionRows, Stagger), _timed_anew),
    ((Hop, Ordered, EventTimed, PassedBounds, PeriodFilter), _in_place),
    ((GroupBy, GroupByValues), _grouped),
    (Panes, _in_pane),
    (SessionGroup, _in_session),
    (Over, _over),
    (Join, _joined),
    (TableJoin, _looked_up),
    (AlterLifetime, _altered),
    (EmitLifetimes, _emitted),
    (EmitChanges, _changed),
    (Versions, _versioned),
    (SpeculativeGroups, _speculated),
    (LifetimeWindows, _in_window),
    (CountWindows, _counted),
    (EventGroups, _in_snapshot),
    (LifetimeJoin, _together),
    (AntiJoin, _left_over),
    (Clip, _clipped),
    (Chop, _cut),
    (Stitch, _stitched),
    (BoundedEvents, _gated),
    (ImportedBounds, lambda *_: NOTHING),
)
"""The first that fits; an operator that stands nowhere here has no rule."""
