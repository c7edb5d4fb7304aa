"""The edge from a pump to its target: which column goes where, what it becomes there, what is refused on the way.

SPEC 10: columns go by place and take the names of the target; each value is assigned to the declared type by Spark's
ANSI store assignment. What can never fit is refused here, what does not fit in one row at the gate. Operators are
planned only for what has to be cast or checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from rowtime.core.columns import ROWTIME_NAME
from rowtime.core.errors import Place, Problem, Refused, refuse
from rowtime.expr.conditions import col
from rowtime.expr.store_assignment import as_read, is_padded, length_of, may_assign, same_type
from rowtime.operators.contract import Column, Operator, quoted
from rowtime.operators.gates.pump_gate import Assigned, PumpGate
from rowtime.operators.order.ordered import Ordered
from rowtime.operators.rows.select import Item, Select
from rowtime.operators.rows.sized_texts import holds_lengths, in_size
from rowtime.plan.bind.catalog import checks_of
from rowtime.plan.bind.declared import order_of, tolerance
from rowtime.plan.formats.holds import holds_of
from rowtime.plan.formats.lake import LAKES
from rowtime.sql.dialect import Rowtime
from rowtime.sql.places import place_of
from rowtime.sql.script import parse_expression

if TYPE_CHECKING:
    from rowtime.plan.bind.catalog import StreamDef
    from rowtime.plan.bind.sources import Sources
    from rowtime.sql.statements import CreatePump

ARRANGED = ".arranged"  # ends the name of what gives a target its columns


@dataclass(frozen=True)
class PumpEdge:
    """The columns of a pump's query (of ``node``) beside those of its target, for who knows more types than the plan.

    ``places``: where the query computes each column, if it lists them one by one. ``top``: what the target gets.
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
        """What stands between the query and the target, from below."""
        found: list[Operator] = []
        part = self.top
        while part is not None and part is not self.node:
            found.append(part)
            part = part.inputs[0]
        return tuple(reversed(found))

    def misfits(self, types: Mapping[str, str]) -> Iterator[Problem]:
        """The assignments (R220) that no value of the query's ``types`` can fit."""
        for column in self.assigned:
            given = types.get(column.source, "")
            if column.source and given and may_assign(given, column.type) is False:
                yield self.misfit(column, given)

    def misfit(self, column: Assigned, given: str) -> Problem:
        """R220 for a column of the query whose type is not the target's."""
        what = f"{column.source} is of type {given.upper()}, which is never assigned to {self.target}.{column}"
        hint = f"Cast it, as in CAST(… AS {column.type}); a text that may be no such value, with TRY_CAST."
        return Problem("R220", what, self.places.get(column.source, self.place), hint)


def edge_of(sources: Sources, node: Operator, pump: CreatePump, stream: StreamDef, text: str) -> Operator:
    """What a pump writes, with the columns of its target, behind its gates.

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
    """What a pump's query ends with, behind the edge that casts its values and refuses rows."""
    while node.at_edge or node.name.endswith(ARRANGED):  # beside these there are checks of declared orders
        node = node.inputs[0]
    return node


def pump_name(pump: CreatePump) -> str:
    """The name of a pump; an INSERT of a query alone goes by its target."""
    return (pump.name.text if pump.name else f"into_{pump.target.text}").lower()


def _assigned(given: Sequence[Column], pump: CreatePump, stream: StreamDef) -> tuple[Assigned, ...]:
    wanted = [name for name, _ in stream.columns]
    names = list(pump.columns) or wanted
    if len(given) != len(names):
        what = f"{stream.name} takes {len(names)} columns ({', '.join(names)}), the query gives {len(given)}"
        hint = "Select one column for each, in this order; ROWTIME goes along by itself."
        raise refuse("R132", f"{what} ({', '.join(c.name for c in given)})", hint, pump.place)
    unknown = [name for name in names if name.lower() not in {w.lower() for w in wanted}]
    if unknown:
        raise refuse("R103", f"{stream.name} has no column {unknown[0]}", f"It has {', '.join(wanted)}.", pump.place)
    listed = {to.lower(): column.name for to, column in zip(names, given, strict=True)}
    if len(listed) < len(names):
        raise refuse("R119", f"the list of columns of {stream.name} names one twice", place=pump.place)
    return tuple(
        Assigned(listed.get(name.lower(), ""), name, kind, name in stream.required) for name, kind in stream.columns
    )


def _places(node: Operator, pump: CreatePump, text: str) -> dict[str, Place]:
    listed = pump.query.expressions if isinstance(pump.query, exp.Select) else []
    entries = [entry for entry in listed if not _is_rowtime(entry)]
    if len(entries) != len(node.emits().names) or any(entry.is_star for entry in entries):
        return {}
    return {name: place_of(text, entry) for name, entry in zip(node.emits().names, entries, strict=True)}


def _without_value(edge: PumpEdge, stream: StreamDef) -> Iterator[Problem]:
    """Columns (R221) that the list leaves out, though NULL does not fit them."""
    ordered = {name for name, _, _ in stream.orders}
    for column in edge.assigned:
        if not column.source and (column.required or column.name in ordered):
            why = "NOT NULL" if column.required else "of declared order"
            what = f"{edge.target}.{column.name} is {why}, and the list of columns leaves it out: no row would fit"
            yield Problem("R221", what, edge.place, f"Add {column.name} to the list, and a value for it to the query.")


def _gated(sources: Sources, node: Operator, edge: PumpEdge, stream: StreamDef, types: Mapping[str, str]) -> Operator:
    """The query behind the gate of the pump, unless everything is known to fit.

    What a table takes that is there is known when the pipeline starts.
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
    """A gate has the name of its pump, unless a T-sort in its query, a stream or a view has it."""
    catalog = sources.catalog
    taken = pump in sources.names or pump in catalog.views or pump in catalog.tables or catalog.stream(pump) is not None
    return sources.fresh(f"{pump}.gate") if taken else pump


def _in_order(
    sources: Sources, node: Operator, edge: PumpEdge, stream: StreamDef, types: Mapping[str, str]
) -> Operator:
    """The rows of this pump behind the checks of the target's declared orders."""
    assigned = {column.name: column for column in edge.assigned}
    for number, (name, kind, text) in enumerate(stream.orders, 1):
        definition, order = order_of(stream.name, name, kind, text)
        within, rows = tolerance(definition)
        value = _value(assigned[name], types.get(assigned[name].source, ""))
        check, way = sources.fresh(f"{edge.pump}.{name}"), (not order.ascending, order.strict)
        node = Ordered(check, node, value, *way, None, within, rows, more=number < len(stream.orders))
    return node


def _is_same(given: Sequence[Column], assigned: Sequence[Assigned]) -> bool:
    """True if the query gives the target's columns under their names and of their types."""
    return len(given) == len(assigned) and all(
        own.name == to.name == to.source and own.type and same_type(own.type, to.type)
        for own, to in zip(given, assigned, strict=True)
    )


def _value(column: Assigned, given: str, *, tried: bool = False) -> exp.Expr:
    """What the target gets; ``tried``: NULL where that does not fit."""
    if not column.source:
        return exp.cast(exp.null(), column.type, dialect=Rowtime)
    value = col(column.source)
    if given and same_type(given, column.type):
        return value
    length = length_of(column.type)
    if length is not None:  # Spark cuts blanks off a VARCHAR, and fills a CHAR with them
        text = value if given.upper() == "STRING" else exp.cast(value, "STRING", dialect=Rowtime)
        size = exp.Literal.number(length)
        if is_padded(column.type):
            return exp.Anonymous(this="RPAD", expressions=[text, size, exp.Literal.string(" ")])
        return exp.Anonymous(this="LEFT", expressions=[text, size])
    if holds_lengths(column.type):
        made = f"{'TRY_CAST' if tried else 'CAST'}({quoted(column.source)} AS {as_read(column.type)})"
        return parse_expression(in_size(made, column.type))
    cast = exp.cast(value, column.type, dialect=Rowtime)
    return exp.TryCast(this=cast.this, to=cast.args["to"]) if tried else cast


def _over(check: exp.Expr, values: Mapping[str, exp.Expr]) -> exp.Expr:
    """A condition over the target's columns as one over what is assigned to them."""
    return check.copy().transform(
        lambda node: exp.paren(values[node.name].copy()) if isinstance(node, exp.Column) else node
    )


# -- ROWTIME in the list ------------------------------------------------------------------


def with_rowtime(pump: CreatePump, stream: StreamDef | None) -> CreatePump:
    """ROWTIME in the list of columns promotes a value; in the query, by place, it is also the value of a column.

    ``INSERT INTO s (ROWTIME, a) SELECT STREAM t, a`` is ``INSERT INTO s (a) SELECT STREAM t AS ROWTIME, a``. If the
    query has an entry for each column with ROWTIME among them, that is the value of the column in its place. Raises
    ``Refused`` (R132, R222).
    """
    names = list(pump.columns) or ([name for name, _ in stream.columns] if stream is not None else [])
    query, listed = pump.query, [name.upper() for name in pump.columns]
    entries = list(query.expressions) if isinstance(query, exp.Select) else []
    explicit = bool(entries) and not any(entry.is_star for entry in entries)
    if ROWTIME_NAME not in listed:
        if not explicit or len(entries) != len(names) or not any(map(_is_rowtime, entries)):
            return pump
        return replace(pump, query=_with_entries(query, _by_place(entries, names)))
    if not explicit:
        hint = "Promote it in a query that does, as in SELECT STREAM t AS ROWTIME, a FROM (…) AS q."
        what = "ROWTIME is in the list of columns, and the query does not list its columns one by one"
        raise refuse("R222", what, hint, pump.place)
    if len(entries) != len(names):
        what = f"the list has {len(names)} columns ({', '.join(names)}), the query gives {len(entries)}"
        raise refuse("R132", what, "Select one column for each, in this order.", pump.place)
    at = listed.index(ROWTIME_NAME)
    others = _by_place([*entries[:at], *entries[at + 1 :]], [*names[:at], *names[at + 1 :]])
    is_bare = _is_rowtime(entries[at]) and not isinstance(entries[at], exp.Alias)
    time = [] if is_bare else [_named(entries[at], ROWTIME_NAME)]
    columns = tuple(name for name in pump.columns if name.upper() != ROWTIME_NAME)
    return replace(pump, query=_with_entries(query, [*time, *others]), columns=columns)


def _by_place(entries: Sequence[exp.Expr], names: Sequence[str]) -> list[exp.Expr]:
    """Entries that are ROWTIME under the name of the column in their place; what is promoted stays so."""
    found = [_named(e, name) if _is_rowtime(e) else e for e, name in zip(entries, names, strict=True)]
    promoted = [entry for entry in entries if _is_rowtime(entry) and isinstance(entry, exp.Alias)]
    return [*found, *promoted]


def _is_rowtime(entry: exp.Expr) -> bool:
    return isinstance(entry, exp.Column | exp.Alias) and entry.alias_or_name.upper() == ROWTIME_NAME


def _named(entry: exp.Expr, name: str) -> exp.Expr:
    return exp.alias_(entry.unalias().copy(), name, quoted=True)


def _with_entries(query: exp.Query, entries: Sequence[exp.Expr]) -> exp.Query:
    changed = query.copy()
    changed.set("expressions", [entry.copy() for entry in entries])
    return changed
