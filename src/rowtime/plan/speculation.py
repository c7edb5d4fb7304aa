"""EMIT CHANGES: the plan that shows what every item changes, from the plan of what is final (SPEC 9.5).

The changes of the streams below are merged and numbered; above them the same operators work
on versions. What maps events one by one does not care; joins and groups say with which
change their results come.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from rowtime.operators.alter_lifetime import AlterLifetime
from rowtime.operators.anti_join import AntiJoin
from rowtime.operators.bounded_events import BoundedEvents
from rowtime.operators.chop import Chop
from rowtime.operators.clip import Clip
from rowtime.operators.contract import Column, Operator, walk
from rowtime.operators.count_windows import CountWindows
from rowtime.operators.emit_changes import EmitChanges
from rowtime.operators.event_groups import EventGroups
from rowtime.operators.event_stream import EventStream
from rowtime.operators.lifetime_join import LifetimeJoin
from rowtime.operators.lifetime_windows import LifetimeWindows
from rowtime.operators.merge import Merge
from rowtime.operators.period_filter import PeriodFilter
from rowtime.operators.select import Item, Select
from rowtime.operators.snapshot import Snapshot
from rowtime.operators.snapshot_sets import SnapshotSets
from rowtime.operators.speculative_anti_join import SpeculativeAntiJoin
from rowtime.operators.speculative_chop import SpeculativeChop
from rowtime.operators.speculative_clip import SpeculativeClip
from rowtime.operators.speculative_count_windows import SpeculativeCountWindows
from rowtime.operators.speculative_groups import SpeculativeGroups
from rowtime.operators.speculative_stitch import SpeculativeStitch
from rowtime.operators.stitch import Stitch
from rowtime.operators.union_all import UnionAll
from rowtime.operators.versions import CHANGED, OF, Versions
from rowtime.plan.periods import passing, tells_times
from rowtime.plan.sources import Sources
from rowtime.sql.dialect import Rowtime

_KEEPING = (LifetimeJoin, AntiJoin, Clip, Stitch, EventGroups)
"""What keeps versions of events."""


def with_changes(sources: Sources, node: Operator, name: str) -> Operator:
    """The changes of the events of ``node``."""
    if not node.emits().placed:
        node = _Speculation(sources, name, _leaves(node), _below_others(node)).versions(node)
    return EmitChanges(sources.fresh(f"{name}.changes"), node)


def _leaves(node: Operator) -> tuple[Operator, ...]:
    """The event streams below, filtered or altered as they may be: a row of theirs is that of one item.

    Where two of these read one stream, it is the streams themselves, so that an item is one change.
    """
    found = tuple(_placed(node))
    streams = [one for leaf in found for one in _streams(leaf)]
    known = {one.name: one for one in streams}
    return found if len(known) == len(streams) else tuple(known.values())


def _streams(node: Operator) -> Iterator[Operator]:
    """The event streams below; of one that takes the bounds of another only itself gives events."""
    if isinstance(node, EventStream | BoundedEvents):
        yield node
    else:
        for one in {one.name: one for one in node.inputs}.values():
            yield from _streams(one)


def _placed(node: Operator) -> Iterable[Operator]:
    placed = node.emits().placed and not tells_times(node)
    found = (node,) if placed else tuple(leaf for one in node.inputs for leaf in _placed(one))
    return {leaf.name: leaf for leaf in found}.values()


def _below_others(node: Operator) -> frozenset[str]:
    """The names of what stands below an operator of these."""
    above = [one for one in walk(node) if isinstance(one, _KEEPING)]
    return frozenset(one.name for keeping in above for below in keeping.inputs for one in walk(below))


@dataclass
class _Speculation:
    """Makes the operators on versions of the changes of some streams."""

    sources: Sources
    name: str
    leaves: tuple[Operator, ...]
    inner: frozenset[str]
    made: dict[str, Operator] = field(default_factory=dict)

    def __post_init__(self) -> None:
        changes = [EmitChanges(self._fresh("changes"), leaf, CHANGED) for leaf in self.leaves]
        tagged = [self._tagged(number, one) for number, one in enumerate(changes)] if len(changes) > 1 else changes
        whole = UnionAll(self._fresh("union"), tuple(tagged)) if len(changes) > 1 else tagged[0]
        self.merged = Merge(self._fresh("merge"), whole, numbers=True)

    def _fresh(self, what: str) -> str:
        return self.sources.fresh(f"{self.name}.{what}")

    def versions(self, node: Operator) -> Operator:
        """The operator that works as ``node`` does, on versions."""
        if node.name not in self.made:
            self.made[node.name] = self._versions(node)
        return self.made[node.name]

    def _versions(self, node: Operator) -> Operator:
        if node in self.leaves:
            return self._numbered(node)
        below = [self.versions(one) for one in node.inputs]
        made: Operator
        match node:
            case Select() | AlterLifetime():
                made = replace(node, input=below[0])
            case PeriodFilter():
                made = passing(node.name, below[0], node.where, node.hidden)
            case UnionAll():
                made = replace(node, inputs=tuple(below))
            case LifetimeJoin():
                made = replace(node, left=below[0], right=below[1], versioned=True)
            case AntiJoin():
                made = SpeculativeAntiJoin(node.name, below[0], below[1], node.names, node.on)
            case Chop():
                made = SpeculativeChop(node.name, below[0], node.by, node.offset)
            case Stitch():
                made = SpeculativeStitch(node.name, below[0])
            case Clip():
                made = _clip(node, below)
            case Snapshot() | SnapshotSets() | LifetimeWindows():
                sizes = _sizes(node) if isinstance(node, LifetimeWindows) else ()
                listed = node.keys, node.aggregates, node.items
                made = SpeculativeGroups(
                    node.name, below[0], *listed, *sizes, having=node.having, inner=node.name in self.inner
                )
            case CountWindows():
                listed = node.keys, node.aggregates, node.items
                made = SpeculativeCountWindows(node.name, below[0], *listed, node.size, having=node.having)
            case _:
                raise TypeError(f"{node.kind}: it has no form for versions")
        return made

    def _numbered(self, leaf: Operator) -> Operator:
        """The versions of one stream among those that are merged."""
        number = self.leaves.index(leaf)
        names = [c.name for c in leaf.emits().columns] if len(self.leaves) == 1 else self._names(number)
        columns = tuple(zip(names, leaf.emits().columns, strict=True))
        return Versions(self._fresh("versions"), self.merged, columns, None if len(self.leaves) == 1 else number)

    def _names(self, number: int) -> list[str]:
        """The columns of one stream among those of all."""
        return [f"__{number}_{column.name}" for column in self.leaves[number].emits().columns]

    def _tagged(self, number: int, changes: Operator) -> Operator:
        """The changes of one stream with the columns of all, and its number."""
        times = [Item(c, _column(c.name)) for c in changes.emits().columns[1 : len(CHANGED)]]
        payload = [
            Item(Column(name, column.type), _column(column.name) if mine else _null(column))
            for other, leaf in enumerate(self.leaves)
            for mine in [other == number]
            for name, column in zip(self._names(other), leaf.emits().columns, strict=True)
        ]
        tag = Item(Column(OF, "INT"), exp.Literal.number(number))
        return Select(self._fresh("tagged"), changes, (*times, tag, *payload))


def _sizes(node: LifetimeWindows) -> tuple[int, int, int, bool, str]:
    return node.size, node.hop, node.offset, node.point, node.clips


def _clip(node: Clip, below: Sequence[Operator]) -> Operator:
    """The anti-join that a clip is, with names of its own for the columns of the right side."""
    left, right = (side.emits().names for side in below)
    named = {name: f"__r{number}" for number, name in enumerate(right)}
    same = [exp.NullSafeEQ(this=_column(one), expression=_column(named[other])) for one, other in node.keys]
    on = exp.and_(*same, copy=False) if same else None
    return SpeculativeClip(node.name, below[0], below[1], (left, tuple(named.values())), on)


def _null(column: Column) -> exp.Expr:
    """NULL of the column's type: one without a type could not be kept in a file beside values."""
    return exp.cast(exp.null(), column.type, dialect=Rowtime) if column.type else exp.null()


def _column(name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True))
