"""Sources of a query: what a name after FROM stands for, as operators.

A view used twice is bound once, so it is computed once. A stream that a pump of the same
script fills is read from the pump, together with what other processes write to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rowtime.core.errors import Problem, Refused
from rowtime.operators.contract import Column, Operator, walk
from rowtime.operators.merge import Merge
from rowtime.operators.rejected import Rejected
from rowtime.operators.stream import Stream
from rowtime.operators.tsort import TSort
from rowtime.operators.union_all import UnionAll
from rowtime.plan.catalog import Catalog, StreamDef
from rowtime.sql.places import place_of
from rowtime.sql.statements import CreatePump

if TYPE_CHECKING:
    from sqlglot import exp

    from rowtime.plan.select import Binder, Bound

SINGLE_WRITER = frozenset({"parquet", "csv", "json", "rate"})


@dataclass
class Sources:
    """The operators of named things, bound on first use; ``texts`` are those of stored views."""

    catalog: Catalog
    bound: dict[str, Bound] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    open: list[str] = field(default_factory=list)

    def fresh(self, name: str) -> str:
        """An operator name that is not taken: the name itself, or with a number."""
        candidate, number = name, 2
        while candidate in self.names:
            candidate, number = f"{name}.{number}", number + 1
        self.names.add(candidate)
        return candidate

    def table(self, binder: Binder, item: exp.Table) -> tuple[Operator, Mapping[str, exp.Expr]]:
        """The operator of a table item: a stream, a view, or ``gate.rejected``."""
        if item.text("db") and item.name.lower() == "rejected":
            return self._rejected(binder, item), {}
        name = item.name.lower()
        if item.text("db"):
            raise Refused(self.catalog.unknown(f"{item.text('db')}.{item.name}", place_of(binder.text, item)))
        found = self.named(binder, name, item)
        return found.node, found.lineage

    def named(self, binder: Binder, name: str, item: exp.Expr) -> Bound:
        """The query or stream behind a name, bound once."""
        from rowtime.plan.select import Bound  # noqa: PLC0415 - views are queries again

        if name in self.bound:
            return self.bound[name]
        if name in self.open:
            raise Refused(Problem("R123", f"{name} is defined by itself", place_of(binder.text, item)))
        if name in self.catalog.tables:
            raise Refused(
                Problem("R124", f"{name} is a table; a table cannot be read as a stream", place_of(binder.text, item))
            )
        self.open.append(name)
        try:
            if name in self.catalog.views:
                view = self.catalog.views[name]
                self.bound[name] = binder.bind(view.query, name)
            else:
                stream = self.catalog.stream(name)
                if stream is None:
                    raise Refused(self.catalog.unknown(name, place_of(binder.text, item)))
                self.bound[name] = Bound(self._stream(binder, stream))
        finally:
            self.open.pop()
        return self.bound[name]

    def _stream(self, binder: Binder, stream: StreamDef) -> Operator:
        columns = tuple(Column(name, kind) for name, kind in stream.columns)
        pumps = [p for p in self.catalog.pumps.values() if p.target.text.lower() == stream.name and p.started]
        source = Stream(
            self.fresh(stream.name),
            columns,
            (stream.format, stream.options),
            stream.idle_after,
            single=stream.format in SINGLE_WRITER or dict(stream.options).get("writer") == "",
            batched=dict(stream.options).get("position") == "",
        )
        if not pumps:
            return source
        fed = tuple(self._pumped(binder, pump) for pump in pumps)
        return UnionAll(self.fresh(f"{stream.name}.writers"), (source, *fed), optional=True)

    def _pumped(self, binder: Binder, pump: CreatePump) -> Operator:
        """What a pump writes, as one writer: in order and numbered, as the log would have it."""
        bound = self.pump(binder, pump)
        return Merge(self.fresh(f"{pump_name(pump)}.written"), bound.node, numbers=True)

    def pump(self, binder: Binder, pump: CreatePump) -> Bound:
        """The query of a pump, bound once for its sink and for who reads its stream."""
        key = f"pump {pump_name(pump)}"
        if key not in self.bound:
            if key in self.open:
                raise Refused(Problem("R123", f"the pump {pump_name(pump)} reads what it writes", pump.place))
            self.open.append(key)
            try:
                self.bound[key] = binder.bind(pump.query, pump_name(pump))
            finally:
                self.open.pop()
        return self.bound[key]

    def _rejected(self, binder: Binder, item: exp.Table) -> Operator:
        name = item.text("db").lower()
        key = f"{name}.rejected"
        if key not in self.bound:
            self._bind_rejected(binder, item, name, key)
        return self.bound[key].node

    def _bind_rejected(self, binder: Binder, item: exp.Table, name: str, key: str) -> None:
        from rowtime.plan.select import Bound  # noqa: PLC0415

        node = self.named(binder, name, item).node
        gates = [part for part in walk(node) if isinstance(part, TSort | Stream)]
        gate = next((part for part in gates if part.name == name), None)
        if gate is None:
            raise Refused(
                Problem(
                    "R125",
                    f"{name} refuses no rows",
                    place_of(binder.text, item),
                    f"These do: {', '.join(part.name for part in gates)}.",
                )
            )
        below = gate.inputs[0].emits().columns if gate.inputs else gate.emits().columns
        self.bound[key] = Bound(Rejected(self.fresh(key), gate, below))


def pump_name(pump: CreatePump) -> str:
    """The name of a pump; an INSERT of a query alone goes by its target."""
    return (pump.name.text if pump.name else f"into_{pump.target.text}").lower()
