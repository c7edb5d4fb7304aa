"""DROP: forgets definitions of the script and streams of the home directory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from rowtime.core.errors import Place, Refused, refuse
from rowtime.plan.bind.catalog import Catalog
from rowtime.plan.bind.pump_edge import pump_name
from rowtime.plan.bind.stream_defs import StreamDef
from rowtime.plan.bind.suggestions import suggestion
from rowtime.sql import statements as sql

_MOST = 5  # names in a message


@dataclass
class Drops:
    """Executes DROP; ``streams`` and ``schemas`` are dropped for good, ``created`` schemas may be empty."""

    catalog: Catalog
    defines: list[StreamDef]
    streams: list[str] = field(default_factory=list)
    schemas: list[str] = field(default_factory=list)
    created: set[str] = field(default_factory=set)

    def take(self, statement: sql.Drop | sql.DropSchema | sql.CreateSchema) -> None:
        """Execute a statement. Raises ``Refused`` (R103, R147)."""
        if isinstance(statement, sql.Drop):
            self._one(statement)
        elif isinstance(statement, sql.DropSchema):
            self._schema(statement)
        else:
            self.created.add(statement.name.text.lower())

    def _one(self, statement: sql.Drop) -> None:
        name = statement.name.text.lower()
        if not self._forget(statement.kind, name) and not statement.if_exists:
            raise self._not_there(statement.kind, name, statement.name.place)

    def _schema(self, statement: sql.DropSchema) -> None:
        schema = statement.name.text.lower()
        named = {"STREAM": {*self.catalog.streams, *self.catalog.names()} - self._others(), **self._kinds}
        members = [(kind, name) for kind, names in named.items() for name in names if name.startswith(f"{schema}.")]
        if not members and schema not in self.created and not statement.if_exists:
            hint = f"Write DROP SCHEMA IF EXISTS {schema}, or leave the statement out."
            raise refuse("R103", f"there is no schema {schema}", hint, statement.name.place)
        if members and not statement.cascade:
            names = sorted({name for _, name in members})
            more = ", …" if len(names) > _MOST else ""
            what = f"the schema {schema} is not empty: it has {', '.join(names[:_MOST])}{more}"
            raise refuse("R147", what, f"Write DROP SCHEMA {schema} CASCADE.", statement.name.place)
        self.created.discard(schema)
        if statement.cascade:
            self.schemas.append(schema)
        for kind, name in members:
            self._forget(kind, name)

    def _forget(self, kind: str, name: str) -> bool:
        """Forget one object; return whether it existed."""
        if kind == "FUNCTION":
            return self.catalog.drop_function(name)
        if kind != "STREAM":
            return self._kinds[kind].pop(name, None) is not None
        defined = self.catalog.stream(name) is not None
        self.catalog.drop(name)
        self.defines[:] = [stream for stream in self.defines if stream.name != name]
        self.streams.append(name)
        return defined

    @property
    def _kinds(self) -> dict[str, dict[str, Any]]:
        """Return the definitions of a script, except streams, by their kind."""
        catalog = self.catalog
        return {
            "VIEW": catalog.views,
            "PUMP": catalog.pumps,
            "TABLE": catalog.tables,
            "FUNCTION": {**catalog.functions, **catalog.scalars},
            "SERVER": catalog.servers,
        }

    def _others(self) -> set[str]:
        return {*self.catalog.views, *self.catalog.tables}

    def _not_there(self, kind: str, name: str, place: Place) -> Refused:
        """Return the refusal to drop an object that does not exist."""
        kinds = {"STREAM": self.catalog.streams, **self._kinds}
        actual = next((word for word, named in kinds.items() if word != kind and name in named), None)
        if actual is not None:
            article = "a" if actual != "FUNCTION" else "a table"
            return refuse("R103", f"{name} is {article} {actual.lower()}", f"Write DROP {actual} {name}.", place)
        near = suggestion(name, sorted(kinds[kind])) if kinds[kind] else ""
        hint = f"Write DROP {kind} IF EXISTS {name}, or leave the statement out."
        hint = near if near.startswith("Did") else hint
        return refuse("R103", f"there is no {kind.lower()} {name}", hint, place)


def names_there(
    statements: Iterable[sql.Statement], catalog: Catalog, functions: Iterable[str]
) -> Callable[[str, bool], bool]:
    """Return a test whether the script has such a pump, or (False) such a stream, view, table or function."""
    created = [s for s in statements if isinstance(s, sql.CreateStream | sql.CreateView | sql.CreateTable)]
    names = {*functions, *(s.name.text.lower() for s in created)}
    pumps = {pump_name(s) for s in statements if isinstance(s, sql.CreatePump)}
    return lambda name, pump: name in pumps if pump else name in names or catalog.stream(name) is not None
