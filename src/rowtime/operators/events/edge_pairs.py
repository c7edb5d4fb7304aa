"""Pairs the edges of a tick with earlier open events: starts, ends, and ends without a start.

An end edge ends the oldest open event of its writer with the same payload and start (semantics 9.1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from rowtime.core.columns import (
    AS_GIVEN,
    CHANGED_BY,
    DUE,
    EDGE_KIND,
    MET,
    NEW_EDGE,
    POSITION,
    ROUTE,
    START,
    STARTED_AT,
    STOP,
    WEIGHT,
    WRITER,
)
from rowtime.core.threads import per_column
from rowtime.core.time import END
from rowtime.frames.frame import Frame
from rowtime.frames.kinds import DECIMAL, PLAIN
from rowtime.kernels.edges import paired
from rowtime.kernels.events import START_EDGE, STOP_EDGE
from rowtime.kernels.identity import compact, only_value
from rowtime.kernels.large import taken
from rowtime.operators.contract import quoted
from rowtime.operators.rows.lifetimes import ALWAYS

COMPLETE, OPEN, UNMATCHED = 0, 1, 2  # routes: changes of events, changes of open events, ends without a start


def changes_of(edges: Frame, payload: Sequence[str], *, each: bool = True) -> Frame:
    """Return each start with its end: weighted rows of events, changes of the open events, unmatched ends.

    ``edges``: the columns of the ``payload``, `WRITER`, `POSITION`, `EDGE_KIND`, `AS_GIVEN`, `START`, `STOP`, `MET` and
    `NEW_EDGE`. The changes also have `ROUTE` and `STARTED_AT`. ``each``: whether an event that begins and ends among
    these edges also comes as open; otherwise it comes once, with its end.
    """
    if all(_plain(kind) for name, kind in edges.fields if name in payload):
        by_kernels = _changes_here(edges, payload, each=each)
        if by_kernels is not None:
            return by_kernels
    return _changes(_queued(edges, payload), payload, each=each)


def _plain(kind: str) -> bool:
    """Return True for a type whose values have one form each: 0.0 and -0.0 are equal, and a group shows the first."""
    return (kind in PLAIN and kind not in ("float", "double")) or DECIMAL.fullmatch(kind) is not None


# -- by kernels --------------------------------------------------------------------------


def _changes_here(edges: Frame, payload: Sequence[str], *, each: bool) -> Frame | None:
    """Return the pairs; ``None`` if numbers are NULL, which arrays cannot hold."""
    columns = [edges.column(name) for name in (EDGE_KIND, NEW_EDGE, POSITION, START, STOP)]
    if any(column.null_count for column in columns):
        return None
    one_writer = only_value(edges.column(WRITER)) is not None
    names = [*([] if one_writer else [WRITER]), *payload, AS_GIVEN]
    count = len(columns[0])
    keys = per_column(lambda name: compact(edges.column(name).combine_chunks()), names, count)
    kinds, fresh, positions, starts, stops = per_column(lambda column: column.to_numpy(), columns, count)
    pairs = paired(keys, positions, kinds == START_EDGE)
    new, ended = fresh[pairs.starts] == 1, pairs.ends >= 0
    is_known = np.full(len(new), each) | ~(new & ended)  # whether an event was known as open, or is now
    began, back = pairs.starts[new & is_known], ended & is_known
    went, by = pairs.starts[ended], pairs.ends[ended]
    lasted = taken(stops, by) > taken(starts, went)
    left, over = pairs.starts[new & ~ended], ended & ~new
    parts = [  # the rows to report, what changed them, the route, the weight, whether the event has ended
        (began, began, COMPLETE, 1, False),
        (pairs.starts[back], pairs.ends[back], COMPLETE, -1, False),
        (went[lasted], by[lasted], COMPLETE, 1, True),
        (left, left, OPEN, 1, False),
        (pairs.starts[over], pairs.ends[over], OPEN, -1, False),
        (pairs.lost, pairs.lost, UNMATCHED, 0, True),
    ]
    of, changed = (np.concatenate([part[n] for part in parts]) for n in (0, 1))
    places, sizes = pa.array(of), [len(part[0]) for part in parts]
    numbers: dict[str, Callable[[], Any]] = {
        STARTED_AT: lambda: pa.array(positions[of]),
        ROUTE: lambda: pa.array(np.repeat(np.array([part[2] for part in parts], np.int32), sizes)),
        STOP: lambda: pa.array(
            np.concatenate([stops[part[1]] if part[4] else np.full(len(part[0]), END) for part in parts])
        ),
        WEIGHT: lambda: pa.array(np.repeat(np.array([part[3] for part in parts], np.int64), sizes)),
        CHANGED_BY: lambda: pa.array(positions[changed]),
        MET: lambda: edges.column(MET).take(pa.array(changed)).combine_chunks(),
        DUE: lambda: pa.array(np.full(len(of), ALWAYS, np.int64)),
    }
    if one_writer:
        numbers[WRITER] = lambda: pa.repeat(edges.column(WRITER)[0], len(of))
    replaced = {*numbers, EDGE_KIND, NEW_EDGE, POSITION}
    passed = [(name, kind) for name, kind in edges.fields if name not in replaced]
    takes: list[Callable[[], Any]] = [partial(edges.column(name).take, places) for name, _ in passed]
    arrays = per_column(lambda work: work(), [*takes, *numbers.values()], len(of))
    fields = [*passed, *((name, {ROUTE: "int", WRITER: "string"}.get(name, "bigint")) for name in numbers)]
    return Frame.of(edges.sparkSession, pa.table(arrays, [name for name, _ in fields]), fields)


# -- by SQL ------------------------------------------------------------------------------


def _queued(edges: Frame, payload: Sequence[str]) -> Frame:
    """Treat edges with one payload and start as a queue: the n-th end with a start ends the n-th start.

    The running least of starts minus ends counts the ends without a start; these get numbers below zero.
    """
    by = ", ".join([WRITER, *map(quoted, payload), AS_GIVEN])
    running = f"OVER (PARTITION BY {by} ORDER BY {POSITION} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    last = f"OVER (PARTITION BY {by} ORDER BY {POSITION})"
    level = edges.selectExpr("*", f"sum(IF({EDGE_KIND} = {START_EDGE}, 1, -1)) {running} AS __level")
    lost = level.selectExpr("*", f"greatest(0, -min(__level) {running}) AS __losses")
    lost = lost.selectExpr("*", f"__losses - lag(__losses, 1, 0) {last} AS __lost")
    starts, ends = (f"sum(IF({EDGE_KIND} = {what}, 1, 0)) {running}" for what in (START_EDGE, STOP_EDGE))
    number = f"IF({EDGE_KIND} = {START_EDGE}, {starts}, {ends} - __losses)"
    return lost.selectExpr("*", f"IF(__lost = 1, -1 - {POSITION}, {number}) AS __number")


def _changes(edges: Frame, payload: Sequence[str], *, each: bool) -> Frame:
    start = {STARTED_AT: POSITION, START: START, "__sc": MET, "__fresh": NEW_EDGE}
    stop = {"__ep": POSITION, "__stop": STOP, "__ec": MET}
    texts = [
        f"max(IF({EDGE_KIND} = {kind}, {value}, NULL)) AS {name}"
        for kind, columns in ((START_EDGE, start), (STOP_EDGE, stop))
        for name, value in columns.items()
    ]
    keys = [WRITER, *map(quoted, payload), AS_GIVEN, "__number"]
    pairs = edges.grouped(keys, texts)
    ended = f"{STARTED_AT} IS NOT NULL AND __stop IS NOT NULL"
    opened = "" if each else " AND __stop IS NULL"
    known_before = "" if each else " AND __fresh = 0"
    rows = [
        (f"__fresh = 1{opened}", 0, f"{END}L", "1L", STARTED_AT, "__sc"),
        (f"{ended}{known_before}", 0, f"{END}L", "-1L", "__ep", "__ec"),
        (f"{ended} AND __stop > {START}", 0, "__stop", "1L", "__ep", "__ec"),
        ("__fresh = 1 AND __stop IS NULL", 1, f"{END}L", "1L", STARTED_AT, "__sc"),
        ("__fresh = 0 AND __stop IS NOT NULL", 1, f"{END}L", "-1L", "__ep", "__ec"),
        (f"{STARTED_AT} IS NULL", 2, "__stop", "0L", "__ep", "__ec"),
    ]
    when, *values = (
        f"CASE {' '.join(f'WHEN __i = {n}L THEN {text}' for n, text in enumerate(texts))} END"
        for texts in zip(*rows, strict=True)
    )
    named_values = [
        f"{value} AS {name}" for value, name in zip(values, (ROUTE, STOP, WEIGHT, CHANGED_BY, MET), strict=True)
    ]
    changes = pairs.selectExpr("*", f"explode(sequence(0L, {len(rows) - 1}L)) AS __i").where(when)
    return changes.selectExpr(
        *map(quoted, payload),
        WRITER,
        AS_GIVEN,
        START,
        f"coalesce({STARTED_AT}, __ep) AS {STARTED_AT}",
        *named_values,
        f"{ALWAYS}L AS {DUE}",
    )
