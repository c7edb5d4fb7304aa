"""Lifetimes on an edge: events as weighted rows, so that changes of events are rows too.

Semantics 9. An event is a row with weight +1: its start is the rowtime, its end a hidden column. A change retracts the
old row (weight -1) and adds the new one; rows of one event that cancel out are no event. Operators that map single rows
(filter, projection, shift), and joins, which multiply weights, need to know nothing about changes. A bound t says that
no later change affects times below t: everything below it is final.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from rowtime.core.clock import Clocks
from rowtime.core.columns import (
    ASKED_FROM,
    ASKED_UPTO,
    CHANGED_BY,
    CHOICE,
    DUE,
    MET,
    POSITION,
    ROUTE,
    ROWTIME,
    STOP,
    WEIGHT,
    WRITER,
)
from rowtime.core.errors import Failure, Problem
from rowtime.core.time import BEGINNING, END, MAX_MICROS
from rowtime.frames.frame import Frame
from rowtime.kernels.identity import summed
from rowtime.operators.contract import Delta, Operator, Shape, Tick, UpTo, passed, quoted
from rowtime.operators.contract.state import Kept, Route, Segment, rows_in
from rowtime.operators.rows.collations import in_bytes, restored

EVENT = (STOP, WEIGHT, CHANGED_BY, MET)
BEGINS = f"unix_micros({ROWTIME})"  # the start, µs
OVERLAPS = f"{BEGINS} < {ASKED_UPTO} AND {STOP} > {ASKED_FROM}"  # overlap of an event with the time in question
TOUCHES = f"{BEGINS} <= {ASKED_UPTO} AND {STOP} >= {ASKED_FROM}"
TWICE = f"explode(sequence(0L, 1L)) AS {CHOICE}"  # a row for each of two kinds
ALWAYS = END - 1  # the due time of rows that are kept until they are retracted


def is_lifetimes(node: Operator) -> bool:
    """Return True for an operator whose rows are events with lifetimes."""
    return STOP in node.emits().extra


def derived(shape: Shape) -> Shape:
    """Return the shape of an operator's derived events: one clock, and no places."""
    return replace(shape, order=(ROWTIME, STOP), extra=EVENT, placed=False, single=True, lasts=0)


def derived_columns(start: str, end: str, weight: str = "1L", version: str = "0L", met: str = "0L") -> list[str]:
    """Return the hidden columns of a derived event; times are BIGINT expressions.

    ``version`` and ``met``: of the change that it comes with, if changes are numbered (`Versions`).
    """
    return [f"{instant(start)} AS {ROWTIME}", f"'' AS {WRITER}", f"0L AS {POSITION}",
            f"{end} AS {STOP}", f"{weight} AS {WEIGHT}", f"{version} AS {CHANGED_BY}", f"{met} AS {MET}"]  # fmt: skip


def instant(micros: str) -> str:
    """Return a BIGINT as TIMESTAMP; an event without an end gets the last possible instant."""
    return f"timestamp_micros(least({micros}, {MAX_MICROS}L))"


def netted(rows: Frame, columns: Sequence[str]) -> Frame:
    """Return rows combined by all ``columns``, without those that cancel out; texts are compared by their bytes."""
    # The first row that gave an event its present lifetime gives its place; later ones may cancel out.
    others = [f"min({name}) AS {name}" for name in (CHANGED_BY, MET) if name in rows.columns and name not in columns]
    rows, back = in_bytes(rows, columns)
    sums = [f"sum({WEIGHT}) AS {WEIGHT}", *others]
    sums_of_rows = rows.grouped([*map(quoted, columns)], sums).where(f"{WEIGHT} <> 0")
    return restored(sums_of_rows, back)


def netted_by(rows: Frame, key: Sequence[str], columns: Sequence[str]) -> Frame:
    """Do the same for rows that are equal in all ``columns`` if they are in ``key``: whole numbers, or texts."""
    places, sums = summed([rows.column(name) for name in key], rows.column(WEIGHT).to_numpy())
    rest = rows.taken(places).with_column(WEIGHT, "bigint", pa.array(sums))
    return rest.select(*map(quoted, columns), WEIGHT)


def due(end: str) -> str:
    """Return when an event is final: one that ends at the bound, once the bound has passed it."""
    return f"IF({end} < {END}L, {end} + 1, {end}) AS {DUE}"


def revised(tick: Tick, node: Operator, names: Sequence[str], now: Frame, gone: Frame | None) -> Frame:
    """Return the present events (columns ``names``, __x, the end, the weight), minus those emitted before as open.

    Written, because it is read more than once.
    """
    wanted = [*names, "__x", STOP]
    if gone is not None:
        now = now.unionByName(gone.selectExpr(*map(quoted, wanted), f"-{WEIGHT} AS {WEIGHT}"))
    changes = netted(now, wanted).selectExpr("*", f"{ALWAYS}L AS {DUE}", f"0 AS {ROUTE}")
    route = {"merged": Route(0, {c: c for c in [*wanted, WEIGHT, DUE]}, DUE)}
    segments = tick.write(node, changes, route)["merged"]
    return tick.segments(node, "merged").read(segments) if segments else changes.where("false")


def least_of(rows: Frame, name: str) -> int | None:
    """Return the least number in a column; ``None`` if there is none."""
    number: int | None = rows.selectExpr(f"min({name}) AS {name}").collect()[0][0]
    return number


def both(one: Frame | None, other: Frame | None) -> Frame | None:
    """Return the rows of both, if there are any."""
    if one is None or other is None:
        return other if one is None else one
    return one.unionByName(other)


def advanced(tick: Tick, node: Operator, deltas: Sequence[Delta]) -> tuple[Clocks, int, int]:
    """Return the promise of an operator with an `UpTo` after a tick, and its old and its new bound."""
    control = tick.control(node)
    assert isinstance(control, UpTo)
    clocks = node.promises([delta.clocks for delta in deltas], control)
    return clocks, control.bound, max(control.bound, clocks[""])


def refuse_endless(node: Operator, events: Frame, end: str, what: str, *, at_once: bool = False) -> None:
    """Fail (R195) if an event without an end would have endless results; ``at_once``: with EMIT CHANGES."""
    if events.where(f"{end} >= {END}L").limit(1).count():
        why = "EMIT CHANGES would emit all of them at once" if at_once else "its stream has ended"
        hint = "Limit it: FROM CLIP(s, AT MOST INTERVAL '1' DAY). Or leave EMIT CHANGES out."
        hint = hint if at_once else "Send its end edge, or limit it: FROM CLIP(s, AT MOST INTERVAL '1' DAY)."
        raise Failure(Problem("R195", f"{node.name}: an event without an end {what}, and {why}", hint=hint))


class WeightedLog:
    """Weighted rows that an operator keeps: a log to which changes are appended, each due at a time."""

    def __init__(self, tick: Tick, node: Operator, what: str = "state") -> None:
        self.tick, self.node, self.what = tick, node, what
        self.segments = tick.segments(node, what)

    @staticmethod
    def kept(*columns: str, name: str = "state") -> Kept:
        """Return the state of that name: rows of these columns, each with its weight and the time when it is due."""
        return Kept(DUE, (*columns, WEIGHT, DUE), name, counts=(WEIGHT,))

    def between(self, low: int, high: int) -> Frame | None:
        """Return kept rows that are due in (low, high]."""
        segments = self.segments.overlapping(low, high)
        if not segments:
            return None
        lower = f"{DUE} > {passed(low, DUE)}"
        return self.segments.read(segments).where(lower if high >= END else f"{lower} AND {DUE} <= {passed(high, DUE)}")

    def all_rows(self) -> Frame | None:
        """Return all kept rows."""
        segments = self.segments.overlapping(BEGINNING, END)
        return self.segments.read(segments) if segments else None

    def tables(self, low: int, high: int) -> Sequence[pa.Table]:
        """Return the same in tables, with rows of the same files that are due at other times."""
        return self.segments.tables(self.segments.overlapping(low, high)) if high > low else ()

    def put(self, table: pa.Table) -> None:
        """Keep the rows of a table."""
        if table.num_rows:
            routes = {self.what: Route(0, {name: name for name in table.column_names}, DUE)}
            self.segments.add(self.tick.write(self.node, table, routes)[self.what])

    def count(self, low: int, high: int) -> int:
        """Return an upper limit on the number of these rows."""
        return rows_in(self.segments.overlapping(low, high))

    def forget(self, bound: int, columns: Sequence[str]) -> None:
        """Drop rows that were due up to a bound, and merge crowded segments by ``columns``."""
        self.segments.forget(bound)
        if crowded := self.segments.crowded():
            rows = netted(self.segments.read(crowded).where(f"{DUE} > {passed(bound, DUE)}"), [*columns, DUE])
            self.tick.describe(self.node, "compact kept events")
            self.segments.replace(crowded, self._write(rows))

    def add(self, rows: Frame) -> Sequence[Segment]:
        """Keep more rows."""
        self.tick.describe(self.node, "keep events")
        written = self._write(rows)
        self.segments.add(written)
        return written

    def oldest(self, bound: int, identity: Sequence[str], start: str) -> int:
        """Return the least ``start`` of the events that are due after the bound, or the bound."""
        rows = self.between(bound, END)
        least = None if rows is None else least_of(netted(rows.drop(DUE), identity), start)
        return bound if least is None else min(bound, least)

    def _write(self, rows: Frame) -> Sequence[Segment]:
        return Kept(DUE, tuple(rows.columns), self.what).write(self.tick, self.node, rows)


def routed(
    tick: Tick, node: Operator, rows: Frame, routes: Mapping[str, tuple[int, Sequence[str]]]
) -> dict[str, Frame | None]:
    """Write rows (with ``__route``) to several places: name -> key, columns.

    Those of `RESULTS` are returned, others are kept.
    """
    written = tick.write(node, rows, {n: Route(key, {c: c for c in cs}, DUE) for n, (key, cs) in routes.items()})
    logs_read: dict[str, Frame | None] = {}
    for name, segments in written.items():
        log = tick.segments(node, name)
        if name in RESULTS:
            logs_read[name] = log.read(segments) if segments else None
        else:
            log.add(segments)
    return logs_read


RESULTS = ("complete", "merged")  # not needed after the tick
