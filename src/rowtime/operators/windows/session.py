"""GROUP BY SESSION: one row for the rows of a key that follow each other within a gap.

Semantics 5, as Calcite's: a session is ``[first, last + gap)`` and is complete when the bound has reached its end,
which is its rowtime. New rows are merged into pieces of sessions at once, in any order. Kept pieces are joined when one
of them is due, so a tick writes only its own pieces, and due ones whose session continues.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from rowtime.core.clock import Clocks, least
from rowtime.core.columns import ASKED_AT, DUE, FIRST, IS_DUE, LAST, ROWTIME, SESSION, SESSION_END, SESSION_START
from rowtime.core.fields import Micros
from rowtime.core.time import BEGINNING, END, MAX_MICROS
from rowtime.operators.contract import Closed, Column, Delta, Link, Shape, Tick, Unary, passed, quoted
from rowtime.operators.contract.state import Kept, Route, Segment, StateNote
from rowtime.operators.groups.finished import COMPLETE, KEPT, Finished, with_failing
from rowtime.operators.groups.grouping import PartialTypes, RowGroups
from rowtime.operators.rows.attempt import selected
from rowtime.operators.rows.collations import grouped
from rowtime.operators.rows.lifetimes import BEGINS
from rowtime.operators.rows.select import Item
from rowtime.sql.generate import to_spark

if TYPE_CHECKING:
    from sqlglot import exp

    from rowtime.frames.frame import Frame
    from rowtime.operators.contract import Operator
    from rowtime.operators.rows.ends import Lead


@dataclass(frozen=True)
class ClosedSessions(Closed, PartialTypes):
    """``closed`` (µs UTC): the bound up to which sessions have ended; ``stamp``: the rowtime of a row there."""

    stamp: int | None = None


@dataclass(frozen=True)
class SessionGroup(RowGroups, Unary):
    """``GROUP BY keys, SESSION(ROWTIME, gap)``; ``items``, ``having`` and ``stamp`` as in `GroupBy`.

    They may use the session's edges too. ``gap`` in µs. ``sort`` and ``directions``: the order of sessions with one
    rowtime.
    """

    keys: tuple[Item, ...]
    aggregates: tuple[Item, ...]
    items: tuple[Item, ...]
    gap: Micros
    having: exp.Expr | None = None
    stamp: exp.Expr | None = None
    sort: tuple[Item, ...] = ()
    directions: tuple[str, ...] = ()

    control: ClassVar = ClosedSessions
    kind: ClassVar[str] = "session"
    finishes_groups: ClassVar = True
    edges: ClassVar[tuple[str, ...]] = (SESSION_START, SESSION_END)
    computes: ClassVar[bool] = True
    promise: ClassVar[str] = "the bound of its input, or the AS ROWTIME of a session that ends there"
    reason: ClassVar[str] = "every session that ends at the bound has gone out, and each later one ends after it"

    def keeps(self) -> tuple[StateNote, ...]:
        """Return pieces of open sessions, or their rows if an aggregate has no partial form."""
        what = "partial results per session" if self.accumulators.splits else "the aggregated columns of each row"
        return (self._state.noted(what, "the bound reaches the end of the session"),)

    def emits(self) -> Shape:
        """Return the select list; rows are released, ordered by the end of the session and the keys."""
        keys, columns = self._chains.keys, tuple(item.column for item in self.items)
        if not self.sort:
            return Shape(
                columns, order=(DUE, ROWTIME, *keys), extra=(DUE, *keys), placed=False, single=True, released=True
            )
        names = tuple(item.column.name for item in self.sort)
        ways = (f"{name} {way}" for name, way in zip(names, self.directions, strict=True))
        # Sessions with one AS ROWTIME end at several times; their columns are ordered by these.
        columns = columns if self.stamp is None else tuple(Column(column.name, column.type) for column in columns)
        order, released = (ROWTIME, *ways, DUE, *keys), self.stamp is None
        return Shape(columns, order=order, extra=(*names, DUE, *keys), placed=False, single=True, released=released)

    def promises(self, clocks: Sequence[Clocks], control: ClosedSessions) -> Clocks:
        """Return the bound; or AS ROWTIME at the bound, evaluated by ``step``."""
        return {"": least(clocks[0].values()) if control.stamp is None else control.stamp}

    def link(self, n: int) -> Link:  # noqa: ARG002 - one input
        """Return the rows of the same keys up to the end of the session."""
        return Link(self.same_keys(), meets=f"{BEGINS} <= {ASKED_AT}")

    def in_order(self, lead: Lead | None, keys: tuple[Item, ...], ways: tuple[str, ...]) -> SessionGroup | None:
        """Return the operator with sessions ordered by their ends."""
        return replace(self, sort=keys, directions=ways) if lead is None else None

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Keep the pieces of new sessions; join those that are due."""
        delta, before = self.computing(tick, deltas[0]), tick.control(self).closed
        bound = max(least(delta.clocks.values()), before)
        if delta.rows is not None:
            self._keep(tick, delta)
        done = self._close(tick, before, bound)
        control = tick.remember(self, closed=bound, stamp=self._stamp_at(tick, bound))
        tick.segments(self).forget(bound)
        if not tick.trying:
            self._state.compact(tick, self, "pieces of sessions", lambda pieces: self._compacted(tick, pieces, bound))
        rows = tick.segments(self, "complete").read(done) if done else None
        return Delta(rows, self.promises([delta.clocks], control))

    # -- pieces -----------------------------------------------------------------------

    def _keep(self, tick: Tick, delta: Delta) -> None:
        assert delta.rows is not None
        at = f"unix_micros({ROWTIME})"
        times = (f"{at} AS {FIRST}", f"{at} AS {LAST}", f"{at} + {self.gap}L AS {DUE}")
        keys = (key.sql for key in self.keys)
        rows = selected(tick, delta.rows, [*keys, *self.accumulators.seeds(self._types(tick, delta.rows)), *times])
        tick.describe(self, "keep pieces of sessions")
        self._state.keep(tick, self, self._merged(tick, rows))

    def _merged(self, tick: Tick, pieces: Frame) -> Frame:
        """Return pieces of one session as one piece, if partial results are enough."""
        if not self._merges(tick):  # a sum may be too large
            return pieces
        return self._by_session(
            self._chains.numbered(pieces),
            *self.accumulators.merges(self._types(tick)),
            f"min({FIRST}) AS {FIRST}",
            f"max({LAST}) AS {LAST}",
            f"max({DUE}) AS {DUE}",
        )

    def _by_session(self, pieces: Frame, *aggregates: str) -> Frame:
        return grouped(pieces, [*self._chains.keys, SESSION], aggregates)

    def _compacted(self, tick: Tick, pieces: Frame, bound: int) -> Frame:
        return self._merged(tick, pieces.where(f"{DUE} > {bound}L")).sortWithinPartitions(DUE)

    # -- complete sessions ------------------------------------------------------------

    def _close(self, tick: Tick, before: int, bound: int) -> tuple[Segment, ...]:
        pieces = self._chains.due(tick, self, before, bound)
        if pieces is None:
            return ()
        numbered, complete = self._chains.numbered(pieces), f"{DUE} <= {passed(bound, DUE)}"
        if self._merges(tick):
            groups = self._joined(tick, numbered)
        else:
            rows = self._chains.ended(numbered).where(IS_DUE)
            tick.describe(self, "keep rows of open sessions")
            self._state.keep(tick, self, rows.where(f"NOT ({complete})"))
            groups = self._aggregated(tick, rows.where(complete))
        tick.describe(self, "aggregate, close sessions")
        edges = (f"timestamp_micros({FIRST}) AS {SESSION_START}", f"timestamp_micros({DUE}) AS {SESSION_END}")
        groups = groups.selectExpr("*", *edges)
        stamp = f"timestamp_micros(least({DUE}, {MAX_MICROS}L))" if self.stamp is None else to_spark(self.stamp)
        finished = Finished(self, complete, (*self.items, *self.sort), stamp, self._routes(tick))
        written = finished.write(tick, groups)
        tick.segments(self).add(written.get("state", ()))
        return tuple(written["complete"])

    def _joined(self, tick: Tick, pieces: Frame) -> Frame:
        """Return one row per session: its due pieces merged, and its end as far as it is known."""
        types = self._types(tick)
        groups = self._by_session(
            pieces,
            *self.accumulators.merges(types),
            f"min(CASE WHEN {IS_DUE} THEN {FIRST} END) AS {FIRST}",
            f"max(CASE WHEN {IS_DUE} THEN {LAST} END) AS {LAST}",
            f"max({LAST}) + {self.gap}L AS {DUE}",
        )
        return groups.where(f"{FIRST} IS NOT NULL").selectExpr("*", *self.accumulators.finals(types))

    def _aggregated(self, tick: Tick, rows: Frame) -> Frame:
        edges = (f"min({FIRST}) AS {FIRST}", f"max({DUE}) AS {DUE}")
        if tick.trying:
            by, types = [*self._chains.keys, SESSION], self._types(tick)
            return self.accumulators.exact(rows, by, (*edges, f"max({LAST}) AS {LAST}"), types)
        return self.accumulators.of_rows(rows, [*self._chains.keys, SESSION], edges)

    def _routes(self, tick: Tick) -> dict[str, Route]:
        shape, items = self.emits(), (*self.items, *self.sort)
        own = dict(zip([item.column.name for item in items], self.accumulators.places(items), strict=True))
        routes = {"complete": Route(COMPLETE, {name: name for name in shape.internals} | own, DUE)}
        if self.accumulators.splits:
            routes["state"] = self._state.route(KEPT)
        return with_failing(tick, self, routes, {name: own[name] for name in shape.names})

    def _stamp_at(self, tick: Tick, bound: int) -> int:
        if self.stamp is None or not BEGINNING < bound < END:
            return bound
        # Our own name and number, and an expression that was parsed and bound.
        text = f"SELECT unix_micros({to_spark(self.stamp)}) FROM (SELECT timestamp_micros({bound}L) AS {SESSION_END})"  # noqa: S608
        return tick.scalar(text)

    @property
    def _chains(self) -> Chains:
        return Chains(tuple(key.column.name for key in self.keys), self.gap)

    @property
    def _state(self) -> Kept:
        keys = self._chains.keys
        return Kept(DUE, (*keys, *self.accumulators.columns, FIRST, LAST, DUE), groups=keys, since=FIRST)


# Sessions from pieces: rows of one key that follow each other within a gap.
#
# A piece is a row, or several rows of one session already merged: ``__e`` is its first rowtime, ``__l`` its last
# (BIGINT µs). Two pieces belong together if one begins before the other's last rowtime + gap; at exactly that time a
# new session begins (`[first, last + gap)`, semantics 5).


@dataclass(frozen=True)
class Chains:
    """Sessions of the columns ``keys`` with a ``gap`` (µs)."""

    keys: tuple[str, ...]
    gap: int

    def numbered(self, pieces: Frame) -> Frame:
        """Return the pieces with the numbers of their sessions; one sort."""
        part = f"PARTITION BY {', '.join(self.keys)} " if self.keys else ""
        order = f"{part}ORDER BY {FIRST}, {LAST} ROWS BETWEEN UNBOUNDED PRECEDING AND"
        begins = f"{FIRST} >= max({LAST}) OVER ({order} 1 PRECEDING) + {self.gap}L"
        marked = pieces.selectExpr("*", f"CASE WHEN {begins} THEN 1L ELSE 0L END AS __b")
        return marked.selectExpr("*", f"sum(__b) OVER ({order} CURRENT ROW) AS {SESSION}").drop("__b")

    def ended(self, pieces: Frame) -> Frame:
        """Return numbered pieces that are due at the end of their session."""
        session = f"OVER (PARTITION BY {', '.join((*self.keys, SESSION))})"
        columns = [quoted(name) for name in pieces.columns if name != DUE]
        return pieces.selectExpr(*columns, f"max({LAST}) {session} + {self.gap}L AS {DUE}")

    def due(self, tick: Tick, node: Operator, before: int, bound: int) -> Frame | None:
        """Return the pieces due in (before, bound]; and only the times of the others of their keys.

        A piece is due at the end of its session as it was known; a later row may have moved that.
        """
        segments = tick.segments(node)
        mine = segments.overlapping(before, bound)
        if not mine:
            return None
        low, high = (passed(at, DUE) for at in (before, bound))
        pieces = segments.read(mine).where(f"{DUE} > {low} AND {DUE} <= {high}")
        later = segments.overlapping(bound, END)
        due = pieces.selectExpr("*", f"true AS {IS_DUE}")
        if not later:
            return due
        others = segments.read(later).where(f"{DUE} > {high}").select(*self.keys, FIRST, LAST, DUE)
        if self.keys:
            wanted = pieces.selectExpr(*(f"{key} AS __w{n}" for n, key in enumerate(self.keys))).distinct()
            same = " AND ".join(f"{key} <=> __w{n}" for n, key in enumerate(self.keys))
            others = others.joined(wanted, same, "left_semi")
        others = others.selectExpr("*", f"false AS {IS_DUE}")
        return due.unionByName(others, allowMissingColumns=True)
