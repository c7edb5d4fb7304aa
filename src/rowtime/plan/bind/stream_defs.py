"""Stream definitions: as CREATE STREAM gives them, and as the home directory stores them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from sqlglot import exp

from rowtime.core.errors import Place, Problem, Refused, refuse
from rowtime.core.ordered_columns import ordered_column
from rowtime.core.secrets import filled, secret_spans
from rowtime.core.shapes import EventShape
from rowtime.expr.conditions import col
from rowtime.expr.facts import Kind, kind_of
from rowtime.expr.monotonicity import is_plain
from rowtime.plan.bind.declared import order_problems, order_text, type_problems
from rowtime.plan.bind.event_time import EventTimeSettings, settings_of
from rowtime.plan.bind.suggestions import suggestion
from rowtime.sql.generate import to_rowtime
from rowtime.sql.intervals import duration_of
from rowtime.sql.script import parse_expression
from rowtime.sql.statements import ColumnDef, CreateStream, Name

MOST_NEAR = 1000  # rows of RESYNC; fewer than twice as many are kept per writer
TEMPORARY: Final = "temporary"
"""The format of a stream that pumps of its script fill, and that nobody else can read."""


@dataclass(frozen=True)
class StreamDef:
    """A stream: its columns, the source of its items, how long a writer may be silent (µs).

    ``checks``: conditions that no row may break, as text; ``required``: the columns without NULL; ``orders``: the
    declared orders (column, type, definition); ``early``: how far above its writer's clock a row may be (µs);
    ``resync``: how many rows make one count that is further above; ``ahead``: how far above its arrival time one may be
    (µs). ``kept``: the options as files may hold them, without secrets, if they differ.
    """

    name: str
    columns: tuple[tuple[str, str], ...]
    format: str = "log"
    options: tuple[tuple[str, str], ...] = ()
    idle_after: int | None = None
    required: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    orders: tuple[tuple[str, str, str], ...] = ()
    early: int | None = None
    resync: int = 0
    ahead: int | None = None
    event_time: EventTimeSettings | None = None
    shape: EventShape | None = None
    kept: tuple[tuple[str, str], ...] | None = field(default=None, compare=False)
    places: Mapping[str, Place] = field(default_factory=dict, compare=False)
    """Where the columns are declared, and, as ``""``, the stream; empty for a stream of the home."""

    def as_json(self) -> dict[str, Any]:
        """Return the definition as the home directory stores it."""
        columns = [{"name": name, "type": kind, "nullable": name not in self.required} for name, kind in self.columns]
        event = asdict(self.event_time) if self.event_time else {}
        if event and event["beyond"] is None:
            del event["beyond"]  # versions that do not know it refuse it
        if event:  # so do they with these
            event = {name: value for name, value in event.items() if name != "fields" or value}
        return {
            "columns": columns,
            "format": None if self.format == "log" else self.format,
            "options": dict(self.options if self.kept is None else self.kept),
            "idle_after": self.idle_after,
            **({"checks": list(self.checks)} if self.checks else {}),
            **({"orders": [list(order) for order in self.orders]} if self.orders else {}),
            **({"early": self.early} if self.early is not None else {}),
            **({"resync": self.resync} if self.resync else {}),
            **({"ahead": self.ahead} if self.ahead is not None else {}),
            **({"event_time": event} if event else {}),
            **({"shape": self.shape.as_json()} if self.shape else {}),
        }


def no_statement(stream: StreamDef, place: Place) -> Refused:
    """Return R137: a statement cannot give rows and bounds to a stream."""
    if stream.format == TEMPORARY:
        what = f"{stream.name} is a TEMPORARY stream, which gets rows and bounds only from its pumps"
        return refuse("R137", what, f"Write CREATE PUMP … AS INSERT INTO {stream.name} SELECT STREAM ….", place)
    what = f"{stream.name} gets its rows and bounds from outside ({stream.format}); a statement cannot send any"
    return refuse("R137", what, "Send them to the source of the stream.", place)


def demands_of(stream: StreamDef) -> tuple[exp.Expr, ...]:
    """Return all conditions on a row, over the stream's columns. Raises ``Refused`` (R102, R103)."""
    required = (exp.Not(this=exp.Is(this=col(name), expression=exp.null())) for name in stream.required)
    return (*required, *checks_of(stream))


def checks_of(stream: StreamDef) -> tuple[exp.Expr, ...]:
    """Return the conditions of CHECK, over the stream's columns. Raises ``Refused`` (R102, R103)."""
    names = {name.lower(): name for name, _ in stream.columns}
    checks: list[exp.Expr] = []
    for text in stream.checks:
        check = parse_expression(text)
        for column in list(check.find_all(exp.Column)):
            if column.name.lower() not in names:
                hint = suggestion(column.name, names.values())
                raise refuse("R103", f"CHECK ({text}): {stream.name} has no column {column.name}", hint)
            column.replace(col(names[column.name.lower()]))
        if not is_plain(check):
            raise refuse("R102", f"CHECK ({text}) must depend on the columns of one row only")
        checks.append(check)
    return tuple(checks)


def stream_of(statement: CreateStream) -> StreamDef:
    """Return the definition that CREATE STREAM gives."""
    _check_columns(statement.columns, log=statement.using is None)
    idle = duration(statement.idle_after, "IDLE AFTER", statement.place)
    early = duration(statement.early, "EARLY BEYOND", statement.place)
    ahead = duration(statement.ahead, "EARLY BEYOND", statement.place)
    resync = rows_of(statement.resync.name if statement.resync else "", statement.place)
    kind = TEMPORARY if statement.temporary else (statement.using or "log").lower()
    if statement.temporary and (statement.using or idle is not None):
        what = "a TEMPORARY stream has no source: the pumps of its script fill it"
        raise refuse("R190", what, "Leave TEMPORARY out, or USING and IDLE AFTER.", statement.name.place)
    columns = tuple((column.name, column.type) for column in statement.columns)
    required = tuple(column.name for column in statement.columns if not column.nullable)
    checks = tuple(to_rowtime(check) for column in statement.columns for check in column.checks)
    orders = tuple((c.name, c.type, order_text(c)) for c in statement.columns if c.order)
    event = None if statement.event_time is None else settings_of(statement.event_time, source=True)
    if event is not None and event.beyond is None:
        event = replace(event, beyond=early)
    name, shape = statement.name.text.lower(), _shape(statement, columns, early)
    guard = (None if shape else early, resync, ahead)
    definition = StreamDef(name, columns, kind, statement.options, idle, required, checks, orders, *guard, event, shape)
    places = {"": statement.name.place, **{column.name: column.place for column in statement.columns}}
    return replace(definition, places=places)


def duration(interval: exp.Expr | None, word: str, place: Place) -> int | None:
    """Return the duration in a clause, in µs; raises ``Refused`` (R208) for months and negative ones."""
    if interval is None:
        return None
    micros = duration_of(interval)
    if micros is None or micros < 0:
        raise refuse("R208", f"{word} takes a duration that is not negative, and no months", place=place)
    return micros


def rows_of(given: str, place: Place) -> int:
    """Return the n of RESYNC AFTER n ROWS; 0 for an empty text. Raises ``Refused`` (R122)."""
    count = int(given) if given.isdigit() else 0
    if given and not 0 < count <= MOST_NEAR:
        what = f"RESYNC AFTER takes 1 to {MOST_NEAR} rows"
        raise refuse("R122", what, "For example RESYNC AFTER 3 ROWS.", place)
    return count


def _shape(statement: CreateStream, columns: Sequence[tuple[str, str]], early: int | None) -> EventShape | None:
    """Return the event shape, with the stream's spelling of its columns, and the limit on early starts."""
    if statement.shape is None:
        return None
    names = [name for name, _ in columns]
    beside: dict[str, object] = {"EARLY BEYOND … AFTER ARRIVAL": statement.ahead, "EVENT TIME": statement.event_time}
    beside["RESYNC"] = statement.resync
    beside["a declared order"] = any(column.order for column in statement.columns) or None
    for words, given in beside.items():
        if given is not None:
            what = f"{words} together with EVENT SHAPE is not supported yet"
            raise refuse("R190", what, "Leave one of the two out.", statement.name.place)
    spelled = {name.lower(): name for name in names}
    for name in statement.shape.columns:
        if name.lower() not in spelled:
            what = f"the event shape names a column {name}, which {statement.name.text} does not have"
            raise refuse("R103", what, suggestion(name, names), statement.name.place)
    start, stop, by = (
        name and spelled[name.lower()] for name in (statement.shape.start, statement.shape.stop, statement.shape.by)
    )
    imports = statement.shape.imports and statement.shape.imports.lower()
    shape = replace(statement.shape, start=start or "", stop=stop, by=by, imports=imports, beyond=early)
    check_times(shape, dict(columns), statement.name.place)
    return shape


def check_times(shape: EventShape, types: Mapping[str, str], place: Place) -> None:
    """Refuse (R170) event times that are numbers without a unit."""
    for name in filter(None, (shape.start, shape.stop)):
        kind, unit = kind_of(types[name]), shape.resolution
        what, hint = "", ""
        if kind is Kind.INTEGER and unit is None:
            what = f"{name} is {types[name]}, and no RESOLUTION says in which unit its numbers count from 1970"
            hint = f"Write RESOLUTION MILLISECONDS after EVENT SHAPE {shape.kind} (…), or SECONDS, MICROSECONDS, …"
        elif kind is not Kind.INTEGER and unit is not None:
            what = f"{name} is {types[name]}; RESOLUTION says what whole numbers count"
            hint = "Leave RESOLUTION out."
        elif kind in (Kind.DECIMAL, Kind.FLOAT, Kind.BOOLEAN):
            what = f"{name} is {types[name]}, which is not a time"
            hint = "Declare a TIMESTAMP, or a BIGINT with RESOLUTION MILLISECONDS."
        if what:
            raise refuse("R170", what, hint, place)


def is_reserved(name: str) -> bool:
    """Return True for names that users' columns may not have."""
    return name.startswith("__") or name.lower() == "rowtime"


def _check_columns(columns: Iterable[ColumnDef], *, log: bool) -> None:
    seen: set[str] = set()
    problems = []
    for column in columns:
        name = column.name.lower()
        if is_reserved(name):
            hint = "Every stream already has ROWTIME. Names that begin with __ are reserved for rowtime."
            problems.append(Problem("R209", f"a column cannot have the name {column.name}", column.place, hint))
        if name in seen:
            problems.append(Problem("R209", f"there are two columns {column.name}", column.place))
        seen.add(name)
        problems.extend((*order_problems(column), *type_problems(column, log=log)))
    if problems:
        raise Refused(*problems)


def stored_stream(name: str, stored: Mapping[str, Any], variables: Mapping[str, str]) -> StreamDef:
    """Return the definition from a home directory, with the values of ``variables``."""
    kept = tuple(dict(stored.get("options") or {}).items())
    columns = tuple((column["name"], column["type"]) for column in stored["columns"])
    timed = stored.get("event_time")
    event = EventTimeSettings(**{**timed, "fields": tuple(timed.get("fields", ()))}) if timed else None
    if event is not None and event.unit is None:  # stored before RESOLUTION was required
        kinds = {name.lower(): kind_of(kind) for name, kind in columns}
        event = replace(event, unit="MILLISECOND") if kinds.get(event.column.lower()) is Kind.INTEGER else event
    return StreamDef(
        name,
        columns,
        stored.get("format") or "log",
        tuple((option, filled(text, variables) if secret_spans(option, text) else text) for option, text in kept),
        stored.get("idle_after"),
        tuple(column["name"] for column in stored["columns"] if not column.get("nullable", True)),
        tuple(stored.get("checks", ())),
        tuple((name, kind, text) for name, kind, text in stored.get("orders", ())),
        stored.get("early"),
        stored.get("resync", 0),
        stored.get("ahead"),
        event,
        EventShape.stored(stored.get("shape")),
        kept,
    )


def check_bound(stream: StreamDef, column: Name) -> None:
    """Check that SET BOUND OF names a column that can have one. Raises ``Refused`` (R143, R190)."""
    try:
        ordered_column(stream.as_json(), stream.name, column.text)
    except Refused as refused:
        raise Refused(*(replace(problem, place=column.place) for problem in refused.problems)) from None
