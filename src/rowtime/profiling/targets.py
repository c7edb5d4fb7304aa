"""What a profile is of: a gate of a script that promotes a time, or a stream with a column of times."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from rowtime.api.pipeline import Pipeline
from rowtime.api.relations import named
from rowtime.core.columns import JUDGED, PROMOTED_TIME, ROWTIME, ROWTIME_NAME
from rowtime.core.errors import Problem, Refused, refuse
from rowtime.operators.contract import Operator, quoted
from rowtime.operators.gates.tsort import TSort
from rowtime.operators.rows.select import Select
from rowtime.operators.streams.arrival_times import is_timed_by_arrival
from rowtime.operators.streams.stream import Stream
from rowtime.plan.program import Program
from rowtime.sql.generate import to_rowtime

_SOURCES: Final = ("log", "kafka", "parquet", "csv", "json", "delta", "iceberg")
_UNQUOTED: Final = re.compile(r"`([A-Za-z_]\w*)`")
_TIMES: Final = ("TIMESTAMP", "TIMESTAMP_LTZ")


@dataclass(frozen=True)
class Target:
    """Rows of a ``stream`` of a ``program`` after ``steps``, from the stream up, with a time.

    ``name``: of the gate or the stream. ``time``: Spark SQL over the columns of the last step; ``judged``: what a gate
    compares with the mark, if not the time. ``promoted``: the time in SQL, as a statement writes it; empty for a
    rowtime that the source gives. ``gate``: the T-sort, if it is one.
    """

    name: str
    program: Program
    stream: Stream
    time: str
    promoted: str
    steps: tuple[Select, ...] = ()
    judged: str | None = None
    gate: TSort | None = None
    declaration: str = ""
    """CREATE STREAM, if no script declares the stream."""
    column: str = ""
    """The column of the stream that is the time, if it is one and all rows come through."""

    @property
    def may_be_guarded(self) -> bool:
        """Return True if its rows can have a guard; GROUP BY … WITHIN has none."""
        return self.gate is None or not self.gate.by_group

    @property
    def rewrite(self) -> str:
        """Return the statement that sorts the rows, with ``{time}`` and ``{clauses}`` in it."""
        if self.gate is not None:
            return "GROUP BY … {clauses}" if self.gate.by_group else "ORDER BY {time} {clauses}"
        name = named(self.stream.name)
        if not self.promoted:
            return f"-- Send the time as a column of {name}, at for example, and promote it: ORDER BY at {{clauses}}"
        view = (
            f"CREATE VIEW {named(f'{self.stream.name}_in_order')} AS\nSELECT STREAM {{time}} AS ROWTIME, * FROM {name}"
        )
        sort = f"{view}\nORDER BY {{time}} {{clauses}};"
        return f"{self.declaration}\n{sort}" if self.declaration else sort


def targets_of(
    pipeline: Pipeline, text: str, values: Mapping[str, str], time: str | None, declaration: str = ""
) -> list[Target]:
    """Return the gates of a script that promote a time, and its streams that no such gate reads.

    ``time``: the column of times; then each stream is profiled by it, and no gate. ``declaration``: CREATE STREAM, if
    no script of the user declares the stream. Raises ``Refused``: what the script
    is refused for, R620 if it reads nothing, R621 if the time of a stream is not known, R623 for a source that cannot
    be read as a whole.
    """
    program = _with_queries(pipeline.sql(text, values))
    gates = [] if time is not None else [*_gates(program)]
    read = {gate.stream.name for gate in gates}
    streams = [stream for stream in program.streams if stream.name not in read]
    problems = [_unreadable(stream) for stream in program.streams if stream.source[0] not in _SOURCES]
    if problems:
        raise Refused(*problems)
    targets = [*gates, *(stream_target(program, stream, time, declaration) for stream in streams)]
    if not targets:
        raise refuse("R620", "the script reads no stream, so there is nothing to profile")
    return targets


def stream_target(program: Program, stream: Stream, time: str | None, declaration: str = "") -> Target:
    """Return a stream by the column ``time``, else by its only column of times. Raises ``Refused`` (R621, R103)."""
    names = {column.name.lower(): column for column in stream.columns}
    if time is not None and time.upper() == ROWTIME_NAME:
        return Target(stream.name, program, stream, ROWTIME, "", declaration=declaration)
    if time is not None and time.lower() not in names:
        what = f"{stream.name} has no column {time}"
        raise refuse("R103", what, f"Its columns are {', '.join(column.name for column in stream.columns)}.")
    times = [column for column in stream.columns if column.type.upper() in _TIMES]
    chosen = names[time.lower()] if time is not None else times[0] if len(times) == 1 else None
    if chosen is None and not times and stream.source[0] == "log":
        return Target(stream.name, program, stream, ROWTIME, "", declaration=declaration)
    if chosen is None:
        have = f"the columns {', '.join(column.name for column in times)}" if times else "no column of type TIMESTAMP"
        what = f"{stream.name} has {have}, so it is not known which time to profile"
        raise refuse("R621", what, "Name it: --time COLUMN.")
    if chosen.type.upper() not in _TIMES:
        hint = "Declare it as TIMESTAMP; or profile a script that promotes it: SELECT STREAM … AS ROWTIME … ORDER BY …."
        raise refuse("R621", f"the column {chosen.name} of {stream.name} has the type {chosen.type}", hint)
    promoted = chosen.name if chosen.name.isidentifier() else quoted(chosen.name)
    return Target(
        stream.name, program, stream, quoted(chosen.name), promoted, declaration=declaration, column=chosen.name
    )


def _with_queries(pipeline: Pipeline) -> Program:
    """Return the program of a script; if it has no query or pump, with one for each stream and view."""
    program = pipeline.compile(imports=True)
    if program.sinks:
        return program
    names = [*program.catalog.views] or [*program.catalog.streams]
    for name in names:
        pipeline.sql(f"SELECT STREAM * FROM {quoted(name)}")  # noqa: S608 - a quoted name
    return pipeline.compile(imports=True)


def _gates(program: Program) -> Iterator[Target]:
    """Yield the T-sorts whose rows come from a stream through filters and projections only."""
    for node in program.operators:
        if not isinstance(node, TSort):
            continue
        steps, stream = _chain(node.input)
        if stream is None or not steps or not _accepts_all(stream):
            continue
        hidden = {item.column.name: item for item in steps[-1].hidden}
        if PROMOTED_TIME in hidden:
            judged = JUDGED if node.by_group else None
            time = hidden[PROMOTED_TIME].expression
            plain = isinstance(time, exp.Column) and len(steps) == 1 and steps[0].where is None and judged is None
            column = time.name if plain else ""
            promoted = _UNQUOTED.sub(r"\1", to_rowtime(time))
            yield Target(node.name, program, stream, PROMOTED_TIME, promoted, tuple(steps), judged, node, column=column)


def _chain(node: Operator) -> tuple[Sequence[Select], Stream | None]:
    """Return the projections above a stream, the lowest first; no stream if something else is between."""
    steps: list[Select] = []
    while isinstance(node, Select) and not node.row_values() and node.projection() is not None:
        steps.insert(0, node)
        node = node.input
    return steps, node if isinstance(node, Stream) else None


def _accepts_all(stream: Stream) -> bool:
    """Return True for a stream that refuses no row for its rowtime, as long as writers give none."""
    return stream.source[0] == "log" or is_timed_by_arrival(stream.source)


def _unreadable(stream: Stream) -> Problem:
    kind = stream.source[0]
    what = f"{stream.name} cannot be profiled: rows of {kind} cannot be read as a whole"
    return Problem("R623", what, hint="Profile where its rows are stored: files, a topic, a lake table or a stream.")
