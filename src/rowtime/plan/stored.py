"""The stored plan: each operator of a program as plain data, read by key (``plan.json``, format 4).

An operator is ``{"kind", "name", "inputs", "fields"}``. In its fields an expression is Spark SQL text, a column
``{"name", "type"}``, a duration ``{"micros"}``, the mark of a running call ``{"mark"}``, any other part an object of
its own fields. Names are unique in a plan and follow those of the script, so two operators are the same if everything
else is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Final, Self

from sqlglot import exp

from rowtime.core.errors import refuse
from rowtime.core.fields import stored_fields, typed
from rowtime.operators.contract import Column, Operator
from rowtime.operators.events.event_stream import EventStream
from rowtime.operators.every import OPERATORS
from rowtime.operators.over.value_clocks import MARK
from rowtime.operators.streams.stream import Stream
from rowtime.plan.kept_options import lasting
from rowtime.plan.pump_orders import Orders
from rowtime.sql.generate import to_stored

FORMAT: Final = 4
OTHER_VERSION: Final = "Run it with the version of rowtime that wrote it, or start again with another --checkpoint."
Fields = Mapping[str, Any]
Names = Mapping[str, str]
CLASSES: Final = {one.kind: one for one in OPERATORS}
"""Operators by kind; all classes of one kind give the same answers."""
TARGET: Final = ("format", "options")
"""The fields of a sink that identify its target."""


@dataclass(frozen=True)
class StoredOperator:
    """The stored description of one operator; two are equal if they compute the same from the same inputs."""

    kind: str
    name: str = field(compare=False)
    inputs: tuple[str, ...]
    fields: Fields

    @property
    def answers(self) -> type[Operator]:
        """Return the class of such operators, for answers that depend only on the class."""
        return CLASSES[self.kind]

    def micros(self, name: str) -> int:
        """Return a duration (µs); 0 if there is none."""
        return micros_of(self.fields.get(name)) or 0

    @property
    def target(self) -> Fields:
        """Return the target of a sink: its format and options."""
        return {name: self.fields[name] for name in TARGET}

    def __str__(self) -> str:
        """Return one line of text for people."""
        parts = "; ".join(f"{name}={_shown(value)}" for name, value in self.fields.items())
        return f"{self.kind}({', '.join(self.inputs)}; {parts})"


@dataclass(frozen=True)
class StoredPlan:
    """A plan as a checkpoint keeps it: its script without secrets, and its operators by name, inputs first.

    ``retired``: the targets of removed sinks. ``spans``: former names of operators. ``since``: the first tick of this
    plan, if another plan came before. ``values``: the variables of
    its script that are not secret. ``again``: the tick that computed the whole earlier input again, by the plan of that
    tick; 0 for none. ``orders``: those of later scripts, which its script ends with. ``stopped``: the pumps that do not
    run. ``paused``: their operators that stay as they are.
    """

    sql: str
    operators: Mapping[str, StoredOperator]
    retired: Mapping[str, Fields] = field(default_factory=dict)
    spans: Mapping[str, Sequence[Sequence[Any]]] = field(default_factory=dict)
    since: int | None = None
    values: Mapping[str, str] = field(default_factory=dict)
    anew: int = 0
    orders: Orders = field(default_factory=Orders)
    stopped: Sequence[str] = ()
    paused: Mapping[str, StoredOperator] = field(default_factory=dict)

    @classmethod
    def of_operators(cls, sql: str, operators: Iterable[Operator], values: Mapping[str, str]) -> Self:
        """Return the plan of a script."""
        return cls(sql, {node.name: stored(node) for node in operators}, values=values)

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> Self:
        """Return the plan from its JSON object; raises ``Refused`` (R402) for that of another format."""
        if stored["format"] != FORMAT:
            what = f"the plan of the checkpoint has format {stored['format']}, this version reads format {FORMAT}"
            raise refuse("R402", what, OTHER_VERSION)
        others: dict[str, Any] = {"stopped": tuple(stored.get("stopped", ()))}
        others |= {name: stored[name] for name in ("retired", "spans", "since", "values", "anew") if name in stored}
        orders, paused = Orders.read(stored.get("orders", {})), _listed(stored.get("paused", ()))
        return cls(stored["sql"], _listed(stored["operators"]), **others, orders=orders, paused=paused)

    def as_json(self) -> dict[str, Any]:
        """Return the plan as a JSON object."""
        others = {
            "retired": self.retired,
            "spans": self.spans,
            "since": self.since,
            "values": self.values,
            "anew": self.anew,
            "orders": self.orders.as_json(),
            "stopped": [*self.stopped],
            "paused": [vars(operator) for operator in self.paused.values()],
        }
        given = {name: value for name, value in others.items() if value}
        return {"sql": self.sql, "operators": [vars(operator) for operator in self.operators.values()], **given}

    def resumable(self) -> Self:
        """Return the plan with its paused operators among those that can be continued."""
        return replace(self, operators={**self.operators, **self.paused}) if self.paused else self

    def of(self, node: Operator, names: Names | None = None) -> StoredOperator:
        """Return an operator as this plan would store it, with its inputs and marks under other ``names``."""
        return stored(node, names)

    def is_of(self, operators: Iterable[Operator]) -> bool:
        """Return True if it is the plan of these operators."""
        return {node.name: self.of(node) for node in operators} == self.operators

    def marks(self, now: StoredOperator, was: StoredOperator) -> Names | None:
        """Return the marks of an old operator's running calls by those of the new one; ``None`` if more differs."""
        if _unmarked(now) != _unmarked(was):
            return None
        return dict(zip(_marks(now.fields), _marks(was.fields), strict=True))

    def of_kind(self, *kinds: str) -> list[str]:
        """Return the names of the operators of some kinds."""
        return [name for name, operator in self.operators.items() if operator.kind in kinds]

    @property
    def formats(self) -> dict[str, str]:
        """Return the formats of its streams."""
        streams = self.of_kind(Stream.kind, EventStream.kind)
        return {name: str(self.operators[name].fields["source"][0]) for name in streams}


def _listed(stored: Iterable[Mapping[str, Any]]) -> dict[str, StoredOperator]:
    listed = (StoredOperator(**{**operator, "inputs": tuple(operator["inputs"])}) for operator in stored)
    return {operator.name: operator for operator in listed}


def stored(node: Operator, names: Names | None = None) -> StoredOperator:
    """Return an operator as plain data, with its inputs and marks under other ``names``."""
    called = names or {}
    own = [f for f in fields(node) if f.name not in ("name", "inputs")]  # type: ignore[arg-type]
    own = [f for f in own if not any(getattr(node, f.name) is child for child in node.inputs)]
    inputs = tuple(called.get(child.name, child.name) for child in node.inputs)
    return StoredOperator(node.kind, node.name, inputs, _object(node, own, lambda e: to_stored(_renamed(e, called))))


Spelled = Callable[[exp.Expr], str]


def _object(instance: Any, of: Sequence[Any], spelled: Spelled) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for f, value in stored_fields(instance, tuple(of)).items():
        plain = _plain(lasting_of(value) if "options" in f.metadata else value, spelled)
        kind = next((key for name, key in (("Micros", "micros"), ("Mark", "mark")) if typed(f, name)), "")
        content[f.name] = {kind: plain} if kind and plain is not None else plain
    return content


def _plain(value: Any, spelled: Spelled) -> Any:
    if isinstance(value, exp.Expr):
        return spelled(value)
    if isinstance(value, tuple):
        return [_plain(part, spelled) for part in value]
    if isinstance(value, Column):
        return {"name": value.name, "type": value.type}  # proofs about it may change without changing its meaning
    if is_dataclass(value):
        return _object(value, fields(value), spelled)
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def lasting_of(value: Any) -> Any:
    """Return options, or a format with options, without those that may change from start to start."""
    return (value[0], lasting(value[1])) if value and isinstance(value[0], str) else lasting(value)


def micros_of(value: Any) -> int | None:
    """Return the µs of a stored duration."""
    micros: int | None = value["micros"] if isinstance(value, dict) else value
    return micros


def _renamed(expression: exp.Expr, names: Names) -> exp.Expr:
    """Return an expression with other names for its marks."""
    if not any(mark.name.removeprefix(MARK) in names for mark in _columns(expression)):
        return expression
    renamed = expression.copy()
    for column in _columns(renamed):
        mark = column.name.removeprefix(MARK)
        column.this.set("this", MARK + names.get(mark, mark))
    return renamed


def _columns(expression: exp.Expr) -> list[exp.Column]:
    return [column for column in expression.find_all(exp.Column) if column.name.startswith(MARK)]


def _marks(value: Any) -> Iterator[str]:
    """Yield the marks of running calls in a stored value."""
    if isinstance(value, Mapping) and value.keys() == {"mark"}:
        yield from filter(None, [value["mark"]])
    elif isinstance(value, Mapping | list):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _marks(part)


def _unmarked(operator: StoredOperator) -> StoredOperator:
    def without(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: bool(part) if name == "mark" else without(part) for name, part in value.items()}
        return [without(part) for part in value] if isinstance(value, list) else value

    return StoredOperator(operator.kind, operator.name, operator.inputs, without(operator.fields))


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, Mapping):
        text = ", ".join(map(_shown, value.values()))
        return text if value.keys() in ({"micros"}, {"mark"}) else f"({text})"
    return str(value)
