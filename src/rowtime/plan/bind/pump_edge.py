"""The edge from a pump to its target: which column goes where, its cast, and what is refused on the way.

Semantics 10: columns are assigned by position and take the names of the target; each value is assigned to the declared
type by Spark's ANSI store assignment. A type that can never fit is refused here; a row whose value does not fit is
refused at the gate. Operators are planned only for values that have to be cast or checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from rowtime.core.errors import Place, Problem, Refused, refuse
from rowtime.expr.conditions import col
from rowtime.expr.store_assignment import as_read, is_padded, length_of, may_assign, same_type
from rowtime.operators.contract import Column, Operator, quoted
from rowtime.operators.gates.pump_gate import Assigned, PumpGate
from rowtime.operators.order.ordered import Ordered
from rowtime.operators.rows.select import Item, Select
from rowtime.operators.rows.sized_texts import holds_lengths, in_size
from rowtime.plan.bind.declared import order_of, tolerance
from rowtime.plan.bind.pump_list import is_rowtime_entry, place_in_list
from rowtime.plan.bind.stream_defs import checks_of
from rowtime.plan.formats.holds import holds_of
from rowtime.plan.formats.lake import LAKES
from rowtime.sql.dialect import Rowtime
from rowtime.sql.places import place_of
from rowtime.sql.script import parse_expression

if TYPE_CHECKING:
    from rowtime.plan.bind.sources import Sources
    from rowtime.plan.bind.stream_defs import StreamDef
    from rowtime.sql.statements import CreatePump

ARRANGED = ".arranged"  # suffix of the operator that arranges the target's columns


@dataclass(frozen=True)
class PumpEdge:
    """The columns of a pump's query (``node``) and of its target, for code that knows more types than the plan.

    ``places``: where the query computes each column, if it lists them one by one. ``top``: the operator below the
    target.
    """

    pump: str
    target: str
    node: Operator
    assigned: tuple[Assigned, ...]
    places: Mapping[str, Place]
    place: Place
    top: Operator | None = None

    @property
    def operators(self) -> tuple[Operator, ...]:
        """Return the operators between the query and the target, from below."""
        parts: list[Operator] = []
        part = self.top
        while part is not None and part is not self.node:
            parts.append(part)
            part = part.inputs[0]
        return tuple(reversed(parts))

    def misfits(self, types: Mapping[str, str]) -> Iterator[Problem]:
        """Yield the assignments (R220) that no value of the query's ``types`` can fit."""
        for column in self.assigned:
            given = types.get(column.source, "")
            if column.source and given and may_assign(given, column.type) is False:
                yield self.misfit(column, given)

    def misfit(self, column: Assigned, given: str) -> Problem:
        """Return R220 for a column of the query whose type is not the target's."""
        what = f"{column.source} is of type {given.upper()}, which cannot be assigned to {self.target}.{column}"
        hint = f"Cast it, as in CAST(… AS {column.type}); for a text that may not be such a value, use TRY_CAST."
        return Problem("R220", what, self.places.get(column.source, self.place), hint)


def edge_of(sources: Sources, node: Operator, pump: CreatePump, stream: StreamDef, text: str) -> Operator:
    """Return a pump's rows with the columns of its target, after its gates.

    Raises ``Refused``: R103, R119, R132 for the list of columns, R220 and R221 for values that never fit.
    """
    assigned = _assigned(node.emits().columns, pump, stream)
    edge = PumpEdge(pump_name(pump), stream.name, node, assigned, _places(node, pump, text), pump.place)
    types = {column.name: column.type for column in node.emits().columns}
    problems = [*edge.misfits(types), *_without_value(edge, stream)]
    if problems:
        raise Refused(*problems)
    node = _gated(sources, node, edge, stream, types)
    node = _in_order(sources, node, edge, stream, types)
    if not _is_same(node.emits().columns, assigned):
        items = tuple(Item(Column(c.name, c.type), _value(c, types.get(c.source, ""))) for c in assigned)
        node = Select(sources.fresh(f"{edge.pump}{ARRANGED}"), node, items)
    node = sources.enforced(node, edge.pump)
    sources.edges.append(replace(edge, top=node))
    return node


def behind(node: Operator) -> Operator:
    """Return the top of a pump's query, below the edge that casts values and refuses rows."""
    while node.at_edge or node.name.endswith(ARRANGED):  # the edge also has checks of declared orders
        node = node.inputs[0]
    return node


def pump_name(pump: CreatePump) -> str:
    """Return the name of a pump; a plain INSERT is named after its target."""
    return (pump.name.text if pump.name else f"into_{pump.target.text}").lower()


def _assigned(given: Sequence[Column], pump: CreatePump, stream: StreamDef) -> tuple[Assigned, ...]:
    wanted = [name for name, _ in stream.columns]
    names = list(pump.columns) or wanted
    if len(given) != len(names):
        what = f"{stream.name} takes {len(names)} columns ({', '.join(names)}), the query gives {len(given)}"
        hint = "Select one column for each, in this order; rowtime adds ROWTIME itself."
        raise refuse("R132", f"{what} ({', '.join(c.name for c in given)})", hint, pump.place)
    unknown = [number for number, name in enumerate(names) if name.lower() not in {w.lower() for w in wanted}]
    if unknown:
        what = f"{stream.name} has no column {names[unknown[0]]}"
        raise refuse("R103", what, f"Its columns are {', '.join(wanted)}.", place_in_list(pump, unknown[0]))
    listed = {to.lower(): column.name for to, column in zip(names, given, strict=True)}
    return tuple(
        Assigned(listed.get(name.lower(), ""), name, kind, name in stream.required) for name, kind in stream.columns
    )


def _places(node: Operator, pump: CreatePump, text: str) -> dict[str, Place]:
    listed = pump.query.expressions if isinstance(pump.query, exp.Select) else []
    entries = [entry for entry in listed if not is_rowtime_entry(entry)]
    if len(entries) != len(node.emits().names) or any(entry.is_star for entry in entries):
        return {}
    return {name: place_of(text, entry) for name, entry in zip(node.emits().names, entries, strict=True)}


def _without_value(edge: PumpEdge, stream: StreamDef) -> Iterator[Problem]:
    """Yield problems (R221) of columns that the list omits although they cannot be NULL."""
    ordered = {name for name, _, _ in stream.orders}
    for column in edge.assigned:
        if not column.source and (column.required or column.name in ordered):
            why = "NOT NULL" if column.required else "of declared order"
            what = f"{edge.target}.{column.name} is {why}, and the list of columns leaves it out: no row would fit"
            yield Problem("R221", what, edge.place, f"Add {column.name} to the list, and a value for it to the query.")


def _gated(sources: Sources, node: Operator, edge: PumpEdge, stream: StreamDef, types: Mapping[str, str]) -> Operator:
    """Return the query below the pump's gate, unless everything is known to fit.

    The types of an existing table are known only when the pipeline starts.
    """
    values = {column.name: _value(column, types.get(column.source, ""), tried=True) for column in edge.assigned}
    checks = checks_of(stream)
    gate = PumpGate(
        _gate_name(sources, edge.pump),
        node,
        edge.assigned,
        checks,
        tuple(_over(c, values) for c in checks),
        tuple((words, _over(condition, values)) for words, condition in holds_of(stream)),
        limited=stream.format in ("jdbc", *LAKES),
    )
    if not gate.limited and not any(True for _ in gate.tests(types)):
        return node
    sources.names.add(gate.name)
    return gate


def _gate_name(sources: Sources, pump: str) -> str:
    """Return the gate's name: that of its pump, unless a T-sort in its query, a stream or a view has it."""
    catalog = sources.catalog
    taken = pump in sources.names or pump in catalog.views or pump in catalog.tables or catalog.stream(pump) is not None
    return sources.fresh(f"{pump}.gate") if taken else pump


def _in_order(
    sources: Sources, node: Operator, edge: PumpEdge, stream: StreamDef, types: Mapping[str, str]
) -> Operator:
    """Return the pump's rows above the checks of the target's declared orders."""
    assigned = {column.name: column for column in edge.assigned}
    for number, (name, kind, text) in enumerate(stream.orders, 1):
        definition, order = order_of(stream.name, name, kind, text)
        within, rows = tolerance(definition)
        value = _value(assigned[name], types.get(assigned[name].source, ""))
        check, way = sources.fresh(f"{edge.pump}.{name}"), (not order.ascending, order.strict)
        node = Ordered(check, node, value, *way, None, within, rows, more=number < len(stream.orders))
    return node


def _is_same(given: Sequence[Column], assigned: Sequence[Assigned]) -> bool:
    """Return True if the query's columns have the names and types of the target's."""
    return len(given) == len(assigned) and all(
        own.name == to.name == to.source and own.type and same_type(own.type, to.type)
        for own, to in zip(given, assigned, strict=True)
    )


def _value(column: Assigned, given: str, *, tried: bool = False) -> exp.Expr:
    """Return the value for the target; ``tried``: NULL if it does not fit."""
    if not column.source:
        return exp.cast(exp.null(), column.type, dialect=Rowtime)
    value = col(column.source)
    if given and same_type(given, column.type):
        return value
    length = length_of(column.type)
    if length is not None:  # Spark trims the blanks of a VARCHAR, and pads a CHAR with them
        text = value if given.upper() == "STRING" else exp.cast(value, "STRING", dialect=Rowtime)
        size = exp.Literal.number(length)
        if is_padded(column.type):
            return exp.Anonymous(this="RPAD", expressions=[text, size, exp.Literal.string(" ")])
        return exp.Anonymous(this="LEFT", expressions=[text, size])
    if holds_lengths(column.type):
        converted = f"{'TRY_CAST' if tried else 'CAST'}({quoted(column.source)} AS {as_read(column.type)})"
        return parse_expression(in_size(converted, column.type))
    cast = exp.cast(value, column.type, dialect=Rowtime)
    return exp.TryCast(this=cast.this, to=cast.args["to"]) if tried else cast


def _over(check: exp.Expr, values: Mapping[str, exp.Expr]) -> exp.Expr:
    """Return a condition on the target's columns as one on the values assigned to them."""
    return check.copy().transform(
        lambda node: exp.paren(values[node.name].copy()) if isinstance(node, exp.Column) else node
    )
