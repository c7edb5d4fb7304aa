"""Changes without state: operators that process each row by itself may change from one tick to the next.

A projection, a filter, a join with a static table, windows as table functions and the gate of a pump keep nothing. A
merge, a T-sort and an order check keep the rows that wait and marks of the rows that have passed; a sink keeps the
number of rows it has sent. These may continue above a changed filter or projection if waiting rows have the same
columns as later rows, and if the values by which they compare rows are computed as before. All other operators keep
results of the past, which belong to the query that made them.

Law: the rows that a tick reads follow the plan of that tick, wherever they wait afterwards. So the output is a function
of the items and of the positions at which the plan changed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from sqlglot import exp, parse_one

from rowtime.expr.store_assignment import same_type
from rowtime.operators.contract import Operator
from rowtime.operators.sinks.sink import Sink
from rowtime.plan.stored import CLASSES, StoredOperator, StoredPlan

Operators = Mapping[str, StoredOperator]
TUNING: Final = frozenset(
    {"compression", "codec", "parquet.compression", "commit.interval", "optimize.files"}
    | {"batchsize", "isolationlevel", "numpartitions", "querytimeout"}
)
"""Options of sinks, in lower case, that say how rows are written, and neither which nor where."""


def keeps_nothing(kind: str) -> bool:
    """Return True if operators of a kind process each row by itself, so that they may change at any tick."""
    return CLASSES[kind].begins_anywhere and kind != Sink.kind


def goes_on(operator: StoredOperator) -> bool:
    """Return True if an operator keeps only waiting rows and marks of rows that have passed."""
    return operator.kind == Sink.kind or (operator.answers.keeps_rows_alone and not operator.fields.get("resync"))


def untuned(operator: StoredOperator) -> StoredOperator:
    """Return a sink without the options that say how it writes."""
    if operator.kind != Sink.kind:
        return operator
    lasting = [[name, value] for name, value in operator.fields["options"] if name.lower() not in TUNING]
    return replace(operator, fields={**operator.fields, "options": lasting})


def unfinished(operator: StoredOperator) -> StoredOperator:
    """Return an operator without the final projection of its results."""
    return replace(
        operator,
        fields={name: part for name, part in operator.fields.items() if name not in operator.answers.of_results},
    )


class Seen:
    """A plan without the operators that keep nothing: which operators read from which, and their columns.

    ``called``: the names of this plan's operators in the plan that it is compared with, if they continue.
    """

    def __init__(self, operators: Operators, called: Mapping[str, str]) -> None:
        self._operators, self._called = operators, called

    def anchors(self, name: str) -> tuple[str, ...]:
        """Return the stateful operators from which another one reads; for a joined table, the stream's."""
        operator = self._operators[name]
        below = operator.inputs[: len(operator.inputs) if operator.answers.side_by_side else 1]
        return tuple(anchor for child in below for anchor in self._anchors(child))

    def _anchors(self, name: str) -> tuple[str, ...]:
        if keeps_nothing(self._operators[name].kind):
            return self.anchors(name)
        return (self._called.get(name, ""),)

    def columns(self, name: str) -> tuple[tuple[str, str, str], ...]:
        """Return the name, the type (empty: unknown) and the meaning of each column that an operator reads."""
        return self._columns(self._operators[name].inputs[0])

    def _columns(self, name: str) -> tuple[tuple[str, str, str], ...]:
        operator = self._operators[name]
        if "items" in operator.fields and keeps_nothing(operator.kind):
            return tuple(
                (item["column"]["name"], item["column"]["type"], self.meaning(operator.inputs[0], item["expression"]))
                for item in operator.fields["items"]
            )
        if _passes_columns(operator):
            return self._columns(operator.inputs[0])
        if operator.answers.side_by_side:
            return tuple(map(_in_one, zip(*map(self._columns, operator.inputs), strict=True)))
        if "columns" in operator.fields:
            return tuple((c["name"], c["type"], "") for c in operator.fields["columns"])
        if "items" in operator.fields:
            return tuple(
                (i["column"]["name"], i["column"]["type"], self._as_read(name, i)) for i in operator.fields["items"]
            )
        return (("*", "", self._as_read(name, "")),)

    def _as_read(self, name: str, what: Any) -> str:
        """Return the output of an operator that keeps more than rows."""
        return f"{what} of {self._called.get(name, '')}" if name in self._called else f"of another {name}"

    def hidden(self, name: str) -> list[str]:
        """Return the operators that add hidden columns to the rows that an operator reads, from above."""
        hidden, at = [], self._operators[name].inputs[0]
        while keeps_nothing(self._operators[at].kind):
            operator = self._operators[at]
            hidden += [f"{operator.kind} {operator.fields.get('alone')}"] if len(operator.inputs) > 1 else []
            at = operator.inputs[0]
        return hidden

    def compared(self, name: str) -> tuple[str, ...]:
        """Return the expressions by which an operator compares rows with earlier ones, over its anchors."""
        operator = self._operators[name]
        compared = [operator.fields[part] for part in operator.answers.compares if operator.fields.get(part)]
        below = self._operators[operator.inputs[0]]
        hidden = [item["expression"] for item in below.fields.get("hidden", ())]
        return (
            *(self.meaning(operator.inputs[0], text) for text in compared),
            *(self.meaning(below.inputs[0], text) for text in hidden),
        )

    def meaning(self, name: str, text: str) -> str:
        """Return an expression over an operator's columns as one over the columns of its anchors."""
        operator = self._operators[name]
        if operator.answers.side_by_side:
            return " | ".join(self.meaning(child, text) for child in operator.inputs)
        if "items" in operator.fields and keeps_nothing(operator.kind):
            expressions = {
                i["column"]["name"]: i["expression"]
                for i in (*operator.fields["items"], *operator.fields.get("hidden", ()))
            }
            return self.meaning(operator.inputs[0], _put_in(text, expressions))
        if _passes_columns(operator):
            return self.meaning(operator.inputs[0], text)
        return f"{text} of {self._called.get(name) or f'another {name}'}"


def _in_one(columns: Sequence[tuple[str, str, str]]) -> tuple[str, str, str]:
    """Return a column of several inputs side by side."""
    kinds = {kind for _, kind, _ in columns}
    return columns[0][0], kinds.pop() if len(kinds) == 1 else "", " | ".join(meaning for *_, meaning in columns)


def _passes_columns(operator: StoredOperator) -> bool:
    """Return True if an operator passes on the columns of its one input unchanged."""
    return len(operator.inputs) == 1 and (operator.answers.keeps_rows_alone or operator.answers.at_edge)


def _put_in(text: str, expressions: Mapping[str, str]) -> str:
    """Return an expression with its columns replaced by their expressions."""

    def instead(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column) or node.name not in expressions:
            return node
        return exp.paren(parse_one(expressions[node.name], dialect="spark"))

    return parse_one(text, dialect="spark").transform(instead).sql("spark")


def same_columns(before: Sequence[tuple[str, str, str]], after: Sequence[tuple[str, str, str]]) -> bool:
    """Return True if columns have the same names and types; an unknown type needs the same expression."""
    return len(before) == len(after) and all(
        was[0] == now[0] and (same_type(was[1], now[1]) if was[1] and now[1] else bool(was[2]) and was[2] == now[2])
        for was, now in zip(before, after, strict=True)
    )


class RowByRow:
    """Finds which operators of a program continue those of an old plan although rows below are computed differently.

    ``changed``: operators whose results change from a tick on. ``behind``: operators above these that continue.
    ``waiting``: merges that could continue, except that rows with other columns wait there, and these columns.
    ``tuned``: sinks with changed options of how they write. ``held``: the operators of the old plan that hold rows;
    ``None`` if unknown, which counts as all.
    """

    def __init__(self, plan: StoredPlan, nodes: Sequence[Operator], held: Collection[str] | None) -> None:
        self._old, self._held = plan.operators, held
        self._nodes = {node.name: node for node in nodes}
        self._now = {node.name: plan.of(node) for node in nodes}
        self._before = Seen(self._old, {name: name for name in self._old})
        self.changed: dict[str, None] = {}
        self.behind: set[str] = set()
        self.waiting: dict[str, str] = {}
        self.tuned: dict[str, str] = {}

    def match(self, continues: dict[str, str]) -> None:
        """Add to the operators that continue an old one, by name, those that do so above a change; inputs first."""
        for node in self._nodes.values():
            if node.name not in continues and node.inputs and self._reads_known(node, continues):
                self._match(node, continues)

    def _reads_known(self, node: Operator, continues: Mapping[str, str]) -> bool:
        """Return True if all inputs continue or are changed; the table of a join is checked by itself."""
        read = node.inputs[:1] if keeps_nothing(node.kind) else node.inputs
        return all(child.name in continues or child.name in self.changed for child in read)

    def _match(self, node: Operator, continues: dict[str, str]) -> None:
        was, now = self._old.get(node.name), self._now[node.name]
        own = was is not None and was.kind == now.kind and node.name not in continues.values()
        if keeps_nothing(now.kind):
            self.changed[node.name] = None
        elif was is None or not own or not self._follows(node, was, now, continues):
            return
        if own:
            continues[node.name] = node.name  # it keeps its counts

    def _follows(self, node: Operator, was: StoredOperator, now: StoredOperator, continues: Mapping[str, str]) -> bool:
        others = {name for name in self.changed if keeps_nothing(self._now[name].kind)}
        seen = Seen(self._now, {name: of for name, of in continues.items() if name not in others})
        read = [continues.get(name) if self._is_same(name) else None for name in now.inputs]
        if now.answers.of_results:
            alike = [*was.inputs] == read and unfinished(was).fields == unfinished(now).fields
            self.changed |= {node.name: None} if alike else {}
            return alike
        if not (goes_on(was) and goes_on(now)) or untuned(was).fields != untuned(now).fields:
            return False
        if seen.anchors(node.name) != self._before.anchors(node.name):
            return False
        touched = read != [*was.inputs]
        if touched and not self._bears(was, now, seen):
            return False
        if touched:
            self.behind.add(node.name)
        if was.fields != now.fields:
            self.tuned[node.name] = _differing(was, now)
        return True

    def _is_same(self, name: str) -> bool:
        return name not in self.changed and name not in self.behind

    def _bears(self, was: StoredOperator, now: StoredOperator, seen: Seen) -> bool:
        """Return True if an operator can continue with the rows that follow the change."""
        if now.kind == Sink.kind:
            options = {name.lower(): value for name, value in now.fields["options"]}
            alike = same_columns(self._before.columns(was.name), seen.columns(now.name))
            return options.get("mode") != "changes" and (alike or now.fields["format"] == "console")
        if now.answers.compares or now.answers.promotes:
            return self._before.compared(was.name) == seen.compared(now.name)
        if now.answers.side_by_side or (self._held is not None and was.name not in self._held):
            return True
        both = self._before.columns(was.name), seen.columns(now.name)
        alike = same_columns(*both) and self._before.hidden(was.name) == seen.hidden(now.name)
        if not alike:
            before, after = (", ".join(f"{name} {kind}".strip() for name, kind, _ in these) for these in both)
            why = f"rows that wait for their turn have the columns {before}, and those that follow {after}"
            self.waiting[now.name] = why
        return alike


def _differing(was: StoredOperator, now: StoredOperator) -> str:
    """Return the options in which two sinks differ, as text."""
    before, after = ({name.lower(): value for name, value in operator.fields["options"]} for operator in (was, now))
    names = sorted({name for name in {*before, *after} if before.get(name) != after.get(name)})
    return ", ".join(f"{name} {before.get(name, 'not set')} is {after.get(name, 'not set')}" for name in names)
