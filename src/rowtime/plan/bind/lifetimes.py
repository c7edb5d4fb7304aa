"""Binds queries over events with lifetimes: the limits of their SELECT, and EMIT."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from rowtime.core.columns import CHANGED, OF_INPUT
from rowtime.expr.conditions import col
from rowtime.operators.contract import Column, Operator, walk
from rowtime.operators.contract.requirement import COUNTED
from rowtime.operators.events.emit_changes import NAMES as CHANGES
from rowtime.operators.events.emit_changes import EmitChanges
from rowtime.operators.events.versions import Versions
from rowtime.operators.rows.lifetimes import is_lifetimes
from rowtime.operators.rows.select import Item, Select, unchanged
from rowtime.operators.streams.union_all import UnionAll
from rowtime.plan.bind.emit import as_rows
from rowtime.plan.bind.orders import is_rowtime
from rowtime.plan.bind.panes import has_panes
from rowtime.plan.bind.periods import tells_times
from rowtime.plan.bind.scope import Scope, null_of
from rowtime.plan.bind.sources import BoundQuery, Sources
from rowtime.sql.places import refuse_at


def emitted(text: str, sources: Sources, query: exp.Expr, bound: BoundQuery, name: str) -> BoundQuery:
    """Return the events of a query as rows, if it EMITs them."""
    if query.args.get("emit_changes") and not has_panes(query):
        return BoundQuery(_changes(text, sources, query, bound.node, name))
    clause = query.args.get("emit")
    if clause is None:
        return bound
    if not is_lifetimes(bound.node):
        hint = "Leave it out; EMIT is for events of streams with an EVENT SHAPE."
        raise refuse_at(text, query, "R191", f"EMIT {clause.name}: these rows have no lifetimes", hint)
    return BoundQuery(as_rows(sources.fresh, bound.node, name, clause, text))


def _changes(text: str, sources: Sources, query: exp.Expr, node: Operator, name: str) -> Operator:
    if not is_lifetimes(node):
        hint = "Leave it out; EMIT CHANGES is for panes, and for events of streams with an EVENT SHAPE."
        raise refuse_at(text, query, "R191", "EMIT CHANGES: this query never changes a row later", hint)
    taken = {column.lower() for column in node.emits().names} & set(CHANGES)
    if taken:
        what = f"the result has two columns {', '.join(sorted(taken))}"
        raise refuse_at(text, query, "R119", what, "Rename the column of the query.")
    _refuse_endless(text, query, node)
    if any(part.final_only for part in walk(node)):
        calls = [call for call in query.find_all(exp.Anonymous) if call.name.upper() == "SESSION"]
        hint = "Leave EMIT CHANGES out: a session goes out when it has ended."
        what = "sessions of events have no changes to show: this is not supported yet"
        raise refuse_at(text, calls[0] if calls else query, "R190", what, hint)
    return with_changes(sources, node, name)


def _refuse_endless(text: str, query: exp.Expr, node: Operator) -> None:
    """Raise ``Refused`` (R195) if the first event would have endless changes."""
    if node.cuts_time and any(child.opens_events() for child in node.inputs):
        calls = [call for call in query.find_all(exp.Anonymous) if call.name.upper() in ("TUMBLE", "HOP", "CHOP")]
        what = (
            "events arrive here before their end is known, so EMIT CHANGES would emit endlessly many windows of "
            "each event at once"
        )
        hint = "Limit the events below: FROM CLIP(s, AT MOST INTERVAL '1' DAY). Or leave EMIT CHANGES out."
        raise refuse_at(text, calls[0] if calls else query, "R195", what, hint)
    for child in node.inputs:
        if is_lifetimes(child):
            _refuse_endless(text, query, child)


def alike(text: str, query: exp.Expr, nodes: Sequence[Operator]) -> bool:
    """Return True if the inputs of a UNION ALL are events, False if they are rows; refuse a mixture."""
    answers = {is_lifetimes(node) for node in nodes}
    if len(answers) > 1:
        hint = "Turn the events into rows with EMIT in a view, or declare an EVENT SHAPE for every input."
        raise refuse_at(text, query, "R197", "some inputs of UNION ALL have lifetimes and others do not", hint)
    return answers == {True}


def refuse_in_select(query: exp.Select, scope: Scope) -> None:
    """Note problems of a SELECT over events."""
    order = query.args.get("order")
    if order is not None:
        hint = "EMIT decides the order in which events go out. Use a T-sort in a query over a view that EMITs."
        scope.refuse("R193", "ORDER BY is not supported for events, which have lifetimes", order, hint)
    for entry in query.expressions:
        if isinstance(entry, exp.Alias) and entry.alias.lower() == "rowtime":
            hint = "Move events with SHIFT(s, interval)."
            what = "AS ROWTIME is not supported for events: the start of an event is its rowtime"
            scope.refuse("R193", what, entry, hint)
        if isinstance(entry, exp.Column) and entry.name.lower() == "rowtime" and not is_rowtime(scope.bind(entry)):
            table = entry.text("table")
            what = f"{table}.ROWTIME, the start of one side of a join, is a column here and needs a name"
            scope.refuse("R193", what, entry, f"Write {table}.ROWTIME AS {table}_start.")
    for key, words in (("limit", "LIMIT"), ("windowed", "WINDOWED BY"), ("qualify", "QUALIFY")):
        if query.args.get(key):
            hint = "Use it in a query over a view that EMITs the events as rows."
            scope.refuse("R193", f"{words} is not supported for events, which have lifetimes", query, hint)
    for window in query.find_all(exp.Window):
        scope.refuse("R193", "OVER is not supported for events, which have lifetimes", window, "Group by SNAPSHOT().")
    if scope.promises:
        scope.refuse("R193", "MONOTONIC is not supported for events, which have no order of arrival", query)


# EMIT CHANGES: derives the plan that shows each item's changes from the plan of final results (semantics 9.5).
#
# The changes of the streams below are merged and numbered; above them the same operators work on versions. Operators
# that map single events stay as they are; joins and groups record which change caused a result.


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
