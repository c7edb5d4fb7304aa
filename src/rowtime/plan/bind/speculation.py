"""EMIT CHANGES: derives the plan that shows each item's changes from the plan of final results (semantics 9.5).

The changes of the streams below are merged and numbered; above them the same operators work on versions. Operators that
map single events stay as they are; joins and groups record which change caused a result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from rowtime.core.columns import CHANGED, OF_INPUT
from rowtime.expr.conditions import col
from rowtime.operators.contract import Column, Operator, walk
from rowtime.operators.contract.requirement import COUNTED
from rowtime.operators.events.emit_changes import EmitChanges
from rowtime.operators.events.versions import Versions
from rowtime.operators.rows.lifetimes import is_lifetimes
from rowtime.operators.rows.select import Item, Select, unchanged
from rowtime.operators.streams.union_all import UnionAll
from rowtime.plan.bind.periods import tells_times
from rowtime.plan.bind.scope import null_of
from rowtime.plan.bind.sources import Sources


def with_changes(sources: Sources, node: Operator, name: str) -> Operator:
    """Return the changes of the events of ``node``."""
    if not node.emits().placed:
        node = _Speculation(sources, name, _leaves(node), _below_others(node)).versions(node)
    return EmitChanges(sources.fresh(f"{name}.changes"), node)


def _leaves(node: Operator) -> tuple[Operator, ...]:
    """Return the event streams below, with their filters and alterations: one row of theirs comes from one item.

    If two of these read one stream, return the streams themselves, so that an item is one change.
    """
    leaves = tuple(_placed(node))
    streams = [stream for leaf in leaves for stream in _streams(leaf)]
    by_name = {stream.name: stream for stream in streams}
    return leaves if len(by_name) == len(streams) else tuple(by_name.values())


def _streams(node: Operator) -> Iterator[Operator]:
    """Yield the event streams below: the operators that turn rows into events."""
    below = {child.name: child for child in node.inputs if is_lifetimes(child)}
    if not below:
        yield node
    for child in below.values():
        yield from _streams(child)


def _placed(node: Operator) -> Iterable[Operator]:
    placed = node.emits().placed and not tells_times(node)
    leaves = (node,) if placed else tuple(leaf for child in node.inputs for leaf in _placed(child))
    return {leaf.name: leaf for leaf in leaves}.values()


def _below_others(node: Operator) -> frozenset[str]:
    """Return the names of operators below one that keeps versions."""
    above = [part for part in walk(node) if part.keeps_versions]
    return frozenset(part.name for keeping in above for below in keeping.inputs for part in walk(below))


@dataclass
class _Speculation:
    """Makes the operators on versions, from the changes of some streams."""

    sources: Sources
    name: str
    leaves: tuple[Operator, ...]
    inner: frozenset[str]
    versioned: dict[str, Operator] = field(default_factory=dict)

    def __post_init__(self) -> None:
        changes = [EmitChanges(self._fresh("changes"), leaf, CHANGED) for leaf in self.leaves]
        tagged = (
            [self._tagged(number, change) for number, change in enumerate(changes)] if len(changes) > 1 else changes
        )
        whole = UnionAll(self._fresh("union"), tuple(tagged)) if len(changes) > 1 else tagged[0]
        self.merged = self.sources.enforcer.edge(whole, COUNTED, f"{self.name}.merge")

    def _fresh(self, what: str) -> str:
        return self.sources.fresh(f"{self.name}.{what}")

    def versions(self, node: Operator) -> Operator:
        """Return the operator that does the same as ``node``, on versions."""
        if node.name not in self.versioned:
            self.versioned[node.name] = self._versions(node)
        return self.versioned[node.name]

    def _versions(self, node: Operator) -> Operator:
        if node in self.leaves:
            return self._numbered(node)
        versioned = node.on_versions([self.versions(child) for child in node.inputs])
        return versioned.beneath_keeping() if node.name in self.inner else versioned

    def _numbered(self, leaf: Operator) -> Operator:
        """Return the versions of one stream among the merged ones."""
        number = self.leaves.index(leaf)
        names = [c.name for c in leaf.emits().columns] if len(self.leaves) == 1 else self._names(number)
        columns = tuple(zip(names, leaf.emits().columns, strict=True))
        return Versions(self._fresh("versions"), self.merged, columns, None if len(self.leaves) == 1 else number)

    def _names(self, number: int) -> list[str]:
        """Return the columns of one stream among those of all."""
        return [f"__{number}_{column.name}" for column in self.leaves[number].emits().columns]

    def _tagged(self, number: int, changes: Operator) -> Operator:
        """Return the changes of one stream with the columns of all, and its number."""
        times = unchanged(changes.emits().columns[1 : len(CHANGED)])
        payload = [
            Item(Column(name, column.type), col(column.name) if mine else null_of(column.type))
            for index, leaf in enumerate(self.leaves)
            for mine in [index == number]
            for name, column in zip(self._names(index), leaf.emits().columns, strict=True)
        ]
        tag = Item(Column(OF_INPUT, "INT"), exp.Literal.number(number))
        return Select(self._fresh("tagged"), changes, (*times, tag, *payload))
