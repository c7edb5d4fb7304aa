"""The Python API: a pipeline is SQL with sources and sinks; a query is a running pipeline."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from rowtime.api.altering import in_force, with_orders
from rowtime.api.connectors import sink_of, source_of
from rowtime.api.events import Events
from rowtime.api.given_streams import GivenStream
from rowtime.api.python_functions import PythonFunction, is_of_spark
from rowtime.api.query import Query
from rowtime.api.relations import EventTime, columns_text, named
from rowtime.api.rows import Rows
from rowtime.api.session_tables import SessionTables, rows_of_session
from rowtime.api.sessions import Sessions
from rowtime.api.shown import Explained
from rowtime.api.starting import Start, started
from rowtime.client.home import Home
from rowtime.core import markup
from rowtime.core.errors import Problem, Problems, Refused, refuse
from rowtime.core.log import LOG
from rowtime.core.small_ticks import SmallTicks
from rowtime.core.stores import Place, place_of
from rowtime.frames.kinds import arrow_of
from rowtime.observe.lineage import lineage_of
from rowtime.observe.metrics import metrics_at
from rowtime.observe.observer import Observer
from rowtime.observe.spark_listeners import QueryListener
from rowtime.operators.rows.table_function import Make
from rowtime.operators.sinks.sink import Sink
from rowtime.plan.bind.catalog import Definitions, Without
from rowtime.plan.bind.python_code import PythonCode
from rowtime.plan.difference import statements_of
from rowtime.plan.explain import as_text, explain
from rowtime.plan.program import Program, compile_script
from rowtime.plan.pump_orders import Orders
from rowtime.plan.stored import StoredPlan
from rowtime.runtime.engine import Engine
from rowtime.runtime.quiet import hiding
from rowtime.runtime.sinks.callables import MemorySink
from rowtime.runtime.sinks.contract import Batch
from rowtime.runtime.sinks.staging import Stage
from rowtime.runtime.sources.contract import Limits, Repeatable
from rowtime.runtime.tick import GivenTable
from rowtime.state.checkpoint import Checkpoint

DEFAULT_LIMITS = Limits(rows=2_000_000, files=1000, bytes=1 << 30)
PREVIEW_LIMITS = Limits(rows=100_000, files=10, bytes=1 << 26)  # of a tick; a preview may stop after each


class Pipeline:
    """Represents SQL text with its sources and sinks.

    ``spark``: your session. rowtime derives its own session from it, with your functions. Without it, rowtime starts a
    local session with the settings ``conf``. ``home``: where named streams are (default ``ROWTIME_HOME``, else
    ``.rowtime``). ``small_ticks``: where ticks are computed, ``"spark"``, a task of Spark, or
    ``"driver"``, this process (default ``ROWTIME_SMALL_TICKS``, else ``"spark"``; `docs/clusters.md`). Raises
    ``Refused``: R542 if both ``spark`` and ``conf`` are given, R541 for another place of small ticks.
    """

    def __init__(
        self,
        spark: SparkSession | None = None,
        *,
        home: str | Place | None = None,
        conf: Mapping[str, str] | None = None,
        small_ticks: str | None = None,
    ) -> None:
        self.small_ticks = SmallTicks.chosen(small_ticks)
        self._sessions = Sessions(spark, conf or {})
        self.home = Home(home)
        self._text: list[str] = []
        self._variables: dict[str, str] = {}
        self._functions: dict[str, Callable[[Batch], object]] = {}
        self._table_functions: dict[str, Make] = {}
        self._given: dict[str, GivenStream] = {}
        self.listeners: list[QueryListener] = []

    def sql(self, text: str, variables: Mapping[str, str] | None = None) -> Pipeline:
        """Add statements; ``${name}`` in the text is a variable."""
        self._text.append(text)
        self._variables.update(variables or {})
        return self

    def stream(
        self, name: str, columns: Mapping[str, str] | None = None, *, event_time: EventTime | None = None
    ) -> Rows:
        """Return a stream to query: an existing one, or a new stream log with ``columns``."""
        if columns is not None:
            clause = f" {event_time}" if event_time else ""
            self.sql(f"CREATE STREAM {named(name)} ({columns_text(columns)}){clause}")
        return Rows(self, named(name))

    def events(self, name: str, columns: Mapping[str, str] | None = None, *, shape: str = "") -> Events:
        """Return a stream of events with lifetimes: an existing one, or a new stream log with ``columns``.

        ``shape`` is the text after EVENT SHAPE: ``"INTERVAL (departure, arrival) ON LATE ADJUST"``.
        """
        if columns is not None:
            self.sql(f"CREATE STREAM {named(name)} ({columns_text(columns)}) EVENT SHAPE {shape}")
        return Events(self, named(name))

    def python_function(self, function: Callable[..., Any], returns: str = "", name: str = "") -> str:
        """Register a Python function that expressions can call, and return its name; ``returns`` is a Spark type.

        The function gets the values of the arguments of its call, and must return the same result for the same values.
        A function that PySpark's ``udf``, ``pandas_udf`` or ``arrow_udf`` made already has a type. Raises ``Refused``:
        R107 without a type, R203 if the name is taken.
        """
        python = self._sessions.python
        name = name or f"python_{len(python)}"
        if not returns and not is_of_spark(function):
            hint = 'Give it as a type of Spark: python_function(f, "BIGINT").'
            raise refuse("R107", f"the type that the Python function {name} returns is not specified", hint)
        if name.lower() in (taken.lower() for taken in python):
            raise refuse("R203", f"there are two Python functions {name}", "Use another name.")
        python[name] = PythonFunction(function, returns)
        return name

    def deterministic(self, *names: str) -> Pipeline:
        """Declare that Python functions of the session with ``asNondeterministic()`` are deterministic nevertheless."""
        self._sessions.deterministic.update(names)
        return self

    def renewed(self, *names: str) -> Pipeline:
        """Accept that functions have changed, for the rows from the next start on (R450)."""
        self._sessions.renewed.update(names)
        return self

    def source(  # noqa: PLR0913 - the names of columns, each a keyword
        self,
        name: str,
        streaming: DataFrame,
        *,
        rowtime: str | None = None,
        writer: str | None = None,
        position: str | None = None,
        unordered: bool = False,
        early_beyond: timedelta | None = None,
        resync_after: int = 0,
        early_beyond_arrival: timedelta | None = None,
        event_time: EventTime | None = None,
        shape: str | None = None,
    ) -> Pipeline:
        """Read a streaming DataFrame as the stream ``name``.

        It is read through Spark's ``foreachBatch``. ``rowtime`` names the column that gives the rowtime; ``writer`` and
        ``position`` name the columns that give the order of rows. Without them the source gives the order, as far as
        the DataFrame only selects and filters: topic, partition and offset of Kafka, if it keeps these columns; the
        times of change and names of files, and the order of rows in them; the ``value`` of ``rate``. Other DataFrames
        are refused (R224). ``unordered``: a batch is a set without an order, sorted by rowtime and judged by the clock
        before the batch; the result then depends on how Spark cuts the batches.
        ``early_beyond`` is the guard: a row whose rowtime lies further above its writer's clock is refused as EARLY,
        unless ``resync_after`` later rows lie near it. ``early_beyond_arrival`` limits how far a rowtime may lie above
        the arrival time, which is that of the batch. ``event_time`` declares one of the columns as event time.
        ``shape`` is the text after EVENT SHAPE, as in `events`: the rows are then events with lifetimes. If they
        are unordered, they are judged by the bound before their batch, and edges, whose order matters, are refused
        (R190).
        For edges the columns of position and rowtime are not part of the payload, because the two rows of an event
        differ only in them.
        """
        names = {"rowtime": rowtime, "writer": writer, "position": position}
        guard = (early_beyond, resync_after, early_beyond_arrival)
        self._given[name.lower()] = GivenStream(streaming, names, *guard, event_time, shape, unordered)
        return self

    def sink(self, name: str, function: Callable[[Batch], object]) -> Pipeline:
        """Send the rows of a sink to a function, which is called once per tick with a ``Batch``."""
        self._functions[name.lower()] = function
        return self

    def function(self, name: str, make: Make) -> Pipeline:
        """Register a table function: ``STREAM(name(CURSOR(query), …))`` calls ``make(…)`` once per run."""
        self._table_functions[name.lower()] = make
        return self

    def addListener(self, listener: QueryListener) -> Pipeline:  # noqa: N802 - Spark's name
        """Add a listener for later runs; it has the methods of Spark's ``StreamingQueryListener``."""
        self.listeners.append(listener)
        return self

    def compile(
        self,
        checkpoint: str | Path | Place | None = None,
        *,
        orders: Orders | None = None,
        imports: bool = False,
    ) -> Program:
        """Bind the SQL; raises ``Refused`` with all problems.

        ``checkpoint``: use the tables of the session that this checkpoint has read, not the current ones, and the
        orders to pumps that are in force there, or other ``orders``. ``imports``: import the modules that the SQL names
        (see `check`); without it, queries of table functions which it names are missing, each with a warning.
        """
        taken = in_force(checkpoint) if orders is None else orders
        tables = self._tables(checkpoint)
        return self._compiled(self._script(), self.home, tables=tables, orders=taken, imports=imports)

    def _complete(self, *, imports: bool = False) -> Program:
        """Bind the SQL; raises ``Refused`` (R169) also for queries that would be missing."""
        program = self.compile(imports=imports)
        if program.not_checked:
            raise Refused(*program.not_checked)
        return program

    def _script(self, *more: str) -> str:
        return ";\n".join(part.rstrip().rstrip(";") for part in (*self._text, *more))

    def explain(self, *, imports: bool = False) -> Explained:
        """Return what each operator requires, keeps, emits and promises; raises ``Refused`` as `compile` does.

        ``imports``: import the modules that the SQL names, which the columns of their table functions need (R169).
        """
        return Explained(as_text(explain(self._complete(imports=imports))))

    def _repr_html_(self) -> str:
        """Show the graph of the plan in a notebook, or what is wrong with the SQL; starts no Spark."""
        try:
            program = self._complete()
        except Refused as refused:
            return Problems(refused.problems)._repr_html_()
        return svg(program.described()) if program.operators else markup.heading("a pipeline without a query or pump")

    def check_types(self, program: Program, spark: SparkSession | None = None) -> list[Problem]:
        """Find the problems that only Spark can find in a program (R107, R111, R220); starts Spark, runs no job."""
        from rowtime.runtime.analysis import analysed, misfits  # noqa: PLC0415 - only this and a run need Spark

        spark = spark or self.session(program)
        return analysed(spark, program) or misfits(program, spark)

    def compile_instead(self, text: str, values: Mapping[str, str] | None = None) -> Program:
        """Bind an earlier text of this pipeline, whose definitions may have changed since.

        ``values``: the values of its variables, as far as they are known.
        """
        home = Without(self.home, frozenset(statements_of(text)))
        return self._compiled(text, home, self.compile().literal, values=values or {}, imports=True)

    def _tables(self, checkpoint: str | Path | Place | None = None) -> SessionTables:
        return SessionTables(self._sessions.given, checkpoint)

    def _compiled(  # noqa: PLR0913 - as `compile_script`
        self,
        text: str,
        home: Definitions,
        literal: Mapping[str, str] | None = None,
        tables: SessionTables | None = None,
        values: Mapping[str, str] = {},
        orders: Orders | None = None,
        *,
        imports: bool = False,
    ) -> Program:
        streams = {name: given.stream(name) for name, given in self._given.items()}
        values = {**(literal or {}), **self._variables, **values}  # secrets of the script that the text names
        sinks, functions, code = tuple(self._functions), self._table_functions, PythonCode(imports)
        program = compile_script(text, home, values, streams, sinks, functions, tables, orders, code)
        if program.problems:
            raise Refused(*program.problems)
        return program

    def start(  # noqa: PLR0913 - options of a run, each a keyword
        self,
        checkpoint: str | Path | None = None,
        *,
        available_now: bool = False,
        end: bool = False,
        limits: Limits = DEFAULT_LIMITS,
        interval: float = 0.1,
        take_over: Collection[str] = (),
        keep_ticks: int = 0,
        **options: Any,
    ) -> Query:
        """Run in the background until ``Query.stop``; ``interval`` is the time in seconds between two looks for input.

        ``available_now``: stop when all available input has been read. This does not end streams, so the next start
        continues. ``end``: no more files will come, so streams over files end when the available files have been read.
        ``take_over``: pumps that take over the targets of the pumps of the same names of other checkpoints, as ``ALTER
        PUMP p TAKE OVER`` does; otherwise they are refused (R440). ``keep_ticks``: how many ticks the journal keeps for
        the console, at least 64. ``metrics``: a port for Prometheus, ``"host:port"``, or `Metrics`. ``lineage``: True,
        or an ``OpenLineageClient``, to send events of OpenLineage. ``listener``, ``listeners``: see `Query`.
        """
        with observing(options, self.home) as how:
            how_long: dict[str, Any] = {"ends": end, "available_now": available_now, "keep_ticks": keep_ticks}
            engine = self._engine(checkpoint, limits, take_over=take_over, **how_long)
            return Query(engine, interval, available_now=available_now, pipeline=self, **how).start()

    def run_available(
        self,
        checkpoint: str | Path | None = None,
        *,
        end: bool = False,
        limits: Limits = DEFAULT_LIMITS,
        take_over: Collection[str] = (),
        keep_ticks: int = 0,
        **options: Any,
    ) -> Query:
        """Process the available input and return; rows that wait for more input wait for the next run.

        ``end``: no more files will come, so streams over files end, and everything comes out.
        """
        with observing(options, self.home) as how:
            how_long: dict[str, Any] = {"ends": end, "available_now": True, "keep_ticks": keep_ticks}
            engine = self._engine(checkpoint, limits, take_over=take_over, **how_long)
            query = Query(engine, 0.0, available_now=True, pipeline=self, **how)
            query.run()
            return query

    def preview(self, query: str, *, rows: int = 20, end: bool = False) -> pa.Table:
        """Run a query over the available input, and return its first rows as an Arrow table.

        It uses a scratch checkpoint that is removed afterwards. No pump of this pipeline writes, and no definition or
        insert takes effect. ``end``: as in `run_available`. Raises ``Refused`` (R146) if the text is not one query.
        """
        whole, tables = self.compile(imports=True), self._tables()
        program = alone(whole, self._compiled(self._script(query), self.home, tables=tables, imports=True))
        _warn("script", program.warnings)
        with tempfile.TemporaryDirectory(prefix="rowtime-preview-") as folder, hiding(program.secrets):
            place = Checkpoint(place_of(folder))
            return rows_of(started(self, Start(program, place, PREVIEW_LIMITS, end, True, ())), rows)  # noqa: FBT003 - available_now

    def _engine(  # noqa: PLR0913 - as `start`
        self,
        checkpoint: str | Path | None,
        limits: Limits,
        *,
        ends: bool,
        available_now: bool = False,
        take_over: Collection[str] = (),
        keep_ticks: int = 0,
    ) -> Engine:
        program = self.compile(checkpoint, imports=True)
        if not program.sinks and not program.stopped:
            hint = "Add a SELECT STREAM, or CREATE PUMP … AS INSERT INTO … SELECT STREAM …."
            raise refuse("R134", "nothing would run: there is no query and no pump", hint)
        stray = self.home.stray(stream.name for stream in program.defines)
        defines = {stream.name: stream.as_json() for stream in program.defines}
        replaced = [] if checkpoint is None else self.home.replaced(defines, program.drops, checkpoint)
        _warn("script", program.warnings)
        _warn("home", [*([stray] if stray else []), *replaced])
        with hiding(program.secrets):
            place = Checkpoint(place_of(checkpoint or tempfile.mkdtemp(prefix="rowtime-")))
            place.journal.keeps = keep_ticks
            start = Start(with_orders(self, program, place), place, limits, ends, available_now, take_over)
            return started(self, start, self._sessions.renewed)

    def prints(self, program: Program, spark: SparkSession) -> dict[str, str]:
        """Return the fingerprints of the functions that a program calls, by name."""
        from rowtime.runtime.function_pins import prints  # noqa: PLC0415 - only a run needs Spark

        return prints(program, {name: function.function for name, function in self._sessions.python.items()}, spark)

    def session(self, program: Program, place: Place | None = None) -> SparkSession:
        """Return the Spark session in which a program runs; it can read the checkpoint at ``place``."""
        return self._sessions.session_for(program, self.home, place)

    def stages(self, program: Program, place: Checkpoint) -> dict[str, Stage]:
        """Return the sinks of a program, with what the checkpoint has staged for them."""
        return {node.name: Stage(sink_of(node, self.home, self._functions), place.folder) for node in program.sinks}

    def given_tables(self, program: Program) -> dict[str, GivenTable]:
        """Return the tables of the given session that a program reads."""
        return {} if self._sessions.given is None else rows_of_session(program, self._sessions.given)

    def sources(self, program: Program, place: Checkpoint) -> dict[str, Repeatable]:
        """Return the sources of a program; their notes are in a checkpoint."""
        return {node.name: source_of(node, place, program, self.home, self._given) for node in program.streams}


def _warn(event: str, problems: Iterable[Problem]) -> None:
    for problem in problems:
        LOG.warning("%s", problem, extra={"event": event, "code": problem.code})


@contextmanager
def observing(options: dict[str, Any], home: Home) -> Iterator[dict[str, Any]]:
    """Yield the options with observers for ``metrics`` and ``lineage``; if the start fails, their servers end."""
    metrics, lineage = options.pop("metrics", None), options.pop("lineage", None)
    observers: list[Observer] = []
    try:
        if metrics is not None:
            observers.append(metrics_at(metrics))
        if (sender := lineage_of(lineage, home)) is not None:
            observers.append(sender)
        yield {**options, "observers": [*options.pop("observers", ()), *observers]}
    except BaseException:
        for observer in observers:
            observer.given_up()
        raise


# A preview: the result of a query over the available input, without any side effect.
#
# It runs in a scratch checkpoint that is removed afterwards. It takes only the definitions of the script: no pump
# writes, no stream is defined, and no row is inserted, so nobody else sees a change.


def alone(before: Program, program: Program) -> Program:
    """Return the one query that was added to ``before``; raises ``Refused`` (R146) if anything else was added."""
    added = program.sinks[len(before.sinks) :]
    if program.statements - before.statements != 1 or len(added) != 1:
        raise refuse("R146", "a preview shows one query", "Give one SELECT STREAM …, and the rest to Pipeline.sql.")
    kept = tuple(replace(sink, format="memory", options=()) for sink in added)
    return replace(program, sinks=kept, actions=(), defines=(), drops=(), take_over=frozenset())


def rows_of(engine: Engine, most: int) -> pa.Table:
    """Run until ``most`` rows are there or all input is read; the table has the query's columns even without rows."""
    node = engine.program.sinks[0]
    sink = engine.stages[node.name].sink
    assert isinstance(sink, MemorySink)

    def look(_progress: dict[str, Any]) -> None:
        if sum(table.num_rows for _, table in sink.batches) >= most:
            query.stop_soon()

    query = Query(engine, 0.0, available_now=True, listener=look)
    query.run()
    result = sink.table
    return _empty(node) if result is None else result.slice(0, most)


def _empty(node: Sink) -> pa.Table:
    """Return a table without rows; a column whose type only Spark knows has the type null."""
    columns = [column for column in node.emits().columns if not column.name.startswith("__")]
    kinds = [(column.name, arrow_of(column.type) if column.type else pa.null()) for column in columns]
    return pa.schema([("rowtime", pa.timestamp("us", "UTC")), *kinds]).empty_table()


# The graph of a plan as a static picture: operators as boxes in columns, from the streams to the outputs. An operator
# is drawn one column to the right of its rightmost input, so every edge points to the right.

WIDE, HIGH, APART, BELOW = 170, 44, 50, 20  # a box, and the gaps between boxes, in pixels
LETTERS: Final = 22  # letters of a name; the box's title shows the whole name
FONT: Final = 'font-family="sans-serif" fill="currentColor" text-anchor="middle"'


def svg(plan: StoredPlan) -> str:
    """Draw a plan; lines and letters have the colour of the text around them."""
    places = _places(plan)
    width = max(x for x, _ in places.values()) + WIDE + 1
    height = max(y for _, y in places.values()) + HIGH + 1
    edges = [
        _edge(places[child], places[name]) for name, operator in plan.operators.items() for child in operator.inputs
    ]
    boxes = [_box(name, plan.operators[name].kind, *place) for name, place in places.items()]
    size = f'width="{width}" height="{height}" viewBox="-1 -1 {width + 1} {height + 1}"'
    label = f'role="img" aria-label="{len(boxes)} operators"'
    picture = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {label}>{"".join([*edges, *boxes])}</svg>'
    return f'<div style="overflow-x:auto">{picture}</div>'


def _places(plan: StoredPlan) -> Mapping[str, tuple[int, int]]:
    depth: dict[str, int] = {}
    filled: dict[int, int] = {}
    places = {}
    for name, operator in plan.operators.items():  # inputs come first
        column = depth[name] = max((depth[child] + 1 for child in operator.inputs), default=0)
        row = filled[column] = filled.get(column, -1) + 1
        places[name] = (column * (WIDE + APART), row * (HIGH + BELOW))
    return places


def _edge(start: tuple[int, int], end: tuple[int, int]) -> str:
    (x1, y1), (x2, y2) = (start[0] + WIDE, start[1] + HIGH // 2), (end[0], end[1] + HIGH // 2)
    middle = (x1 + x2) // 2
    path = f"M{x1},{y1} C{middle},{y1} {middle},{y2} {x2},{y2} m-6,-4 l6,4 l-6,4"
    return f'<path d="{path}" fill="none" stroke="currentColor" opacity="0.6"/>'


def _box(name: str, kind: str, x: int, y: int) -> str:
    short = name if len(name) <= LETTERS else f"{name[: LETTERS - 1]}…"
    frame = f'<rect x="{x}" y="{y}" width="{WIDE}" height="{HIGH}" rx="5" fill="none" stroke="currentColor"/>'
    lines = (
        f'<text x="{x + WIDE // 2}" y="{y + 18}" font-size="13" {FONT}>{markup.text(short)}</text>'
        f'<text x="{x + WIDE // 2}" y="{y + 35}" font-size="11" opacity="0.75" {FONT}>{markup.text(kind)}</text>'
    )
    return f"<g><title>{markup.text(name)} ({markup.text(kind)})</title>{frame}{lines}</g>"
