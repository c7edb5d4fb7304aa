"""Warnings where the time of change of a file decides a result (semantics 2.4), which then depends on copies of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from rowtime.core.columns import PROMOTED_TIME, ROWTIME
from rowtime.core.errors import Place, Problem
from rowtime.expr.conditions import columns_in
from rowtime.operators.contract import Operator, walk
from rowtime.operators.streams.arrival_times import is_timed_by_files
from rowtime.operators.streams.stream import Stream, streams_of

_NONE = "Declare a column with the time of the event as a TIMESTAMP, and promote it: SELECT STREAM t AS ROWTIME, …."


def timed_by_files(node: Operator) -> frozenset[str]:
    """Return the streams whose files' times of change are the rowtimes of some rows, or those of functions of them."""
    names: dict[str, frozenset[str]] = {}
    files = frozenset(stream.name for stream in streams_of(walk(node)) if is_timed_by_files(stream.source))
    for one in walk(node):
        below = [names[child.name] for child in one.inputs]
        time = one.inputs[0].projection() if one.promotes and len(one.inputs) == 1 else None
        follows = time is not None and PROMOTED_TIME in time and ROWTIME in columns_in([time[PROMOTED_TIME]])
        names[one.name] = frozenset().union(*below) if follows else one.timed_by(below) & files
    return names[node.name]


def warnings(
    roots: Sequence[Operator], compared: Collection[str], read: Mapping[str, Place | None]
) -> Iterator[Problem]:
    """Yield a warning for each stream of files of which the times of change decide the rows of an operator.

    These are operators that keep rows or groups until a time, and ``compared``: others that compare rowtimes. ``read``:
    where each stream is read first.
    """
    warned: set[str] = set()
    for node in dict.fromkeys(one for root in roots for one in walk(root)):
        by_time = node.name in compared or any(note.by == "time" for note in node.keeps())
        if not by_time or node.has_own_time or node.keeps_rows_alone:  # rows that wait for their turn are only sorted
            continue
        streams = {stream.name: stream for child in node.inputs for stream in streams_of(walk(child))}
        for name in sorted({name for child in node.inputs for name in timed_by_files(child)} - warned):
            warned.add(name)
            what = f"the ROWTIME of {name} is the time of change of its files, and decides the result of {node.name}"
            yield Problem("R226", f"{what} ({node.kind})", read.get(name), _hint(streams[name]), warns=True)


def _hint(stream: Stream) -> str:
    column = next((column.name for column in stream.columns if column.type.upper() == "TIMESTAMP"), None)
    if column is None:
        return _NONE
    view, name = f"{stream.name}_by_{column}", stream.name
    query = f"SELECT STREAM {column} AS ROWTIME, * FROM {name} ORDER BY {column} WITHIN INTERVAL '1' MINUTE"  # noqa: S608 - rowtime's own SQL
    return f"Promote the time of the event, CREATE VIEW {view} AS {query}, and read {view} in place of {name}."
