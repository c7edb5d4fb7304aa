"""Clip: each event ends where a later one of another stream starts, if a condition holds of both (semantics 9.6).

Below the bound no start can come, so a cut there is final, and is dropped together with the event that made it. Kept
are the open events, and the starts ahead of the bound. EMIT CHANGES uses an anti-join, in which each start covers
everything after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from sqlglot import exp

from rowtime.core.columns import ASKED_AT, ASKED_UPTO, DUE, ROUTE, ROWTIME, STOP, WEIGHT
from rowtime.core.fields import LATER
from rowtime.core.time import BEGINNING, END
from rowtime.expr.conditions import col, conjuncts
from rowtime.frames.frame import Frame
from rowtime.operators.contract import Binary, Delta, Link, Operator, Shape, Tick, UpTo, named
from rowtime.operators.contract.state import StateNote
from rowtime.operators.contract.texts import passed
from rowtime.operators.events.anti_join import SpeculativeAntiJoin
from rowtime.operators.rows.conditions import joined_if, whole
from rowtime.operators.rows.lifetimes import (
    ALWAYS,
    BEGINS,
    WeightedLog,
    advanced,
    derived,
    derived_columns,
    due,
    netted,
    routed,
)
from rowtime.sql.generate import quoted, to_spark


@dataclass(frozen=True)
class Clip(Binary):
    """Events of ``left``, each cut at the first start of ``right`` above its own with the same values of ``keys``.

    ``keys``: pairs of columns, of the left and of the right; NULLs are equal, as in GROUP BY. ``where``: a further
    condition on both, over the columns of the left and those of the right under their names in ``asked``.
    """

    keys: tuple[tuple[str, str], ...] = ()
    where: exp.Expr | None = field(default=None, metadata=LATER)
    asked: tuple[tuple[str, str], ...] = field(default=(), metadata=LATER)

    control: ClassVar = UpTo
    kind: ClassVar[str] = "clip"
    keeps_versions: ClassVar[bool] = True

    def keeps(self) -> tuple[StateNote, ...]:
        """Return the events that may still be cut, and those that may still cut."""
        left = WeightedLog.kept(*self._names, "__ls", "__le", name="left")
        right = WeightedLog.kept(*self._cutting, "__rs", name="right")
        return (
            left.noted("events that are open", "they are cut, or the bound has passed their end"),
            right.noted("starts ahead of the bound", "the bound passes them"),
        )

    def emits(self) -> Shape:
        """Return the columns of the left side."""
        return derived(Shape(self.left.emits().columns))

    def link(self, n: int) -> Link:
        """Return the event, and the starts inside its remaining life."""
        if n == 0:
            return Link(self.passed_on(n, ROWTIME), narrows="own")
        return Link(named(self.keys), meets=f"{BEGINS} > {ASKED_AT} AND {BEGINS} <= {ASKED_UPTO}", narrows="own")

    def opens_events(self) -> bool:
        """Return True as for the left side: an event lasts until another cuts it."""
        return self.left.opens_events()

    def on_versions(self, below: Sequence[Operator]) -> Operator:
        """Return the equivalent anti-join, with names of its own for the columns of the right side."""
        left, right = (side.emits().names for side in below)
        named = {name: f"__r{number}" for number, name in enumerate(right)}
        same = [exp.NullSafeEQ(this=col(one), expression=col(named[other])) for one, other in self.keys]
        where = [] if self.where is None else [_under_names(self.where, {to: named[name] for name, to in self.asked})]
        on = exp.and_(*same, *where, copy=False) if same or where else None
        return SpeculativeClip(self.name, below[0], below[1], (left, tuple(named.values())), on)

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Cut events that start below the bound, at starts below it."""
        clocks, before, bound = advanced(tick, self, deltas)
        left, right = WeightedLog(tick, self, "left"), WeightedLog(tick, self, "right")
        was = left.between(before, END)
        self._take(before, (left, right), was, deltas)
        events = left.between(before, END)
        rows = None
        if bound > before and events is not None:
            rows = self._results(tick, (was, events, right.between(before, END)), (before, bound))
        tick.remember(self, bound=bound)
        left.forget(bound, [*self._names, "__ls", "__le"])
        right.forget(bound, [*self._cutting, "__rs"])
        return Delta(rows, clocks)

    # -- input ------------------------------------------------------------------------

    def _take(self, before: int, kept: Sequence[WeightedLog], was: Frame | None, deltas: Sequence[Delta]) -> None:
        """Keep new rows; for events that began below the bound, only a new end of an open one counts."""
        events, cuts = (delta.rows for delta in deltas)
        if events is not None:
            rows = events.selectExpr(*self._quoted, f"{BEGINS} AS __ls", f"{STOP} AS __le", WEIGHT, due(STOP))
            later = f"__ls >= {passed(before, '__ls')}"
            if before > BEGINNING:
                old = rows.where(f"NOT ({later})")
                rows = rows.where(later) if was is None else rows.where(later).unionByName(self._open_of(old, was))
            kept[0].add(rows)
        if cuts is not None:
            names = [*(name for _, name in self.keys), *(name for name, _ in self.asked)]
            named = [f"{quoted(name)} AS {to}" for name, to in zip(names, self._cutting, strict=True)]
            rows = cuts.selectExpr(*named, f"{BEGINS} AS __rs", WEIGHT, f"{BEGINS} + 1 AS {DUE}")
            kept[1].add(rows.where(f"__rs >= {passed(before, '__rs')}") if before > BEGINNING else rows)

    def _open_of(self, rows: Frame, was: Frame) -> Frame:
        identity = [*self._names, "__ls"]
        ended = netted(was, identity).selectExpr(*(f"{quoted(name)} AS __o{n}" for n, name in enumerate(identity)))
        same = " AND ".join(f"{quoted(name)} <=> __o{n}" for n, name in enumerate(identity))
        return rows.joined(ended, same, "left_semi")

    # -- output -----------------------------------------------------------------------

    def _results(self, tick: Tick, kept: tuple[Frame | None, Frame, Frame | None], span: tuple[int, int]) -> Frame:
        """Return events up to the bound, minus those emitted as open before; drop the cut ones."""
        was, events, cuts = kept
        before, bound = span
        cut = self._cut(tick, events.where(f"__ls < {passed(bound, '__ls')}"), cuts, bound)
        until = f"CASE WHEN __c IS NOT NULL THEN __c WHEN __le < {passed(bound, '__le')} THEN __le ELSE {END}L END"
        now = cut.selectExpr(*self._quoted, "__ls", f"{until} AS {STOP}", WEIGHT)
        if was is not None:
            open_ = was.where(f"__ls < {passed(before, '__ls')}")
            now = now.unionByName(
                open_.selectExpr(*self._quoted, "__ls", f"{END}L AS {STOP}", f"-{WEIGHT} AS {WEIGHT}")
            )
        names = [*self._names, "__ls"]
        results = netted(now, [*names, STOP]).selectExpr(
            *map(quoted, names), "0L AS __le", STOP, WEIGHT, f"{ALWAYS}L AS {DUE}", f"0 AS {ROUTE}"
        )
        gone = cut.where("__c IS NOT NULL").selectExpr(
            *map(quoted, names), "__le", f"0L AS {STOP}", f"-{WEIGHT} AS {WEIGHT}", due("__le"), f"1 AS {ROUTE}"
        )
        tick.describe(self, "cut events")
        routes = {"merged": (0, [*names, STOP, WEIGHT, DUE]), "left": (1, [*names, "__le", WEIGHT, DUE])}
        merged = routed(tick, self, results.unionByName(gone), routes)["merged"]
        rows = merged if merged is not None else results.where("false")
        return rows.selectExpr(*self._quoted, *derived_columns("__ls", STOP, WEIGHT))

    def _cut(self, tick: Tick, events: Frame, cuts: Frame | None, bound: int) -> Frame:
        """Return each event once, with ``__c``: the first start that cuts it, or NULL."""
        identity = [*self._names, "__ls", "__le"]
        alive = netted(events.drop(DUE), identity)
        if cuts is None:
            return alive.selectExpr("*", "CAST(NULL AS BIGINT) AS __c")
        starts = netted(cuts.drop(DUE).where(f"__rs < {passed(bound, '__rs')}"), [*self._cutting, "__rs"]).drop(WEIGHT)
        same = [f"{quoted(name)} <=> {to}" for (name, _), to in zip(self.keys, self._cutting, strict=False)]
        if self.where is not None and not tick.trying:
            same.append(whole(to_spark(self.where)))
        cutting = " AND ".join([*same, "__rs > __ls", "__rs < __le"])
        if self.where is not None and tick.trying:
            parts = [(to_spark(part), "") for part in conjuncts(self.where)]
            met = joined_if(alive, starts, cutting, parts, "left")
        else:
            met = alive.joined(starts, cutting, "left")
        return met.grouped([*map(quoted, [*identity, WEIGHT])], ["min(__rs) AS __c"])

    @property
    def _names(self) -> tuple[str, ...]:
        return self.left.emits().names

    @property
    def _quoted(self) -> list[str]:
        return [quoted(name) for name in self._names]

    @property
    def _cutting(self) -> list[str]:
        """Return the names of the right side's columns that must be equal, or that the condition reads."""
        return [*(f"__k{n}" for n in range(len(self.keys))), *(to for _, to in self.asked)]


def _under_names(condition: exp.Expr, names: Mapping[str, str]) -> exp.Expr:
    """Return a condition with other names for some of its columns."""
    renamed = condition.copy()
    for column in renamed.find_all(exp.Column):
        column.this.set("this", names.get(column.name, column.name))
    return renamed


@dataclass(frozen=True)
class SpeculativeClip(SpeculativeAntiJoin):
    """A `Clip` of versions of events; ``on``: which right events cut which left ones."""

    kind: ClassVar[str] = "speculative clip"
    covering: ClassVar[str] = f"{SpeculativeAntiJoin.covering} AND __rs > __ls"

    def keeps(self) -> tuple[StateNote, ...]:
        """Return the events that may still be cut, and the starts that cut them."""
        return (
            self._of_side(0).noted("left events", "the bound has passed their end"),
            self._of_side(1).noted("starts of right events", "no left event that began earlier is kept"),
        )

    def _side(self, n: int, rows: Frame, more: Sequence[str] = ()) -> Frame:
        rows = super()._side(n, rows, more)
        if n == 0:
            return rows
        return rows.selectExpr(*self.names[1], "__rs", f"{END}L AS __re", WEIGHT, *more, f"__rs + 1 AS {DUE}")
