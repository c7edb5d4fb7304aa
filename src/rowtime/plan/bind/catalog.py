"""The catalog: the streams, views, pumps and tables that a script can name.

Streams are defined in the home directory, where other processes find them; definitions of the script come on top. Names
mean the same in upper and lower case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from rowtime.core.errors import Place, Problem, Refused, refuse
from rowtime.operators.rows.table_function import Make
from rowtime.plan.bind.python_code import PythonCode
from rowtime.plan.bind.scalar_functions import check
from rowtime.plan.bind.stream_defs import StreamDef, is_reserved, stored_stream, stream_of
from rowtime.plan.bind.suggestions import suggestion
from rowtime.plan.kept_options import lasting, unknown_secrets
from rowtime.sql.statements import CreateFunction, CreatePump, CreateServer, CreateStream, CreateTable, CreateView

REPLACES: Final = (
    "If another script has defined it, give this script a home of its own: --home DIR. Or choose another name. Or "
    "write CREATE OR REPLACE STREAM: then the other script is refused, and checkpoints that read the stream may be."
)
"""What to do about a stream of the home that has another definition."""


class Definitions(Protocol):
    """Where definitions are stored; `client.home.Home` implements it."""

    def definition(self, name: str) -> Mapping[str, Any] | None:
        """Return the definition of a stream, or ``None``."""

    def names(self) -> Iterable[str]:
        """Return the names that are defined."""

    def elsewhere(self, name: str) -> str:
        """Return a hint to another home that defines streams, if this one defines none; else nothing."""


@dataclass(frozen=True)
class Without:
    """The definitions of a home directory without some ``hidden`` names, which a script defines again."""

    home: Definitions
    hidden: frozenset[str]

    def definition(self, name: str) -> Mapping[str, Any] | None:
        """Return the definition of a stream, or ``None``."""
        return None if name in self.hidden else self.home.definition(name)

    def names(self) -> Iterable[str]:
        """Return the names that are defined."""
        return (name for name in self.home.names() if name not in self.hidden)

    def elsewhere(self, name: str) -> str:
        """Return a hint to another home that defines streams, if this one defines none; else nothing."""
        return self.home.elsewhere(name)


@dataclass
class Catalog:
    """The objects that can be named, by lower-case name."""

    home: Definitions | None = None
    streams: dict[str, StreamDef] = field(default_factory=dict)
    views: dict[str, CreateView] = field(default_factory=dict)
    pumps: dict[str, CreatePump] = field(default_factory=dict)
    tables: dict[str, CreateTable] = field(default_factory=dict)
    servers: dict[str, CreateServer] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)
    functions: dict[str, Make] = field(default_factory=dict)
    scalars: dict[str, CreateFunction] = field(default_factory=dict)
    python: dict[str, tuple[Callable[..., Any], str]] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    stored: set[str] = field(default_factory=set)
    makers: dict[str, Callable[[], None]] = field(default_factory=dict)
    """Functions that define streams with the columns of a query, when one is first used."""
    session: Callable[[str], CreateTable | None] | None = None
    of_session: dict[str, CreateTable] = field(default_factory=dict)
    unread: dict[str, Refused] = field(default_factory=dict)
    """The streams whose columns are not known, because no code of the script runs; with what is said of their uses."""
    code: PythonCode = field(default_factory=PythonCode)

    def table(self, name: str) -> CreateTable | None:
        """Return a table of the script; if nothing else has the name, a table of the given session."""
        if self.session is not None and not (name in self.tables or name in self.views or self.stream(name)):
            statement = self.session(name)
            if statement is not None:
                self.tables[name] = self.of_session[name] = statement
        return self.tables.get(name)

    def stream(self, name: str) -> StreamDef | None:
        """Return a stream of the script or of the home directory."""
        key = name.lower()
        if key in self.makers:
            self.makers.pop(key)()
        if key not in self.streams and key not in self.dropped and self.home is not None:
            stored = self.home.definition(key)
            if stored is not None:
                self.streams[key] = stored_stream(key, stored, self.variables)
                self.stored.add(key)
        return self.streams.get(key)

    def names(self) -> list[str]:
        """Return every name that can follow FROM."""
        stored = set(self.home.names()) if self.home is not None else set()
        return sorted({*self.streams, *self.makers, *self.views, *self.tables, *(stored - self.dropped)})

    def check_read(self, name: str) -> None:
        """Raise ``Refused`` (R169) for a stream whose columns are not known."""
        if name in self.unread:
            raise Refused(*self.unread[name].problems)

    def drop(self, name: str) -> None:
        """Forget a stream of the script or of the home directory."""
        self.streams.pop(name, None)
        self.makers.pop(name, None)
        self.dropped.add(name)

    def unknown(self, name: str, place: Place) -> Problem:
        """Return the problem of an unknown name."""
        names, parts = self.names(), name.lower().split(".")
        elsewhere = self.home.elsewhere(name) if self.home is not None else ""
        behind = next((shorter for n in range(1, len(parts)) if (shorter := ".".join(parts[n:])) in names), None)
        hint = f"Did you mean {behind}?" if behind else elsewhere or suggestion(name, names)
        return Problem("R103", f"there is no stream or view {name}", place, hint)

    def stand_in(self, statement: CreateStream) -> None:
        """Register the columns of a definition that is refused, so that queries of the stream are still checked."""
        columns = {c.name.lower(): (c.name, c.type) for c in statement.columns if not is_reserved(c.name)}
        name = statement.name.text.lower()
        self.stored.discard(name)
        self.streams.setdefault(name, StreamDef(name, tuple(columns.values())))

    def define_function(self, statement: CreateFunction) -> None:
        """Register CREATE FUNCTION; raises ``Refused``: R141, and R203 for a second one with the name."""
        name = statement.name.text.lower()
        if (name in self.functions or name in self.scalars) and not statement.replace:
            hint = "Write CREATE OR REPLACE FUNCTION, or choose another name."
            raise refuse("R203", f"the function {name} is defined twice", hint, statement.name.place)
        self.drop_function(name)
        if statement.parameters is None:
            self.functions[name] = self.code.function(statement)
            return
        check(statement)
        self.scalars[name] = statement
        if statement.body is None:
            self.python[name] = self.code.function(statement), statement.returns

    def drop_function(self, name: str) -> bool:
        """Forget a function of the script; return False if there is none."""
        dropped = [kind.pop(name, None) for kind in (self.functions, self.scalars, self.python)]
        return any(definition is not None for definition in dropped)

    def _keep_names(self, old: StreamDef, defined: StreamDef) -> None:
        """Register a refused definition, so that queries of the stream are checked as if it were the stream's.

        If the script defines the stream twice, queries may have been written for either definition.
        """
        columns = {} if old.name in self.stored else {name.lower(): (name, kind) for name, kind in old.columns}
        columns |= {name.lower(): (name, kind) for name, kind in defined.columns}
        self.streams[defined.name] = replace(defined, columns=tuple(columns.values()))

    def options(self) -> Iterator[tuple[str, str]]:
        """Yield the options of all streams and tables that are known so far."""
        for stream in self.streams.values():
            yield from stream.options
        for table in self.tables.values():
            yield from table.options

    def ambiguous(self) -> Iterator[Problem]:
        """Yield a problem (R203) for each name that is two of stream, view and table of the script."""
        streams = {*self.streams, *self.makers} - self.stored
        tables = self.tables.keys() - self.of_session.keys()
        hint = "Choose another name for one of them."
        for name in sorted((streams & self.views.keys()) | ((streams | self.views.keys()) & tables)):
            other = self.tables.get(name) or self.views[name]
            kinds = [
                kind for kind, names in (("stream", streams), ("view", self.views), ("table", tables)) if name in names
            ]
            yield Problem("R203", f"{name} is a {' and a '.join(kinds)}", other.name.place, hint)

    def unknown_secrets(self, stream: StreamDef, place: Place) -> list[Problem]:
        """Return problems for the secrets that a stream of the home directory needs and nobody gives."""
        return unknown_secrets(stream.name, stream.options, place) if stream.name in self.stored else []

    def define(self, statement: CreateStream, kept: tuple[tuple[str, str], ...]) -> StreamDef:
        """Register CREATE STREAM; raises ``Refused`` (R203) if the name means something else.

        ``kept``: its options without secrets. Secrets and connection options may differ from before.
        """
        defined = replace(stream_of(statement), kept=kept)
        old = self.stream(defined.name)
        if old is not None and statement.idle_after is None and not statement.replace:
            defined = replace(defined, idle_after=old.idle_after)  # ALTER STREAM may have set it
        if old is not None and _lasting(old) != _lasting(defined) and not statement.replace:
            if statement.if_not_exists:
                return old
            self._keep_names(old, defined)
            what = f"the stream {defined.name} already exists with another definition"
            hint = "Write CREATE OR REPLACE STREAM, or choose another name."
            if old.name in self.stored:
                what = f"the stream {defined.name} already exists in the home with another definition"
                hint = REPLACES
            self.stored.discard(defined.name)
            raise refuse("R203", what, hint, statement.name.place)
        self.streams[defined.name] = defined
        self.stored.discard(defined.name)
        return defined


def _lasting(stream: StreamDef) -> StreamDef:
    return replace(stream, options=lasting(stream.options))
