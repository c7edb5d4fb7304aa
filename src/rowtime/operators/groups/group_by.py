"""GROUP BY on a stream: one row per group, as soon as no row of the group can come.

Semantics 5. A group is complete when the input's bound has reached its end (`expr.group_end`). Rows are processed at
once, in any order: new rows and kept partial results go through one aggregation; complete groups are emitted and the
others kept. Kept partials store their end, so closing reads only the segments that contain a due one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from sqlglot import exp

from rowtime.core.clock import Clocks, least
from rowtime.core.columns import DUE, ROWTIME, SEEN
from rowtime.core.fields import LATER
from rowtime.core.time import BEGINNING
from rowtime.frames.frame import Frame
from rowtime.operators.contract import (
    NOTHING,
    ByKeys,
    Closed,
    Column,
    Delta,
    Distribution,
    Link,
    Shape,
    Tick,
    Unary,
    passed,
)
from rowtime.operators.contract.state import Kept, Route, Segment, StateNote
from rowtime.operators.groups.finished import COMPLETE, KEPT, Finished, with_failing
from rowtime.operators.groups.grouping import PartialTypes, RowGroups
from rowtime.operators.rows.attempt import selected
from rowtime.operators.rows.collations import grouped
from rowtime.operators.rows.ends import Ends, Lead
from rowtime.operators.rows.select import Item


@dataclass(frozen=True)
class ClosedGroups(Closed, PartialTypes):
    """Which groups have been emitted; times in µs UTC, which only rise.

    ``closed``: the bound up to which groups have ended. ``stamp``: the rowtime of a row at that bound; ``None`` before
    the first tick. ``next``: the end of the group at that bound.
    """

    stamp: int | None = None
    next: int = BEGINNING


@dataclass(frozen=True)
class GroupBy(RowGroups, Unary):
    """``GROUP BY keys`` with ``aggregates``; ``items`` and ``having`` are over both by name.

    Keys are named ``__k0``, …, aggregates ``__a0``, …; ``closers`` are, under the names of keys, monotonic functions of
    the rowtime: the key itself, or if a row is in several groups (``many``) its clock: no later row's key is below it.
    ``stamp``: the ``AS ROWTIME`` of the select list, else the end of the group. ``lead``, ``sort`` and ``directions``:
    ORDER BY: its first expression unless that is the end of a group, and the order of groups with one rowtime.
    ``anew``: release 0.1 gave the groups another rowtime, so its checkpoints cannot continue.
    """

    keys: tuple[Item, ...]
    aggregates: tuple[Item, ...]
    items: tuple[Item, ...]
    closers: tuple[Item, ...]
    having: exp.Expr | None = None
    stamp: exp.Expr | None = None
    many: bool = False
    lead: Lead | None = None
    sort: tuple[Item, ...] = ()
    directions: tuple[str, ...] = ()
    anew: bool = field(default=False, metadata=LATER)

    control: ClassVar = ClosedGroups
    kind: ClassVar[str] = "group by"
    merges_writers: ClassVar[bool] = True
    computes: ClassVar[bool] = True
    promise: ClassVar[str] = "the stamp of the group that contains the bound of its input"
    reason: ClassVar[str] = "the next row is of that group or of a later one, and its rowtime is the end of its group"

    def __post_init__(self) -> None:
        """Set ``anew``."""
        object.__setattr__(self, "anew", self._ends.restamped)

    def keeps(self) -> tuple[StateNote, ...]:
        """Return partial results, or rows if an aggregate has no partial form."""
        what = "partial results per group" if self.accumulators.splits else "the aggregated columns of each row"
        return (self._state.noted(what, "the bound reaches the end of the group"),)

    def emits(self) -> Shape:
        """Return the select list; rows are released, ordered by the end of the group and the keys."""
        keys = tuple(key.column.name for key in self.keys)
        columns, order, released = tuple(item.column for item in self.items), (DUE, ROWTIME, *keys), True
        extra = (DUE, *keys)
        if self.sort or self.lead is not None:
            ways = tuple(f"{item.column.name} {way}" for item, way in zip(self.sort, self.directions, strict=True))
            order, extra = (ROWTIME, *ways, *keys), (*(item.column.name for item in self.sort), *keys)
            # Facts about the columns' order were about the order of the groups.
            columns = tuple(Column(column.name, column.type) for column in columns)
            released = self.lead is None and self.stamp is None and len(self.closers) == 1
        return Shape(columns, order=order, extra=extra, placed=False, single=True, released=released)

    def promises(self, clocks: Sequence[Clocks], control: ClosedGroups) -> Clocks:
        """Return the stamp of the group that contains the bound, evaluated there by ``step``."""
        return {"": least(clocks[0].values()) if control.stamp is None else control.stamp}

    def link(self, n: int) -> Link:
        """Return the rows of the same keys."""
        return Link(self.same_keys()) if n == 0 else NOTHING

    def files_are_results(self, *, ordered: bool, at_once: bool) -> bool:
        """Return True for groups that go to the directory unchanged; they are written in any order."""
        return at_once and not ordered

    def in_order(self, lead: Lead | None, keys: tuple[Item, ...], ways: tuple[str, ...]) -> GroupBy:
        """Return the operator with its groups in the order asked for."""
        return replace(self, lead=lead, sort=keys, directions=ways)

    def gives_groups(self) -> bool:
        """Return True, unless an order of them is required."""
        return not (self.sort or self.lead)

    def reads_once(self) -> bool:
        """Return True if rows are merged at once: otherwise those of open groups are kept as they are."""
        return self.accumulators.splits

    def distribution(self) -> Distribution | ByKeys:
        """Return its keys."""
        keys = (*self._key_names(),)
        return ByKeys((keys,), {self._state.name: keys}) if keys else Distribution.SINGLE

    def combined(self, tick: Tick, delta: Delta) -> Delta:
        """Return the columns that are kept of each row: partial results, or those that the aggregates use."""
        delta = self.computing(tick, delta)
        if delta.rows is None:
            return delta
        rows = self._seeded(tick, delta)
        if self._merges(tick):
            merges = self.accumulators.merges(self._types(tick))
            rows = grouped(rows, self._key_names(), [*merges, *self._seen()])
        return replace(delta, rows=rows, partial=True)

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Aggregate new rows with the due kept ones; keep the rest."""
        delta, control = deltas[0], tick.control(self)
        delta = delta if delta.partial else self.computing(tick, delta)
        bound = max(least(delta.clocks.values()), control.closed)
        segments = tick.segments(self)
        # Between two ends of groups no kept row can be due, whatever times its segment spans.
        reached = control.next <= bound
        kept = reached and segments.overlapping(control.closed, bound)
        due = bool(kept) or (delta.rows is not None and self._ends.end_at(tick, delta.lowest) <= bound)
        done: tuple[Segment, ...] = ()
        if due:
            done = self._close(tick, delta, bound)
        elif delta.rows is not None:
            self._keep(tick, delta)
        control = tick.remember(
            self, closed=bound, stamp=self._ends.stamp_at(tick, bound), next=self._ends.end_at(tick, bound)
        )
        segments.forget(bound)
        if not tick.trying:
            self._state.compact(tick, self, "partial results", lambda rows: self._compacted(tick, rows))
        clocks = self.promises([delta.clocks], control)
        if tick.adopted_as(self) is not None:
            return Delta(None, clocks, files=done)
        rows = tick.segments(self, "complete").read(done) if done else None
        return Delta(rows, clocks)

    # -- complete groups --------------------------------------------------------------

    @property
    def _ends(self) -> Ends:
        return Ends(self.closers, self.stamp, self.lead)

    def _close(self, tick: Tick, delta: Delta, bound: int) -> tuple[Segment, ...]:
        """Emit what is complete at ``bound`` and keep the rest."""
        kept = tick.segments(self).overlapping(tick.control(self).closed, bound)
        groups = self._groups(tick, delta, kept, bound)
        complete = f"{DUE} <= {passed(bound, DUE)}"
        if not self._merges(tick):
            self._hold_rows(tick, delta, bound)
            groups = self._aggregated(tick, groups.where(complete))
        tick.describe(self, "aggregate, close groups")
        items, stamp = (*self.items, *self.sort), self._ends.stamp_text
        written = Finished(self, complete, items, stamp, self._routes(tick)).write(tick, groups)
        tick.segments(self).add(written.get("state", ()))
        return tuple(written["complete"])

    def _routes(self, tick: Tick) -> dict[str, Route]:
        shape, adopted = self.emits(), tick.adopted_as(self)
        names = [*shape.names, *(item.column.name for item in self.sort)]
        complete = dict(zip(names, self.accumulators.places((*self.items, *self.sort)), strict=True))
        shown = {name: complete[name] for name in shape.names}
        if adopted is None:
            complete = {name: name for name in shape.internals} | complete
        else:
            complete = {name: complete.get(own, own) for name, own in adopted.items()}
        routes = {"complete": Route(COMPLETE, complete, DUE)}
        if self.accumulators.splits:
            routes["state"] = self._state.route(KEPT)
        return with_failing(tick, self, routes, shown)

    def _hold_rows(self, tick: Tick, delta: Delta, bound: int) -> None:
        if delta.rows is None or (not self.many and self._ends.end_at(tick, delta.highest) <= bound):
            return
        rows = self._ended(self._seeded(tick, delta)).where(f"{DUE} > {bound}L")
        tick.describe(self, "keep rows of open groups")
        self._state.keep(tick, self, rows)

    def _aggregated(self, tick: Tick, rows: Frame) -> Frame:
        if tick.trying:
            types = self._types(tick)
            return self._ended(self.accumulators.exact(rows, self._key_names(), self._seen(), types))
        return self._ended(self.accumulators.of_rows(rows, self._key_names(), self._seen()))

    def _ended(self, rows: Frame) -> Frame:
        return rows.selectExpr("*", f"{self._ends.end_text} AS {DUE}")

    def _groups(self, tick: Tick, delta: Delta, kept: Sequence[Segment], bound: int) -> Frame:
        segments, control = tick.segments(self), tick.control(self)
        parts = [] if delta.rows is None else [self._seeded(tick, delta)]
        if kept:
            low, high = (passed(at, DUE) for at in (control.closed, bound))
            due = f"{DUE} > {low} AND {DUE} <= {high}"
            parts.append(segments.read(kept).where(due).drop(DUE))
        rows = parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])
        types = self._types(tick, delta.rows)
        if not self._merges(tick):
            return self._ended(rows)
        return self._merged(rows, types, self.accumulators.finals(types))

    def _keep(self, tick: Tick, delta: Delta) -> None:
        seeded = self._seeded(tick, delta)
        merged = self._merged(seeded, self._types(tick, delta.rows)) if self._merges(tick) else self._ended(seeded)
        tick.describe(self, "aggregate, keep partial results")
        self._state.keep(tick, self, merged)

    def _compacted(self, tick: Tick, rows: Frame) -> Frame:
        """Return kept rows merged and sorted by their ends."""
        rows = rows.where(f"{DUE} > {tick.control(self).closed}L").drop(DUE)
        return self._merged(rows, self._types(tick)).sortWithinPartitions(DUE)

    # -- partial results --------------------------------------------------------------

    def _seen(self) -> list[str]:
        return [f"max({SEEN}) AS {SEEN}"] if self._ends.seen else []

    @property
    def _state(self) -> Kept:
        seen = [SEEN] if self._ends.seen else []
        keys = (*self._key_names(),)
        return Kept(DUE, (*keys, *self.accumulators.columns, *seen, DUE), groups=keys)

    def _seeded(self, tick: Tick, delta: Delta) -> Frame:
        assert delta.rows is not None
        if delta.partial:
            return delta.rows
        keys = [key.sql for key in self.keys]
        seen = [f"{ROWTIME} AS {SEEN}"] if self._ends.seen else []
        return selected(tick, delta.rows, [*keys, *self.accumulators.seeds(self._types(tick, delta.rows)), *seen])

    def _merged(self, rows: Frame, types: Mapping[str, str], finals: Sequence[str] = ()) -> Frame:
        if not self.accumulators.splits:
            return self._ended(rows)
        merged = grouped(rows, self._key_names(), [*self.accumulators.merges(types), *self._seen()])
        return self._ended(merged).selectExpr("*", *finals)
