"""Statements: the parts of a script, one frozen dataclass per kind.

Names are as written (without quotes); upper and lower case mean the same. Queries and expressions are sqlglot trees,
with places in the text of the whole script. ``place`` and ``text`` (the statement's own source, without its semicolon)
do not count for equality.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sqlglot import exp

from rowtime.core.errors import Place, Problem
from rowtime.core.shapes import EventShape

Options = tuple[tuple[str, str], ...]
Kind = Literal["STREAM", "VIEW", "PUMP", "TABLE", "FUNCTION", "SERVER"]


@dataclass(frozen=True)
class Name:
    """A name with its place; the parts of a qualified one are joined by dots."""

    text: str
    place: Place = field(default=Place(1, 1), compare=False)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class OptionPlace:
    """The place of an option: its name, its value, and the first and last offset of the value in the text."""

    name: Place
    value: Place
    start: int
    end: int


@dataclass(frozen=True)
class DeclaredOrder:
    """``[STRICTLY] ASCENDING|DESCENDING [WITHIN n ROWS | WITHIN interval]`` of a column."""

    ascending: bool
    strict: bool = False
    within_rows: int | None = None
    within: exp.Expr | None = None


@dataclass(frozen=True)
class EventTimeDef:
    """``EVENT TIME (column [, RESOLUTION unit, LAG i, MINIMUM GAP i, EARLY BEYOND i, MODE mode])``; i: intervals.

    ``fields``: the names behind the column if the time is a field of a struct.
    """

    column: str
    resolution: str | None = None
    lag: exp.Expr | None = None
    gap: exp.Expr | None = None
    mode: str | None = None
    early: exp.Expr | None = None
    fields: tuple[str, ...] = ()
    place: Place = field(default=Place(1, 1), compare=False)


@dataclass(frozen=True)
class ColumnDef:
    """One declared column; ``type`` is Spark's name of the type, as in ``DECIMAL(10, 2)``.

    ``units``: what numbers count in it, or in fields inside of it: the path (``after.at``), and SECOND or the like.
    """

    name: str
    type: str
    nullable: bool = True
    order: DeclaredOrder | None = None
    checks: tuple[exp.Expr, ...] = ()
    comment: str = ""
    options: Options = ()
    units: tuple[tuple[str, str], ...] = ()
    place: Place = field(default=Place(1, 1), compare=False)


@dataclass(frozen=True, kw_only=True)
class Statement:
    """The fields of every statement: where it begins, its source, and the schemas in which its names are looked up."""

    place: Place = field(compare=False)
    text: str = field(compare=False)
    schemas: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, kw_only=True)
class CreateStream(Statement):
    """``CREATE [OR REPLACE] [FOREIGN] STREAM``; without ``using`` it is an embedded log.

    ``temporary``: it belongs to its script, whose pumps fill it, and its rows are not stored. ``… AS query``: it has
    the columns of the query, perhaps under ``renamed`` names, and a pump fills it.
    """

    name: Name
    columns: tuple[ColumnDef, ...]
    query: exp.Query | None = None
    renamed: tuple[str, ...] = ()
    using: str | None = None
    options: Options = ()
    option_places: tuple[OptionPlace, ...] = field(default=(), compare=False)
    idle_after: exp.Expr | None = None
    early: exp.Expr | None = None
    resync: exp.Expr | None = None
    ahead: exp.Expr | None = None
    event_time: EventTimeDef | None = None
    shape: EventShape | None = None
    server: str | None = None
    comment: str = ""
    foreign: bool = False
    temporary: bool = False
    replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class CreateTable(Statement):
    """``CREATE TABLE``: a static table."""

    name: Name
    columns: tuple[ColumnDef, ...]
    using: str | None = None
    options: Options = ()
    option_places: tuple[OptionPlace, ...] = field(default=(), compare=False)
    refresh: exp.Expr | None = None
    comment: str = ""
    replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class CreateView(Statement):
    """``CREATE [TEMPORARY] VIEW v [(columns)] AS query [EVENT SHAPE …]``; a view always belongs to its script."""

    name: Name
    query: exp.Query
    columns: tuple[str, ...] = ()
    event_time: EventTimeDef | None = None
    shape: EventShape | None = None
    comment: str = ""
    replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class CreatePump(Statement):
    """``CREATE PUMP p AS INSERT INTO s query``; a plain INSERT of a query has no name."""

    name: Name | None
    target: Name
    query: exp.Query
    columns: tuple[str, ...] = ()
    column_places: tuple[Place, ...] = field(default=(), compare=False)
    started: bool = True
    comment: str = ""
    replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class CreateSchema(Statement):
    """``CREATE SCHEMA app``, which has no effect: a schema is the first part of a name."""

    name: Name
    comment: str = ""


@dataclass(frozen=True, kw_only=True)
class CreateServer(Statement):
    """``CREATE SERVER s TYPE 'KAFKA' FOREIGN DATA WRAPPER w OPTIONS (…)``: a kind, with options for its streams."""

    name: Name
    type: str = ""
    options: Options = ()
    option_places: tuple[OptionPlace, ...] = field(default=(), compare=False)
    comment: str = ""
    replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class DropSchema(Statement):
    """``DROP SCHEMA [IF EXISTS] app [CASCADE]``: everything whose name begins with ``app.``."""

    name: Name
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, kw_only=True)
class SetSchema(Statement):
    """``SET SCHEMA 'app'``, or ``USE app``: the schema of later unqualified names."""

    schema: str


@dataclass(frozen=True, kw_only=True)
class SetPath(Statement):
    """``SET PATH 'app, other'``: the schemas in which later statements look up unqualified names."""

    path: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class CreateFunction(Statement):
    """``CREATE FUNCTION name [(parameters) RETURNS type] AS 'module:name'``, or ``… RETURN body``.

    ``parameters`` are those of a scalar function, and ``None`` for a table function; ``definition`` begins with AS.
    """

    name: Name
    definition: str
    parameters: tuple[ColumnDef, ...] | None = None
    returns: str = ""
    body: exp.Expr | None = None
    comment: str = ""
    replace: bool = False


@dataclass(frozen=True, kw_only=True)
class InsertValues(Statement):
    """``INSERT INTO s [(columns)] VALUES ...``; without columns, those of the stream in order."""

    stream: Name
    columns: tuple[str, ...]
    rows: tuple[tuple[exp.Expr, ...], ...]


@dataclass(frozen=True, kw_only=True)
class SetBound(Statement):
    """``ALTER STREAM s [WRITER 'w'] SET ROWTIME BOUND at [STRICT]``; ``view``: ALTER VIEW, for its event time.

    ``column``: ``SET BOUND OF column = at [STRICT]``.
    """

    stream: Name
    at: exp.Expr
    strict: bool = False
    writer: str | None = None
    view: bool = False
    column: Name | None = None


@dataclass(frozen=True, kw_only=True)
class SetIdle(Statement):
    """``ALTER STREAM s SET (IDLE AFTER interval)``."""

    stream: Name
    after: exp.Expr


@dataclass(frozen=True, kw_only=True)
class EndStream(Statement):
    """``ALTER STREAM s [WRITER 'w'] END``."""

    stream: Name
    writer: str | None = None


@dataclass(frozen=True, kw_only=True)
class AlterPump(Statement):
    """``ALTER PUMP p, q.* START|STOP``: the name ``*`` means all pumps, ``q.*`` those whose names begin with q."""

    pumps: tuple[Name, ...]
    start: bool


@dataclass(frozen=True, kw_only=True)
class TakeOver(Statement):
    """``ALTER PUMP p TAKE OVER``: takes its target from the pump of the same name of another checkpoint."""

    pump: Name


@dataclass(frozen=True, kw_only=True)
class Drop(Statement):
    """``DROP kind [IF EXISTS] name [CASCADE]``."""

    kind: Kind
    name: Name
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, kw_only=True)
class Explain(Statement):
    """``EXPLAIN [MONOTONICITY | WAITING] query``."""

    kind: Literal["PLAN", "MONOTONICITY", "WAITING"]
    query: exp.Query


@dataclass(frozen=True, kw_only=True)
class Query(Statement):
    """A query on its own: the script shows its result."""

    query: exp.Query


@dataclass(frozen=True)
class Script:
    """A parsed text: the statements that parse, in order, and a problem for each of the others.

    ``defines``: lower-case words that include the names that the failed statements would define.
    """

    text: str
    statements: tuple[Statement, ...]
    problems: tuple[Problem, ...]
    defines: frozenset[str] = frozenset()
