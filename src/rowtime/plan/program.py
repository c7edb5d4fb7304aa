"""A program: a whole script, bound. It has what runs, what is defined, and what happens once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from sqlglot.errors import SqlglotError

from rowtime.core.errors import Place, Problem, Refused, refuse
from rowtime.core.secrets import Secrets
from rowtime.operators.contract import Operator, walk
from rowtime.operators.rows.table_function import Make
from rowtime.operators.sinks.sink import Sink
from rowtime.operators.streams.stream import Stream, streams_of
from rowtime.plan.bind.catalog import Catalog, Definitions
from rowtime.plan.bind.clauses import asks_to_stop
from rowtime.plan.bind.event_time import check_set
from rowtime.plan.bind.lifetime_functions import READS
from rowtime.plan.bind.pump_edge import PumpEdge, pump_name
from rowtime.plan.bind.python_code import NOT_CHECKED, PythonCode
from rowtime.plan.bind.scalar_functions import Calls
from rowtime.plan.bind.select import QueryBinder
from rowtime.plan.bind.sinks import SinkBinder
from rowtime.plan.bind.sources import Sources
from rowtime.plan.bind.stream_defs import TEMPORARY, StreamDef, check_bound, duration, no_statement
from rowtime.plan.bind.tables import Tables
from rowtime.plan.drops import Drops, names_there
from rowtime.plan.finite import check_ends, is_finite
from rowtime.plan.formats import is_known, with_options
from rowtime.plan.formats.foreign import of_server
from rowtime.plan.kept_options import Keeper, hidden
from rowtime.plan.pump_orders import BY_CHECKPOINT, OWN_SCRIPT, Orders, named
from rowtime.plan.session_tables import with_definitions
from rowtime.plan.stored import StoredPlan
from rowtime.plan.streams_as import made_later, pump_of, with_columns
from rowtime.sql import statements as sql
from rowtime.sql.filled import FilledText
from rowtime.sql.places import place_at
from rowtime.sql.schemas import looked_up
from rowtime.sql.script import NESTED_TOO_DEEPLY, parse_script


@dataclass
class Program:
    """A bound script of so many ``statements``: its ``text``, and as it was ``written``, with its variables.

    ``written`` has no secrets: literal secrets are replaced by variables with the values ``literal``.

    ``sinks``: the roots of the plan. ``actions``: the statements that insert rows or set bounds, which take effect once
    per checkpoint. ``defines``: the streams to store; ``drops``: those to forget first, including those of
    ``dropped_schemas``. ``take_over``: the pumps that take over their targets. ``edges``: the assignments of pumps to
    columns. ``stops``: a row that cannot be computed ends the run. ``orders``: those of later scripts to its pumps.
    With ``problems`` it does not run, with ``warnings`` it does.
    """

    text: str
    sinks: tuple[Sink, ...] = ()
    actions: tuple[sql.Statement, ...] = ()
    defines: tuple[StreamDef, ...] = ()
    drops: tuple[str, ...] = ()
    take_over: frozenset[str] = frozenset()
    explains: tuple[tuple[str, Operator], ...] = ()
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    catalog: Catalog = field(default_factory=Catalog)
    written: str = ""
    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    statements: int = 0
    dropped_schemas: tuple[str, ...] = ()
    edges: tuple[PumpEdge, ...] = ()
    literal: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: Secrets = field(default_factory=Secrets)
    stops: bool = False
    orders: Orders = field(default_factory=Orders)

    @property
    def operators(self) -> tuple[Operator, ...]:
        """Return every operator, inputs first, each once."""
        seen: dict[str, Operator] = {}
        for sink in self.sinks:
            for node in walk(sink):
                seen.setdefault(node.name, node)
        return tuple(seen.values())

    @cached_property
    def read_once(self) -> frozenset[str]:
        """Return the operators whose rows exactly one other operator reads, and only once."""
        readers: dict[str, list[Operator]] = {}
        for node in self.operators:
            for child in node.inputs:
                readers.setdefault(child.name, []).append(node)
        return frozenset(name for name, nodes in readers.items() if len(nodes) == 1 and nodes[0].reads_once())

    @property
    def streams(self) -> list[Stream]:
        """Return the streams that it reads, in the order of its operators."""
        return streams_of(self.operators)

    @property
    def stopped(self) -> frozenset[str]:
        """The pumps of the script that do not run."""
        return frozenset(name for name, pump in self.catalog.pumps.items() if not pump.started)

    @property
    def not_checked(self) -> tuple[Problem, ...]:
        """The warnings about queries that are missing in the plan, because no code of the script may run."""
        return tuple(problem for problem in self.warnings if problem.code == NOT_CHECKED)

    def sink(self, name: str) -> Sink | None:
        """Return the sink of that name, if there is one."""
        return next((sink for sink in self.sinks if sink.name == name), None)

    def described(self) -> StoredPlan:
        """Return the plan as a checkpoint stores it."""
        plan = StoredPlan.of_operators(self.written, self.operators, self.values)
        return replace(plan, orders=self.orders, stopped=tuple(sorted(self.stopped)))


def compile_script(  # noqa: PLR0913 - a script and everything that Python adds to it
    text: str,
    home: Definitions | None = None,
    variables: Mapping[str, str] | None = None,
    streams: Mapping[str, StreamDef] | None = None,
    sinks: Sequence[str] = (),
    functions: Mapping[str, Make] | None = None,
    session: Callable[[str], sql.CreateTable | None] | None = None,
    orders: Orders | None = None,
    code: PythonCode = PythonCode(),  # noqa: B008 - it is frozen
) -> Program:
    """Parse and bind a script; all of its problems are in ``Program.problems``.

    ``variables`` replace ``${name}`` in the text. ``streams`` are given from Python; ``sinks`` are names of Python
    functions that pumps can write to, ``functions`` table functions by name. ``session`` finds the tables of a session;
    ``orders`` are those of later scripts to its pumps. ``code``: what is done with the modules that it names.
    """
    filled = FilledText.of(text, variables or {}, is_known)
    script = parse_script(filled)
    catalog = Catalog(home, {**(streams or {})}, functions={**(functions or {})}, session=session, code=code)
    catalog.variables = dict(variables or {})
    compiler = _Compiler(filled, catalog, frozenset(name.lower() for name in sinks))
    for name, *at in filled.missing():
        hint = f"Give it with --set {name}=…"
        compiler.problems.append(
            Problem("R131", f"the variable {name} has no value", place_at(filled.shown, *at), hint)
        )
    compiler.problems.extend(script.problems)
    compiler.take(script.statements)
    ordered = (orders or Orders()).obeyed(catalog.pumps)
    program, keeper = compiler.program(), compiler.keeper
    expected = {f"there is no stream or view {name}" for name in script.defines}  # in a statement that does not parse
    secrets = Secrets.of(catalog.options(), variables or {}, is_known)
    return replace(
        program,
        problems=hidden(tuple(p for p in program.problems if p.message.lower() not in expected), secrets),
        warnings=hidden(program.warnings, secrets),
        written=with_definitions(keeper.script(), catalog.of_session.values()) + ordered.script(catalog.pumps),
        values=keeper.values(secrets),
        statements=len(script.statements),
        literal=keeper.literal,
        secrets=secrets,
        orders=ordered,
    )


class _Compiler:
    """Processes the statements of a script in two rounds: first definitions, then what runs."""

    def __init__(self, text: FilledText, catalog: Catalog, functions: frozenset[str]) -> None:
        self.text, self.catalog, self.functions = text, catalog, functions
        self.keeper = Keeper(text, catalog.variables)
        self.problems: list[Problem] = []
        self.actions: list[sql.Statement] = []
        self.defines: list[StreamDef] = []
        self.drops = Drops(catalog, self.defines)
        self.take_over: set[str] = set()
        self.queries: list[sql.Query] = []
        self.explained: list[sql.Explain] = []
        self.sources = Sources(catalog)
        self.binder = QueryBinder(text, self.sources)
        self.roots = SinkBinder(self.sources, self.binder, functions)

    def take(self, statements: Sequence[sql.Statement]) -> None:
        """First round: register definitions, and note what to bound later."""
        is_there = names_there(statements, self.catalog, self.functions)
        for server in statements:
            if isinstance(server, sql.CreateServer):
                self._guard(partial(_put, self.catalog.servers, server.name.text.lower(), server, "server"))
        functions = [statement for statement in statements if _of_function(statement)]
        for statement in functions:
            self._guard(partial(self._take_found, statement, is_there))
        calls = Calls(self.text, self.catalog.scalars)
        for statement in statements:
            if (query := getattr(statement, "query", None)) is not None:
                self._guard(partial(calls.expand, query), statement.place)
        others = (sql.CreateServer, sql.SetSchema, sql.SetPath)  # the parser has handled SET
        for statement in statements:
            if not _of_function(statement) and not isinstance(statement, others):
                self._guard(partial(self._take_found, statement, is_there))

    def _take_found(self, statement: sql.Statement, is_there: Callable[[str, bool], bool]) -> None:
        """Process a statement, with its names resolved in its schemas."""
        self._take(looked_up(statement, is_there, READS))

    def program(self) -> Program:
        """Second round: bind pumps, queries and views."""
        for stream in [*self.catalog.makers]:
            self._guard(partial(self.catalog.stream, stream))
        sinks = [
            sink
            for pumps in self.roots.pumps()
            for sink in self._guard(partial(self.roots.of_pumps, pumps), pumps[0].place)
        ]
        for number, query in enumerate(self.queries, 1):
            name = "query" if len(self.queries) == 1 else f"query{number}"
            sinks.extend(self._guard(partial(self._query, query, name), query.place))
        explains = [
            pair for explain in self.explained for pair in self._guard(partial(self._explain, explain), explain.place)
        ]
        for name, view in self.catalog.views.items():
            self._guard(partial(Tables(self.text, self.sources).bind_view, self.binder, name), view.place)
        for pump in self.catalog.pumps.values():
            if pump.started and self.roots.is_inner(pump):
                self._guard(partial(self.sources.pump, self.binder, pump), pump.place)
            if not pump.started:
                self._guard(partial(self._stopped, pump), pump.place)
        if all(problem.code != NOT_CHECKED for problem in self.sources.warnings):
            self._guard(lambda: check_set(Program(self.text, tuple(sinks)).described(), self.actions))
        return Program(
            self.text,
            tuple(sinks),
            tuple(self.actions),
            tuple(self.defines),
            tuple(self.drops.streams),
            frozenset(self.take_over),
            tuple(explains),
            _by_place([*self.problems, *self.catalog.ambiguous()]),
            _by_place(self.sources.warned(sinks)),
            self.catalog,
            dropped_schemas=tuple(self.drops.schemas),
            edges=tuple(self.sources.edges),
            stops=any(map(asks_to_stop, [*self.catalog.views.values(), *self.catalog.pumps.values(), *self.queries])),
        )

    def _guard(self, action: Callable[[], object], place: Place | None = None) -> list[Any]:
        try:
            result = action()
        except Refused as refused:
            self.sources.warnings.extend(problem for problem in refused.problems if problem.warns)
            self.problems.extend(problem for problem in refused.problems if not problem.warns)
            return []
        except (RecursionError, SqlglotError) as error:
            # sqlglot reports a recursion error inside its own modules as an error of its own.
            if not isinstance(error, RecursionError) and not isinstance(error.__context__, RecursionError):
                raise
            hint = "Move a part of it into a view, or merge a chain of views into fewer."
            self.problems.append(Problem("R101", f"This does not compile: {NESTED_TOO_DEEPLY}.", place, hint))
            return []
        return [] if result is None else [result]

    def _take(self, statement: sql.Statement) -> None:
        match statement:
            case sql.CreateStream():
                self._define(statement)
            case sql.CreateView():
                _put(self.catalog.views, statement.name.text.lower(), statement, "view")
            case sql.CreateTable():
                checked = with_options(statement)
                self.keeper.options(checked)
                _put(self.catalog.tables, statement.name.text.lower(), checked, "table")
            case sql.CreatePump():
                _put(self.catalog.pumps, pump_name(statement), statement, "pump")
            case sql.CreateFunction():
                self.catalog.define_function(statement)
            case sql.AlterPump() | sql.TakeOver():
                self._alter_pump(statement)
            case sql.Drop() | sql.DropSchema() | sql.CreateSchema():
                self.drops.take(statement)
            case sql.SetIdle():
                self._set_idle(statement)
            case sql.InsertValues() | sql.SetBound() | sql.EndStream():
                self._once(statement)
            case sql.Query():
                self.queries.append(statement)
            case sql.Explain():
                self.explained.append(statement)
            case _:
                raise refuse("R190", "this statement is not supported yet", place=statement.place)

    def _once(self, statement: sql.InsertValues | sql.SetBound | sql.EndStream) -> None:
        if not (isinstance(statement, sql.SetBound) and statement.view):
            stream = self._known(statement.stream.text, statement.stream.place)
            ends_files = isinstance(statement, sql.EndStream) and is_finite(stream.format) and not statement.writer
            if stream.format != "log" and not ends_files:
                raise no_statement(stream, statement.stream.place)
            if isinstance(statement, sql.SetBound) and statement.column:
                check_bound(stream, statement.column)
        self.actions.append(statement)

    def _define(self, statement: sql.CreateStream) -> None:
        if statement.query is not None:
            pump = pump_of(statement)
            _put(self.catalog.pumps, pump_name(pump), pump, "pump")
        if statement.query is not None and not statement.columns:
            made_later(self.catalog, statement, self._define_as)
        else:
            self._define_typed(statement)

    def _define_as(self, statement: sql.CreateStream) -> None:
        """Define a stream with the columns of its query, bound with operators of its own."""
        self._define_typed(with_columns(statement, QueryBinder(self.text, Sources(self.catalog))))

    def _define_typed(self, statement: sql.CreateStream) -> None:
        try:
            statement = of_server(statement, self.catalog.servers)
            check_ends((statement.using or "log").lower(), statement.options, statement.place)
            statement = with_options(statement)
            definition = self.catalog.define(statement, self.keeper.options(statement))
            self.defines += [] if definition.format == TEMPORARY else [definition]
        except Refused:
            self.catalog.stand_in(statement)
            raise

    def _known(self, name: str, place: Place) -> StreamDef:
        stream = self.catalog.stream(name)
        if stream is None:
            raise Refused(self.catalog.unknown(name, place))
        return stream

    def _alter_pump(self, statement: sql.AlterPump | sql.TakeOver) -> None:
        if isinstance(statement, sql.TakeOver):
            self.take_over.update(self._pumps(statement.pump))
            return
        named = [name for given in statement.pumps for name in self._pumps(given)]
        for name in named:
            self.catalog.pumps[name] = replace(self.catalog.pumps[name], started=statement.start)

    def _pumps(self, given: sql.Name) -> list[str]:
        """Return the pumps of the script that a name means, which may end with ``*``."""
        return named(given, self.catalog.pumps, f"{OWN_SCRIPT} {BY_CHECKPOINT}")

    def _set_idle(self, statement: sql.SetIdle) -> None:
        stream = self._known(statement.stream.text, statement.stream.place)
        if stream.format == TEMPORARY:
            raise no_statement(stream, statement.stream.place)
        idle = duration(statement.after, "IDLE AFTER", statement.place)
        self.catalog.streams[stream.name] = replace(stream, idle_after=idle)
        self.defines.append(self.catalog.streams[stream.name])

    # -- roots ------------------------------------------------------------------------

    def _query(self, query: sql.Query, name: str) -> Sink:
        return self.roots.sink(f"{name}.result", self.binder.bind(query.query, name).node, "console", ())

    def _stopped(self, pump: sql.CreatePump) -> None:
        """Bind a pump that does not run, with operators of its own, to report its problems before it is started."""
        sources = Sources(self.catalog)
        SinkBinder(sources, QueryBinder(self.text, sources), self.functions).of_pumps([pump])

    def _explain(self, explain: sql.Explain) -> tuple[str, Operator]:
        return explain.kind, self.binder.bind(explain.query, "explained").node


def _of_function(statement: sql.Statement) -> bool:
    return isinstance(statement, sql.CreateFunction) or (
        isinstance(statement, sql.Drop) and statement.kind == "FUNCTION"
    )


def _by_place(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """Return each problem once, in the order of the text; those at one place in the order in which they were found."""
    once = dict.fromkeys(problems)
    return tuple(sorted(once, key=lambda p: (p.place.line, p.place.column) if p.place else (0, 0)))


def _put(
    named: dict[str, Any],
    name: str,
    statement: sql.CreateView | sql.CreatePump | sql.CreateTable | sql.CreateServer,
    what: str,
) -> None:
    """Register a statement under its name; a second one with the name must say that it replaces the first."""
    if name not in named or statement.replace:
        named[name] = statement
    elif not statement.if_not_exists:
        place = statement.name.place if statement.name else statement.place
        given = isinstance(statement, sql.CreatePump) and statement.name is None
        hint = f"Give it a name: CREATE PUMP … AS INSERT INTO {name.removeprefix('into_')} …." if given else ""
        hint = hint or f"Write CREATE OR REPLACE {what.upper()}, or choose another name."
        raise refuse("R203", f"there are two {what}s {name}", hint, place)
