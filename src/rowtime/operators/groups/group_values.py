"""GROUP BY on an ordered value: a group is complete once the value has moved on.

Semantics 5 and 6. The input is in stream order, and each closing key is a monotonic function of values whose marks are
known (`operators.order.ordered`) and perhaps of the rowtime. The key at the marks and the bound is the key's own clock:
no later row has an earlier key, so a group before it is complete. Its rowtime is that of its last row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from sqlglot import exp

from rowtime.core.columns import FIRST, LAST, ROWTIME
from rowtime.core.fields import UNSTORED
from rowtime.core.time import BEGINNING, END
from rowtime.frames.frame import Frame
from rowtime.operators.contract import NOTHING, Delta, Link, Shape, Tick
from rowtime.operators.contract.state import Kept, Route, Segment, StateNote
from rowtime.operators.groups.finished import COMPLETE, KEPT, Finished, with_failing
from rowtime.operators.groups.grouping import PartialTypes, RowGroups
from rowtime.operators.order.ordered import Ordered
from rowtime.operators.over.over_calls import RunningMark
from rowtime.operators.over.value_clocks import ByValues, Closer, ValueClocks, ValueControl
from rowtime.operators.rows.attempt import selected
from rowtime.operators.rows.collations import grouped
from rowtime.operators.rows.select import Item
from rowtime.sql.generate import to_spark


@dataclass(frozen=True)
class GroupClocks(ValueControl, PartialTypes):
    """The clocks of values, and the types of partial columns."""


@dataclass(frozen=True)
class GroupByValues(RowGroups, ByValues):
    """``GROUP BY keys``; ``closers`` are keys that follow ordered values; otherwise like `GroupBy`.

    Without closers only the end of the stream closes the groups (WITH UNBOUNDED STATE). ``stamp`` is over the closers
    and ascends with each. ``ordered``: rows come in the order of the rowtime.
    """

    keys: tuple[Item, ...]
    aggregates: tuple[Item, ...]
    items: tuple[Item, ...]
    closers: tuple[Closer, ...]
    gates: tuple[Ordered | RunningMark, ...] = field(metadata=UNSTORED)
    having: exp.Expr | None = None
    stamp: exp.Expr | None = None
    ordered: bool = True

    control: ClassVar = GroupClocks
    kind: ClassVar[str] = "group by"
    merges_writers: ClassVar[bool] = True
    computes: ClassVar[bool] = True
    promise: ClassVar[str] = "the first row of the open groups, if that is before the bound"
    reason: ClassVar[str] = "no open or future group can have its last row before it"

    def keeps(self) -> tuple[StateNote, ...]:
        """Return the groups of the values at the mark."""
        what = "partial results per group" if self.accumulators.splits else "the aggregated columns of each row"
        if not self.closers:
            return (self._state.noted(what, "the stream ends", "nothing"),)
        return (self._state.noted(what, "the closing value moves on", "values"),)

    def emits(self) -> Shape:
        """Return the select list, in the order in which groups become complete."""
        ways = {closer.key: "DESC" if closer.descending else "ASC" for closer in self.closers}
        first = [f"{self.keys[n].column.name} {way}" for n, way in ways.items()]
        others = [key.column.name for n, key in enumerate(self.keys) if n not in ways]
        return Shape(
            tuple(item.column for item in self.items),
            order=(ROWTIME, *first, *others),
            extra=tuple(self._key_names()),
            placed=False,
            single=True,
            # Within a tolerance a group may be complete before another one whose last row came earlier.
            released=self.ordered and all(gate.exact for gate in self.gates),
        )

    def link(self, n: int) -> Link:
        """Return the rows of the same keys."""
        return Link(self.same_keys()) if n == 0 else NOTHING

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Merge the new rows, and emit the groups whose clock has moved past them."""
        return super().step(tick, [self.computing(tick, deltas[0])])

    # -- groups -----------------------------------------------------------------------

    @property
    def _clocks(self) -> ValueClocks:
        return ValueClocks(tuple(self._key_names()), self.closers, self.gates)

    def _close(self, tick: Tick, delta: Delta, past: Sequence[str]) -> Sequence[Segment]:
        """Emit what is complete and keep the rest."""
        complete = " OR ".join(past)
        segments = tick.segments(self)
        kept = segments.overlapping(BEGINNING, END)
        rows = self._together(tick, delta, kept)
        open_rows: Sequence[Segment] = ()
        if self._merges(tick):
            types = self._types(tick)
            groups = self._merged(rows, types).selectExpr("*", *self.accumulators.finals(types))
        else:
            open_rows = self._state.write(tick, self, rows.where(f"NOT ({complete})"))
            groups = self._aggregated(tick, rows.where(complete))
        tick.describe(self, "aggregate, close groups")
        stamp = f"timestamp_micros({LAST})" if self.stamp is None else f"CAST({to_spark(self.stamp)} AS TIMESTAMP)"
        written = Finished(self, complete, self.items, stamp, self._routes(tick)).write(tick, groups)
        segments.forget(END)
        left = [*open_rows, *written.get("state", ())]
        segments.add(left)
        tick.remember(self, since=min((segment.lowest for segment in left), default=END))
        return written["complete"]

    def _keep(self, tick: Tick, delta: Delta) -> None:
        rows = self._together(tick, delta, ())
        if self._merges(tick):
            rows = self._merged(rows, self._types(tick))
        tick.describe(self, "keep partial results" if self.accumulators.splits else "keep rows of open groups")
        written = self._state.keep(tick, self, rows)
        tick.remember(self, since=min([tick.control(self).since, *(segment.lowest for segment in written)]))
        if not tick.trying:
            splits, types = self.accumulators.splits, self._types(tick)
            self._state.compact(
                tick, self, "partial results", lambda kept: self._merged(kept, types) if splits else kept
            )

    def _together(self, tick: Tick, delta: Delta, kept: Sequence[Segment]) -> Frame:
        parts = []
        if delta.rows is not None:
            keys = [key.sql for key in self.keys]
            seeds = self.accumulators.seeds(self._types(tick, delta.rows))
            times = (f"unix_micros({ROWTIME}) AS {name}" for name in (LAST, FIRST))
            parts.append(selected(tick, delta.rows, [*keys, *seeds, *times]))
        if kept:
            parts.append(tick.segments(self).read(kept))
        return parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])

    def _merged(self, rows: Frame, types: Mapping[str, str]) -> Frame:
        return self._grouped(rows, self.accumulators.merges(types))

    def _aggregated(self, tick: Tick, rows: Frame) -> Frame:
        if tick.trying:
            return self.accumulators.exact(rows, self._key_names(), _TIMES, self._types(tick))
        return self.accumulators.of_rows(rows, self._key_names(), _TIMES)

    def _grouped(self, rows: Frame, aggregates: Sequence[str]) -> Frame:
        return grouped(rows, self._key_names(), [*aggregates, *_TIMES])

    def _routes(self, tick: Tick) -> dict[str, Route]:
        shape = self.emits()
        places = self.accumulators.places(self.items)
        complete = dict(zip(shape.names, places, strict=True)) | {name: name for name in shape.internals}
        routes = {"complete": Route(COMPLETE, complete, LAST)}
        if self.accumulators.splits:
            routes["state"] = self._state.route(KEPT)
        return with_failing(tick, self, routes, dict(zip(shape.names, places, strict=True)))

    @property
    def _state(self) -> Kept:
        keys = (*self._key_names(),)
        return Kept(FIRST, (*keys, *self.accumulators.columns, LAST, FIRST), groups=keys, lasting=True)


_TIMES = (f"max({LAST}) AS {LAST}", f"min({FIRST}) AS {FIRST}")
