"""Sources of a query: the operators of a name after FROM.

A view used twice is bound once, so it is computed once. A stream that a pump of the same script fills is read from the
pump, together with the items of other processes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, cast

from sqlglot import exp

from rowtime.core.columns import COLUMN_BOUND, PROMOTED_TIME, ROWTIME
from rowtime.core.errors import Place, Problem, Refused, refuse
from rowtime.core.shapes import EventShape
from rowtime.expr.conditions import col
from rowtime.operators.contract import EDGES, Column, Operator, Origin, walk
from rowtime.operators.contract.requirement import COUNTED
from rowtime.operators.events.bounded_events import BoundedEvents
from rowtime.operators.events.event_stream import EventStream
from rowtime.operators.events.imported_bounds import ImportedBounds
from rowtime.operators.events.row_events import RowEvents
from rowtime.operators.gates.rejected import Rejected
from rowtime.operators.gates.tsort import TSort
from rowtime.operators.order.ordered import Ordered
from rowtime.operators.panes.event_time import FORWARDED
from rowtime.operators.rows.lifetimes import is_lifetimes
from rowtime.operators.rows.select import Item, Select, extended
from rowtime.operators.streams.stream import Stream
from rowtime.operators.streams.union_all import UnionAll
from rowtime.plan import file_times
from rowtime.plan.bind.catalog import Catalog
from rowtime.plan.bind.declared import declared, order_of, tolerance
from rowtime.plan.bind.emit import as_rows
from rowtime.plan.bind.event_time import MANUAL, event_timed, forwarded, settings_of
from rowtime.plan.bind.ledger import system_stream
from rowtime.plan.bind.pump_edge import PumpEdge, behind, edge_of, pump_name
from rowtime.plan.bind.pump_list import by_place
from rowtime.plan.bind.rowtime_columns import rowtime_column, selected
from rowtime.plan.bind.scope import mark_of, null_of
from rowtime.plan.bind.stream_defs import TEMPORARY, StreamDef, check_times, demands_of
from rowtime.plan.bind.suggestions import suggestion
from rowtime.plan.enforce import Enforcer
from rowtime.plan.finite import is_finite
from rowtime.plan.formats import read_problems
from rowtime.sql.places import place_of, refuse_at
from rowtime.sql.statements import CreatePump, CreateView

SINGLE_WRITER = frozenset({"parquet", "csv", "json", "rate", "delta", "iceberg", "ledger"})


@dataclass
class BoundQuery:
    """A bound query: its operator, and the columns that are functions of its rowtime."""

    node: Operator
    lineage: Mapping[str, exp.Expr] = field(default_factory=dict)


class Binder(Protocol):
    """Binds the queries of one text; code that binds a part of a query uses it for the queries inside."""

    text: str
    sources: Sources

    def bind(self, query: exp.Expr, name: str) -> BoundQuery:
        """Return the operators of a query; ``name`` names the gates in it. Raises ``Refused``."""

    trying: bool
    """A rewrite is being tried, to be a hint."""

    def binds(self, query: exp.Expr, name: str) -> bool:
        """Return True if a rewrite of a query binds, and no rewrite is being tried."""

    def refusal(self, query: exp.Expr, name: str) -> Refused | None:
        """Return why a rewrite of a query does not bind."""


FROM_NOW = frozenset({"log", "parquet", "csv", "json", "kafka", "delta", "iceberg"})
"""Formats in which existing data can be distinguished from new data."""


@dataclass
class Starts:
    """How each stream is read, and where first: a script reads a stream in one way only."""

    now: dict[str, Place | None] = field(default_factory=dict)
    beginning: dict[str, Place | None] = field(default_factory=dict)

    def note(self, catalog: Catalog, name: str, place: Place | None, *, now: bool) -> None:
        """Note how ``name`` is read; raises ``Refused`` (R157) if that is not possible, or differs elsewhere."""
        if now:
            self._check(catalog, name, place)
        mine, other = (self.now, self.beginning) if now else (self.beginning, self.now)
        if name in other:
            ways = ("FROM NOW", "from its start")
            what = f"{name} is read {ways[now]} elsewhere in this script, and here {ways[not now]}"
            raise refuse("R157", what, "Write FROM NOW in both places, or in none.", place)
        mine.setdefault(name, place)

    @staticmethod
    def _check(catalog: Catalog, name: str, place: Place | None) -> None:
        stream = None if name in catalog.views or name in catalog.tables else catalog.stream(name)
        if stream is None and name in catalog.names():
            hint = "If it is a view, write FROM NOW after the streams inside it."
            raise refuse("R157", f"{name} is not a stream, so FROM NOW does not apply to it", hint, place)
        if stream is not None and stream.format not in FROM_NOW:
            hint = "Leave it out; it has no rows from before the start."
            raise refuse("R157", f"a stream of {stream.format} cannot be read FROM NOW", hint, place)


OURS = "\0"  # begins a key that is no name of a script: no text contains it


@dataclass
class Sources:
    """The operators of names, bound on first use; ``warnings`` do not prevent a script from running.

    ``compared``: operators that compare rowtimes, although they keep nothing until a time.
    """

    catalog: Catalog
    warnings: list[Problem] = field(default_factory=list)
    compared: set[str] = field(default_factory=set)
    bound: dict[str, BoundQuery] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    open: list[str] = field(default_factory=list)
    starts: Starts = field(default_factory=Starts)
    edges: list[PumpEdge] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.enforcer = Enforcer(self.fresh)

    def warned(self, roots: Sequence[Operator]) -> list[Problem]:
        """Return the warnings, with those of the operators ``roots`` and below."""
        read = {**self.starts.now, **self.starts.beginning}
        return [*self.warnings, *file_times.warnings(roots, self.compared, read)]

    def enforced(self, node: Operator, name: str) -> Operator:
        """Return the operator with merges where operators below require them; ``name``: of its query."""
        return self.enforcer.plan(node, name)

    def fresh(self, name: str) -> str:
        """Return an operator name that is not taken: the name itself, or with a number."""
        candidate, number = name, 2
        while candidate in self.names:
            candidate, number = f"{name}.{number}", number + 1
        self.names.add(candidate)
        return candidate

    def table(self, binder: Binder, item: exp.Table) -> tuple[Operator, Mapping[str, exp.Expr]]:
        """Return the operator of a table item: a stream, a view, or ``gate.rejected``."""
        name = full_name(item)
        if item.text("db") and item.name.lower() == "rejected":
            return self._rejected(binder, item, name.removesuffix(".rejected")), {}
        now = item.args.get("now")
        self.starts.note(self.catalog, name, place_of(binder.text, now or item), now=now is not None)
        source = self.named(binder, name, item)
        return source.node, source.lineage

    def named(self, binder: Binder, name: str, item: exp.Expr) -> BoundQuery:
        """Return the query or stream behind a name, bound once."""
        if name in self.bound:
            return self.bound[name]
        if name in self.open:
            raise refuse_at(binder.text, item, "R123", f"the definition of {name} refers to itself")
        if name in self.catalog.tables:
            raise refuse_at(binder.text, item, "R124", f"{name} is a table; a table cannot be read as a stream")
        self.open.append(name)
        try:
            if name in self.catalog.views:
                view = self.catalog.views[name]
                bound = binder.bind(view.query, name)
                bound = self.renamed(bound, f"{name}.renamed", view.columns, view.place)
                bound = self._event_timed(bound, view)
            else:
                stream = self.catalog.stream(name) or system_stream(name)
                if stream is None:
                    raise Refused(self.catalog.unknown(name, place_of(binder.text, item)))
                self.catalog.check_read(name)
                if unknown := self.catalog.unknown_secrets(stream, place_of(binder.text, item)):
                    raise Refused(*unknown)
                if lacks := read_problems(stream.format, stream.options, stream.columns, place_of(binder.text, item)):
                    raise Refused(*lacks)
                bound = self._in_order(stream, *self._stream(binder, stream))
            self.bound[name] = replace(bound, node=self.enforced(bound.node, name))
        finally:
            self.open.pop()
        return self.bound[name]

    def _stream(self, binder: Binder, stream: StreamDef) -> tuple[Operator, Stream | None]:
        """Return the rows of a stream, and the operator that reads them and the bounds of their writers."""
        columns = tuple(Column(name, kind) for name, kind in stream.columns)
        pumps = [p for p in self.catalog.pumps.values() if p.target.text.lower() == stream.name and p.started]
        if self.fresh(stream.name) != stream.name:
            what, hint = f"the stream {stream.name} has the name of an operator", "Rename the pump or view that has it."
            raise refuse("R209", what, hint)
        has_times = stream.event_time is not None or stream.shape is not None
        source = Stream(
            stream.name,
            columns,
            (stream.format, stream.options),
            stream.idle_after,
            single=stream.format in SINGLE_WRITER or dict(stream.options).get("writer") == "",
            batched=dict(stream.options).get("position") == "",
            checks=demands_of(stream),
            early=stream.early,
            resync=stream.resync,
            ahead=stream.ahead,
            event_bounds=self._sets_bounds(stream, pumps),
            column_bounds=bool(stream.orders) and stream.format == "log" and not has_times,
            from_now=stream.name in self.starts.now,
        )
        if source.resync:
            _check_resync(source)
        if stream.shape is not None:
            if pumps:
                what = (
                    f"{stream.name} has an event shape, and a pump of this script fills it: reading it here is not "
                    "supported yet"
                )
                hint = "Read the query of the pump, or read the stream in a script of its own."
                raise refuse("R190", what, hint, pumps[0].place)
            if stream.shape.imports is not None:
                return _importing(self, binder, source, stream.shape), None
            source = EventStream.over(source, stream.shape)
        if stream.format == TEMPORARY and not pumps:
            what = f"no pump fills the TEMPORARY stream {stream.name}"
            hint = f"Add CREATE PUMP … AS INSERT INTO {stream.name} SELECT STREAM …."
            raise refuse("R134", what, hint, stream.places.get(""))
        if not pumps:
            return source, source
        _check_filled(source, pumps[0])
        fed = tuple(self._pumped(binder, pump, source) for pump in pumps)
        if stream.format == TEMPORARY:
            return fed[0] if len(fed) == 1 else UnionAll(self.fresh(f"{stream.name}.writers"), fed, optional=True), None
        return UnionAll(self.fresh(f"{stream.name}.writers"), (source, *fed), optional=True), source

    def _sets_bounds(self, stream: StreamDef, pumps: Sequence[CreatePump]) -> bool:
        """Return True if the bounds that writers send are about the event time."""
        if stream.event_time is None or stream.event_time.mode != MANUAL:
            return False
        if pumps or stream.format == "kafka":
            what = "a pump fills" if pumps else "comes from Kafka"
            hint = f"Declare the event time on a view of {stream.name}."
            raise refuse("R190", f"MODE MANUAL of a stream that {what} is not supported yet", hint)
        return True

    def _event_timed(self, bound: BoundQuery, view: CreateView) -> BoundQuery:
        """Return a view with the event time that it declares, from here on another region; or its rows as events."""
        if view.shape is not None:
            name = view.name.text.lower()
            if view.event_time is not None:
                what = "EVENT TIME together with EVENT SHAPE is not supported yet"
                raise refuse("R190", what, "Leave one of the two out.", view.name.place)
            bound = replace(bound, node=self.enforced(bound.node, name))
            return BoundQuery(events_of(self.fresh, bound.node, view.shape, name, view.name.place))
        if view.event_time is None:
            return bound
        name = view.name.text.lower()
        settings = settings_of(view.event_time)
        if settings.mode == FORWARDED:
            return BoundQuery(forwarded(self.fresh, bound.node, settings, name, view.event_time.place), bound.lineage)
        node = event_timed(bound.node, settings, self.fresh(f"{name}.event_time"), view.event_time.place)
        return BoundQuery(node, bound.lineage)

    def _in_order(self, stream: StreamDef, node: Operator, source: Stream | None) -> BoundQuery:
        """Return a stream above the checks of its declared orders; ``source``: has the bounds of its writers."""
        lineage = rowtime_column(stream) if node is source else {}
        gate = source if source is not None and source.column_bounds else None
        if stream.event_time is not None:
            given = source if source is not None and source.event_bounds else None
            node = event_timed(node, stream.event_time, self.fresh(f"{stream.name}.event_time"), Place(1, 1), given)
        for number, (name, kind, text) in enumerate(stream.orders, 1):
            definition, order = order_of(stream.name, name, kind, text)
            within, rows = tolerance(definition)
            check = self.fresh(f"{stream.name}.{name}")
            column = Column(name, kind, declared(definition))
            more = number < len(stream.orders)
            way = not order.ascending, order.strict
            node = Ordered(check, node, col(name), *way, column, within, rows, gate, gate is not None and more, more)
            lineage[name] = mark_of(check)
        return BoundQuery(node, lineage)

    def _pumped(self, binder: Binder, pump: CreatePump, stream: Stream) -> Operator:
        """Return a pump's rows as one writer: in order and numbered, as in the log; above the guard."""
        node = self.pump(binder, pump).node
        if stream.column_bounds:  # a pump sets none, but other writers may
            none = Item(Column(COLUMN_BOUND, "STRING"), null_of("STRING"))
            node = extended(self.fresh(f"{pump_name(pump)}.rows"), node, none)
        node = self.enforcer.edge(node, COUNTED, f"{pump_name(pump)}.written")
        if stream.early is None:
            return node
        time = Item(Column(PROMOTED_TIME), col(ROWTIME))
        timed = replace(extended(self.fresh(f"{pump_name(pump)}.timed"), node), hidden=(time,))
        # Its rows are in order, and its clock is theirs; its other promises do not hold among them.
        gate = self.fresh(f"{stream.name}.{pump_name(pump)}")
        return TSort(gate, timed, 0, sorts=False, early=stream.early, follows=col(ROWTIME))

    def pump(self, binder: Binder, pump: CreatePump) -> BoundQuery:
        """Return the query of a pump, bound once for its sink and for the readers of its stream."""
        key = f"{OURS}pump {pump_name(pump)}"
        if key not in self.bound:
            if key in self.open:
                raise refuse("R123", f"the pump {pump_name(pump)} reads what it writes", place=pump.place)
            self.open.append(key)
            try:
                stream = self.catalog.stream(pump.target.text)
                self.catalog.check_read(pump.target.text.lower())
                placed = by_place(pump, stream)
                node = as_rows(self.fresh, binder.bind(placed.query, pump_name(pump)).node, pump_name(pump))
                if stream is not None:  # otherwise the target is a function, or the pump is refused anyway
                    check_order(stream, placed, node)
                    node = edge_of(self, node, placed, stream, binder.text)
                self.bound[key] = BoundQuery(node)
            finally:
                self.open.pop()
        return self.bound[key]

    def renamed(self, bound: BoundQuery, name: str, new: Sequence[str], place: Place) -> BoundQuery:
        """Return a query with new column names: ``CREATE VIEW v (a, b)``, ``FROM (…) AS v(a, b)``."""
        old = bound.node.emits().columns
        if not new:
            return bound
        if len(new) != len(old) or any(column.lower() == "rowtime" for column in new):
            names = ", ".join(column.name for column in old)
            hint = "Give each column a name. ROWTIME does not count and keeps its own name."
            raise refuse("R118", f"the query has {len(old)} columns: {names}", hint, place)
        items = tuple(Item(replace(c, name=to), col(c.name)) for c, to in zip(old, new, strict=True))
        moved = {to: bound.lineage[c.name] for c, to in zip(old, new, strict=True) if c.name in bound.lineage}
        return BoundQuery(Select(self.fresh(name), bound.node, items), moved | selected(items, bound.lineage))

    def _rejected(self, binder: Binder, item: exp.Table, name: str) -> Operator:
        key = f"{OURS}rejected {name}"
        pump = self.catalog.pumps.get(name)
        defined = name in self.catalog.views or self.catalog.stream(name) is not None
        if key not in self.bound and pump is not None and not defined:
            node = self.pump(binder, pump).node
            self.bound[key] = BoundQuery(refused_by_pump(self.fresh, node, name, place_of(binder.text, item)))
        if key not in self.bound:
            node = self.named(binder, name, item).node
            pumps = [f"{name}.{pump}" for pump in self.catalog.pumps]
            self.bound[key] = BoundQuery(refused_rows(self.fresh, node, name, pumps, place_of(binder.text, item)))
        return self.bound[key].node


def full_name(item: exp.Table) -> str:
    """Return a name with its schema, which is a part of it: ``app.orders``."""
    return ".".join(part.name.lower() for part in item.parts)


def _check_resync(stream: Stream) -> None:
    """Refuse uses of RESYNC that are not supported yet. Raises ``Refused`` (R190)."""
    why, hint = "", "Keep the time in a column, and write RESYNC in a T-sort: ORDER BY t WITHIN … EARLY BEYOND …."
    if stream.batched:
        why, hint = "whose rows come in sets without an order", "Name a position column."
    elif stream.event_bounds or stream.column_bounds:
        why = "with bounds of an event time" if stream.event_bounds else "with columns of declared order"
    if why:
        raise refuse("R190", f"RESYNC of a stream {why} is not supported yet", hint)


def _check_filled(stream: Stream, pump: CreatePump) -> None:
    """Refuse pumps whose rows the guard of a stream cannot judge yet (R190), and topics. Raises ``Refused``."""
    kind = stream.source[0]
    if kind == "kafka" or is_finite(kind):  # it would deliver again what the pump has delivered
        hint = "Read the input of the pump, for example through a view; or read the stream in a script of its own."
        raise refuse("R504", f"a {kind} stream cannot be read in the script whose pump fills it", hint, pump.place)
    for words, given in {"RESYNC": stream.resync, "EARLY BEYOND … AFTER ARRIVAL": stream.ahead is not None}.items():
        if given:
            what = f"{stream.name} has {words}, and a pump of this script fills it: that is not supported yet"
            hint = "Put it into the query of the pump, ORDER BY t WITHIN … EARLY BEYOND …, and leave it out here."
            raise refuse("R190", what, hint, pump.place)


# -- BOUND FROM (semantics 9.3) ------------------------------------------------------------


def _importing(sources: Sources, binder: Binder, source: Stream, shape: EventShape) -> BoundedEvents:
    """Return the events of ``source``: its rows and the bounds in the merged order, and the gate above.

    Raises ``Refused`` (R199) if the other stream has no bounds of its own.
    """
    name = source.name
    bounds = ImportedBounds(sources.fresh(f"{name}.imported"), _lender(sources, binder, name, shape), source.columns)
    union = UnionAll(sources.fresh(f"{name}.union"), (replace(source, event_bounds=True), bounds))
    return BoundedEvents(sources.fresh(f"{name}.events"), union, source.columns, shape)


def _lender(sources: Sources, binder: Binder, name: str, shape: EventShape) -> EventStream:
    """Return the stream whose bounds are imported."""
    lender = shape.imports or ""
    definition = None if lender in sources.catalog.views else sources.catalog.stream(lender)
    if definition is None or definition.shape is None or definition.shape.imports is not None:
        what = f"{name} has BOUND FROM {lender}, which is not a stream with an EVENT SHAPE and bounds of its own"
        raise refuse("R199", what, "Name the stream whose writers send bounds, or that generates them.", Place(1, 1))
    node = sources.named(binder, lender, exp.to_table(lender)).node
    return cast("EventStream", node)  # it has a shape, and does not import bounds


def refused_rows(
    fresh: Callable[[str], str], node: Operator, name: str, pumps: Collection[str], place: Place
) -> Operator:
    """Return the rows refused by the gate ``name`` below ``node``: by its ``pumps`` and by its declarations.

    ``fresh`` makes names. Raises ``Refused`` (R125) if there is no such gate.
    """
    gates = [part for part in walk(node) if part.refuses()]
    gate = next((part for part in gates if part.name == name), None)
    gate = gate or next((part for part in gates if part.name == f"{name}.events"), None)
    if gate is None and node.computes:
        return Rejected(fresh(f"{name}.rejected"), node, node.emits().of_users, failing=name)
    if gate is None:
        raise refuse("R125", f"{name} refuses no rows", f"These do: {', '.join(part.name for part in gates)}.", place)
    filled = [part for part in gates if part.name in pumps]
    others = (part for part in gates if part is not gate and part.name.startswith(f"{name}."))
    orders = [part for part in others if part.checks_declared()]
    return _together(fresh, name, (gate, *filled, *orders), optional=bool(filled))


def refused_by_pump(fresh: Callable[[str], str], node: Operator, pump: str, place: Place) -> Operator:
    """Return the rows refused on a pump's way to its target: by its query's T-sort, its gate, its order checks.

    All of them have the columns of the query, as they were computed. Raises ``Refused`` (R125) if nothing is checked.
    """
    gates = [part for part in walk(node) if part.checks_pump(pump)]
    query = behind(node)
    if not gates and query.computes:
        return Rejected(fresh(f"{pump}.rejected"), query, query.emits().of_users, failing=pump)
    if not gates:
        what = f"{pump} refuses no rows: its values fit the declared columns of the target, and nothing is checked"
        raise refuse("R125", what, place=place)
    return _together(fresh, pump, gates, optional=False)


def _together(fresh: Callable[[str], str], name: str, gates: Sequence[Operator], *, optional: bool) -> Operator:
    refused = tuple(Rejected(fresh(f"{name}.rejected"), gate, gate.refused_columns()) for gate in gates)
    return UnionAll(fresh(f"{name}.rejected.all"), refused, optional=optional) if refused[1:] else refused[0]


# Pumps into streams of events: whether events come in the order that the stream accepts (semantics 9.3).
#
# A pump writes its bound, which is about ROWTIME. The stream judges an event by the times of its shape. So these must
# be the ROWTIME: for a point or an interval its start, for an edge the time of the edge. Otherwise events in time would
# be judged late.


def check_order(stream: StreamDef, pump: CreatePump, node: Operator) -> None:
    """Raise ``Refused`` (R193) if a pump's events would not come in the order in which they are judged."""
    shape = stream.shape
    if shape is None or shape.imports is not None:  # imported bounds are used there, not those of its writers
        return
    names = [name.lower() for name in (pump.columns or [name for name, _ in stream.columns])]
    given = node.emits().names
    if len(given) != len(names):
        return  # refused elsewhere
    column_of = dict(zip(names, given, strict=True))
    start, stop = (node.origin(column_of.get((name or "").lower(), "")) for name in (shape.start, shape.stop))
    if start is not None and start.what == ROWTIME:
        return
    if shape.edges and start is not None and stop is not None and (start.what, stop.what) == EDGES:
        return
    raise Refused(_problem(stream, pump, start, shape.kind))


def _problem(stream: StreamDef, pump: CreatePump, start: Origin | None, kind: str) -> Problem:
    assert stream.shape is not None
    column = stream.shape.start
    judged = f"{stream.name} takes events in the order of {column}, and judges them by the bounds of the pump"
    columns = ", ".join(name for name in (column, stream.shape.stop) if name)
    if start is None:
        what = f"{judged}. Those bounds are about ROWTIME, and {column} is not the ROWTIME of these rows"
        hint = (
            f"Write q.ROWTIME AS {column} in the select list, where q is the input in FROM; or promote it first: "
            f"SELECT STREAM t AS ROWTIME, t AS {column}, … ORDER BY t WITHIN INTERVAL '1' MINUTE."
        )
        return Problem("R193", what, pump.place, hint)
    what = f"{judged}. Here the events come {start.order}, so events that began long ago would be LATE"
    form = {"POINT": f"POINTS ({column})", "INTERVAL": f"INTERVALS ({columns}) FULLY ORDERED"}.get(kind)
    hint = f"Write EMIT {form} after the query."
    if form is None:
        hint = f"Let a view EMIT EDGES (edge, {columns}); read {columns} and the payload from it."
    return Problem("R193", what, pump.place, hint)


def events_of(fresh: Callable[[str], str], node: Operator, shape: EventShape, name: str, place: Place) -> RowEvents:
    """Return the events of a view's rows. Raises ``Refused`` (R103, R170, R190, R193)."""
    if is_lifetimes(node):
        hint = "Leave it out; SHIFT, EXTEND, ALTER_DURATION and CLIP change the lifetimes of events."
        raise refuse("R193", f"EVENT SHAPE turns rows into events, and {name} already has events", hint, place)
    if shape.imports is not None:
        hint = f"Pump the rows into a stream of events that has BOUND FROM {shape.imports}."
        raise refuse("R190", "BOUND FROM of a view is not supported yet", hint, place)
    columns = node.emits().of_users
    by_name = {column.name.lower(): column for column in columns}
    for named in shape.columns:
        if named.lower() not in by_name:
            what = f"the event shape names a column {named}, which {name} does not have"
            hint = suggestion(named, [column.name for column in columns])
            if named.upper() == "ROWTIME":
                renamed = ", ".join("at" if column.upper() == "ROWTIME" else column for column in shape.columns)
                hint = f"Select it under a name: SELECT STREAM ROWTIME AS at, … EVENT SHAPE {shape.kind} ({renamed})."
            raise refuse("R103", what, hint, place)
    start, stop, by = (part and by_name[part.lower()].name for part in (shape.start, shape.stop, shape.by))
    shape = replace(shape, start=start or "", stop=stop, by=by)
    check_times(shape, {column.name: column.type for column in columns}, place)
    _check_order(node, shape, name, place)
    return RowEvents(fresh(f"{name}.events"), node, columns, shape)


def _check_order(node: Operator, shape: EventShape, name: str, place: Place) -> None:
    """Check (R193) that rows without bounds of their own come in the order in which events are judged."""
    if shape.generates:
        return
    start, stop = (node.origin(column or "") for column in (shape.start, shape.stop))
    if start is not None and start.what == ROWTIME and not shape.edges:
        return
    if shape.edges and start is not None and stop is not None and (start.what, stop.what) == EDGES:
        return
    what = f"{shape.start} is not the ROWTIME of the rows of {name}, so their bounds say nothing about it"
    or_else = f"or select s.ROWTIME AS {shape.start}"
    if shape.edges:
        what = f"the rows of {name} are not edges that a view EMITs, so their bounds say nothing about the edges"
        or_else = f"or select both times of a view that EMITs EDGES (edge, {shape.start}, {shape.stop})"
    hint = (
        f"Generate bounds from the rows: write BOUND EVERY 1 ROW DELAY INTERVAL '1' MINUTE after the shape; {or_else}."
    )
    raise refuse("R193", what, hint, place)
