"""GROUP BY SNAPSHOT(): the events alive between two successive changes of a group (semantics 9.6).

A new snapshot begins at every start and every end. Its counts and sums are running sums over the starts and ends, cut
at the bound: snapshots below it are final, and the sums at the bound are kept per group. So a tick costs its own events
and the open groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import ClassVar

from sqlglot import exp

from rowtime.core.columns import DUE, ENDING, OLD, ROUTE, ROWTIME, SNAPSHOT_AT, STARTING, STOP, WEIGHT
from rowtime.core.time import BEGINNING, END
from rowtime.frames.frame import Frame
from rowtime.frames.kinds import DECIMAL
from rowtime.frames.typed import kind_of_text
from rowtime.operators.contract import Delta, Operator, Shape, Tick, UpTo, passed, quoted
from rowtime.operators.contract.state import Kept, Route, Segment, StateNote
from rowtime.operators.events.event_groups import EventGroups
from rowtime.operators.events.failing_events import fitting, refused, tried
from rowtime.operators.events.speculative_groups import SpeculativeGroups
from rowtime.operators.groups.finished import in_words
from rowtime.operators.rows.attempt import selected
from rowtime.operators.rows.collations import grouped, in_bytes, restored
from rowtime.operators.rows.exact_sums import as_interval, average_type, limbs, may_be_beyond, whole
from rowtime.operators.rows.exact_sums import average as quotient
from rowtime.operators.rows.lifetimes import ALWAYS, BEGINS, WeightedLog, derived_columns, instant, netted
from rowtime.operators.rows.select import Item
from rowtime.sql.generate import to_spark

AHEAD, ENDED, OPENED, CLOSED, LEFT_OUT = range(5)
"""The state of a time, as a route.

It is ahead of the bound; the snapshot that begins there has ended; it lasts; the snapshot before it has ended; or that
one is excluded from the result by HAVING.
"""


@dataclass(frozen=True)
class SnapshotTypes(UpTo):
    """``types``: the Spark type of each aggregate's sum, empty if it only counts; from the first rows on.

    The prefix "exact " marks a sum that is kept in limbs (`RunningSums`), permanently. ``means``: the type of each
    average of decimals.
    """

    types: Sequence[str] = field(default_factory=list)
    means: Sequence[str] = field(default_factory=list)


@dataclass(frozen=True)
class Snapshot(EventGroups):
    """Counts and sums ``aggregates`` of each snapshot and ``keys``; ``items`` and ``having`` are over both by name."""

    control: ClassVar = SnapshotTypes
    kind: ClassVar[str] = "snapshot"
    writes_final: ClassVar[bool] = True

    def keeps(self) -> tuple[StateNote, ...]:
        """Return the times ahead of the bound, and the sums at it."""
        ahead, alive = self._kept("state", ENDING), self._kept("open", WEIGHT)
        return (
            ahead.noted("starts and ends ahead of the bound", "the bound passes them"),
            alive.noted("the sums of each group in which events are alive", "they have ended"),
        )

    def _kept(self, name: str, *more: str) -> Kept:
        every, some = RunningSums.declared(self.aggregates)
        columns = (*self.key_names, SNAPSHOT_AT, STARTING, *every, *more, DUE)
        counts = (WEIGHT,) if WEIGHT in more else (STARTING, ENDING)
        return Kept(DUE, columns, name, tuple(some), counts=counts)

    def emits(self) -> Shape:
        """Return the select list; a snapshot has no end until the next change of its group."""
        return replace(super().emits(), retracts="open")

    def on_versions(self, below: Sequence[Operator]) -> Operator:
        """Return the operator for the snapshots of each version."""
        return SpeculativeGroups(self.name, below[0], self.keys, self.aggregates, self.items, having=self.having)

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Add the new starts and ends to the due ones, and emit the snapshots below the bound."""
        delta, control = fitting(tick, self, deltas[0]), tick.control(self)
        ahead, sums = WeightedLog(tick, self), WeightedLog(tick, self, "open")
        before = control.bound
        clocks = self.promises([delta.clocks], control)
        bound = max(before, clocks[""])
        if delta.rows is not None and not control.types:
            of_rows = RunningSums.of(self.aggregates, delta.rows)
            control = tick.remember(self, types=list(of_rows.kinds), means=list(of_rows.means))
        running = RunningSums(self.aggregates, control.types, control.means)
        due = ahead.between(before, bound) if bound > before else None
        kept = sums.between(BEGINNING, END)
        roomy = running.roomy(trying=tick.trying)
        if roomy != running:  # all kept rows are written again
            old = ahead.between(before, END), kept
            due, kept = (None if rows is None else running.moved(rows, roomy) for rows in old)
            running = roomy
            tick.remember(self, types=list(roomy.kinds))
            for log in (ahead, sums):
                log.segments.forget(END)
        parts = [] if delta.rows is None else [self._points(tick, delta.rows, running)]
        parts += [] if due is None else [due.drop(DUE).selectExpr("*", f"0 AS {OLD}")]
        rows, final, columns = None, tuple[Segment, ...](), [*self.key_names, SNAPSHOT_AT, STARTING, *running.columns]
        if parts:
            if kept is not None:
                own = [*self.key_names, SNAPSHOT_AT, STARTING, f"0L AS {ENDING}", *running.columns]
                parts.append(netted(kept, columns).selectExpr(*own, f"1 AS {OLD}"))
            rows, final = self._advance(tick, parts, running, bound)
        tick.remember(self, bound=bound)
        ahead.segments.forget(bound)
        sums.forget(bound, columns)
        return Delta(rows, clocks, final=final)

    # -- starts and ends --------------------------------------------------------------

    def _points(self, tick: Tick, rows: Frame, sums: RunningSums) -> Frame:
        """Return each event as its start and, if it has one, its end."""
        keys = [key.sql for key in self.keys]
        starts = (BEGINS, WEIGHT, "0L", WEIGHT)
        ends = (STOP, "0L", WEIGHT, f"-{WEIGHT}")
        parts = []
        for part, (at, starting, ending, weight) in ((rows, starts), (rows.where(f"{STOP} < {END}L"), ends)):
            values = [f"{at} AS {SNAPSHOT_AT}", f"{starting} AS {STARTING}", f"{ending} AS {ENDING}"]
            parts.append(selected(tick, part, [*keys, *values, *sums.values(weight), f"0 AS {OLD}"]))
        return parts[0].unionByName(parts[1])

    # -- snapshots --------------------------------------------------------------------

    def _advance(
        self, tick: Tick, parts: Sequence[Frame], running: RunningSums, bound: int
    ) -> tuple[Frame | None, tuple[Segment, ...]]:
        """Return new or changed events, and the final ones if a sink takes them over."""
        adopted = None if tick.trying else tick.adopted_as(self)
        sums, keys = running.columns, self.key_names
        changes = self._changes(reduce(lambda one, other: one.unionByName(other), parts), sums, bound)
        ended = {c: c for c in (*keys, SNAPSHOT_AT, *sums)} | {STOP: "__next"}
        if adopted is not None:
            changes = self._with_ended(changes, running, adopted)
            ended = {name: f"__final{n}" for n, name in enumerate(adopted)}
        kept = {c: c for c in (*keys, SNAPSHOT_AT, STARTING, *sums, DUE)}
        routes = {
            "complete": Route(ENDED, ended, DUE, more=(CLOSED,)),
            "merged": Route(OPENED, {c: c for c in (*keys, SNAPSHOT_AT, WEIGHT, *sums)}, DUE, more=(CLOSED, LEFT_OUT)),
            "open": Route(OPENED, {**kept, WEIGHT: WEIGHT}, DUE, more=(CLOSED, LEFT_OUT)),
            "state": Route(AHEAD, {**kept, ENDING: ENDING}, DUE),
        }
        tick.describe(self, "snapshots up to the bound")
        written = tick.write(self, changes, routes)
        for what in ("state", "open"):
            tick.segments(self, what).add(written[what])
        missing = {"complete": f"1L AS {WEIGHT}", "merged": f"{END}L AS {STOP}"}
        unpublished = {
            what: written[what] for what in missing if written[what] and (what == "merged" or adopted is None)
        }
        rows = [
            tick.segments(self, what).read(files).selectExpr("*", missing[what]) for what, files in unpublished.items()
        ]
        events = reduce(lambda one, other: one.unionByName(other), rows) if rows else None
        final = () if adopted is None else tuple(written["complete"])
        return None if events is None else self._results(tick, events, running), final

    def _with_ended(self, changes: Frame, running: RunningSums, adopted: Mapping[str, str]) -> Frame:
        """Return changes in which snapshots that have ended also have the columns of the adopted file."""
        kept = {name: f"__kept{n}" for n, name in enumerate(changes.columns)}
        rows = changes.selectExpr("*", f"{ROUTE} IN ({ENDED}, {CLOSED}) AS __over", *running.finals())
        # Nothing is computed for the others: it might fail.
        named = [f"{name} AS {other}" for name, other in kept.items() if name != ROUTE]
        items = [f"IF(__over, {to_spark(i.expression)}, NULL) AS {quoted(i.column.name)}" for i in self.items]
        route = ROUTE
        if self.having is not None:
            left_out = f"__over AND NOT coalesce({to_spark(self.having)}, false)"
            route = f"IF({left_out}, IF({ROUTE} = {CLOSED}, {LEFT_OUT}, NULL), {ROUTE}) AS {ROUTE}"
        events = rows.selectExpr(*named, route, *items, f"{instant(SNAPSHOT_AT)} AS {ROWTIME}", f"__next AS {STOP}")
        own = [f"{other} AS {name}" for name, other in kept.items() if name != ROUTE]
        values = {ROWTIME: ROWTIME, STOP: instant(STOP)}
        final = [f"{values.get(of, quoted(of))} AS __final{n}" for n, of in enumerate(adopted.values())]
        return events.where(f"{ROUTE} IS NOT NULL").selectExpr(*own, ROUTE, *final)

    def _changes(self, points: Frame, sums: Sequence[str], bound: int) -> Frame:
        """Return each time of a group, with the sums from it on, the next time, and the state of the time (route)."""
        keys = self.key_names
        totals = [*(f"sum({name}) AS {name}" for name in (STARTING, ENDING, *sums)), f"max({OLD}) AS {OLD}"]
        points, back = in_bytes(points, keys)
        times = points.grouped([*keys, SNAPSHOT_AT], totals).where(f"{STARTING} <> 0 OR {ENDING} <> 0")
        if back:  # of equal texts, the least of those that begin or end there
            times = grouped(restored(times, back), [*keys, SNAPSHOT_AT], totals)
        times = times.selectExpr("*", f"{SNAPSHOT_AT} < {passed(bound, SNAPSHOT_AT)} AS __due")
        by = ", ".join([*keys, "__due"])
        running = f"OVER (PARTITION BY {by} ORDER BY {SNAPSHOT_AT} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
        so_far = [f"sum({name}) {running} AS __r{name}" for name in sums]
        following = f"lead({SNAPSHOT_AT}) OVER (PARTITION BY {by} ORDER BY {SNAPSHOT_AT}) AS __next"
        times = times.selectExpr("*", f"sum({STARTING} - {ENDING}) {running} AS __alive", *so_far, following)
        route = (
            f"CASE WHEN NOT __due THEN {AHEAD} WHEN {OLD} = 1 THEN IF(__next IS NULL, NULL, {CLOSED}) "
            f"WHEN __alive > 0 THEN IF(__next IS NULL, {OPENED}, {ENDED}) END AS {ROUTE}"
        )
        values = {STARTING: "__alive", **{name: f"__r{name}" for name in sums}}
        return times.selectExpr(
            *keys,
            SNAPSHOT_AT,
            "__next",
            ENDING,
            *(f"IF(__due, {value}, {name}) AS {name}" for name, value in values.items()),
            f"IF({OLD} = 1, -1L, 1L) AS {WEIGHT}",
            f"IF(__due, {ALWAYS}L, {SNAPSHOT_AT} + 1) AS {DUE}",
            route,
        ).where(f"{ROUTE} IS NOT NULL")

    def _results(self, tick: Tick, rows: Frame, sums: RunningSums) -> Frame:
        """Return the select list over keys and sums, as events."""
        rows = rows.selectExpr("*", *sums.finals(trying=tick.trying))
        if tick.trying:
            beyond = [(condition, in_words(call)) for condition, call in sums.beyond()]
            return refused(tick, self, tried(self, rows, beyond), derived_columns(SNAPSHOT_AT, STOP, WEIGHT))
        return self.selected(rows, derived_columns(SNAPSHOT_AT, STOP, WEIGHT))


SUMS = (exp.Count, exp.Sum, exp.Avg)


def summed(call: exp.Expr) -> bool:
    """Return True for the aggregates of a snapshot: a start adds to them and an end subtracts."""
    return isinstance(call, SUMS) and not isinstance(call.this, exp.Distinct) and not call.expressions


# Counts and sums to which a start adds and from which an end subtracts: the columns of a snapshot.
#
# Each sum is kept in its type until a tick fails because of a value. From then on sums that may overflow their type are
# kept in two limbs, which have room for any value: so only the sum of the alive events counts, and not the intermediate
# sums. Sums of intervals are kept so from the beginning.

_INTERVAL = "interval"
_EXACT = "exact "  # before the type of a sum that is kept in limbs
_LEAST, _GREATEST = f"{1 - 2**63}L - 1L", f"{2**63 - 1}L"
_WIDE = 28  # digits of the sum of a decimal of 18, which together with the 20 of a BIGINT use all 38 digits


@dataclass(frozen=True)
class RunningSums:
    """COUNT, SUM and AVG ``aggregates``; ``kinds``: the Spark type of each sum, empty for a plain count.

    ``means``: the type of each average of decimals, else empty. Checkpoints before 0.4 lack them: the widest is taken.
    Columns of the n-th: `__n0` the number of values, `__s0` their sum or its low limb, `__h0` its high limb, `__b0` the
    number of values that are not finite.
    """

    aggregates: tuple[Item, ...]
    kinds: Sequence[str]
    means: Sequence[str] = ()

    @classmethod
    def of(cls, aggregates: tuple[Item, ...], rows: Frame) -> RunningSums:
        """Return the sums of arguments over these rows."""
        kinds, means = list[str](), list[str]()
        for call in (item.expression for item in aggregates):
            kinds.append("" if isinstance(call, exp.Count) else kind_of_text(rows, f"sum({to_spark(call.this)})"))
            kinds[-1] = _EXACT + kinds[-1] if kinds[-1].startswith(_INTERVAL) else kinds[-1]
            averages = isinstance(call, exp.Avg) and kinds[-1].startswith("decimal")
            means.append(kind_of_text(rows, to_spark(call)) if averages else "")
        return cls(aggregates, kinds, means)

    def roomy(self, *, trying: bool) -> RunningSums:
        """Return the same with limbs if a product with a weight would lose digits or, ``trying``, a sum overflows."""
        wide = (_loses_digits(kind) or (trying and may_be_beyond(kind)) for kind in self.kinds)
        named = zip(self.kinds, wide, strict=True)
        return RunningSums(self.aggregates, [_EXACT + kind if moves else kind for kind, moves in named], self.means)

    @property
    def columns(self) -> list[str]:
        """Return the names of the kept columns."""
        return [name for n, kind in enumerate(self.kinds) for name in _columns(n, kind)]

    @staticmethod
    def declared(aggregates: Sequence[Item]) -> tuple[list[str], list[str]]:
        """Return the names of the columns that every type needs, and of those that only some need."""
        only = [isinstance(item.expression, exp.Count) for item in aggregates]
        some = [f"__{part}{n}" for n, counts in enumerate(only) if not counts for part in "hb"]
        return [name for n, counts in enumerate(only) for name in _columns(n, "" if counts else "int")], some

    def moved(self, rows: Frame, roomy: RunningSums) -> Frame:
        """Return kept rows in the form of `roomy`."""
        texts = dict[str, str]()
        for n, (kind, other) in enumerate(zip(self.kinds, roomy.kinds, strict=True)):
            if kind != other:
                texts |= dict(zip((f"__s{n}", f"__h{n}"), limbs(f"__s{n}", kind), strict=True))
        others = [name for name in rows.columns if name not in texts]
        return rows.selectExpr(*others, *(f"CAST({text} AS DECIMAL(38, 0)) AS {name}" for name, text in texts.items()))

    def values(self, weight: str) -> list[str]:
        """Return the columns of one event, which counts ``weight`` times."""
        values = []
        for n, (item, kind) in enumerate(zip(self.aggregates, self.kinds, strict=True)):
            text = "1" if isinstance(item.expression.this, exp.Star) else to_spark(item.expression.this)
            values.append(f"IF(({text}) IS NULL, 0L, {weight}) AS __n{n}")
            if kind == "double":
                bad = f"(isnan({text}) OR abs({text}) = double('infinity'))"
                values.append(f"IF(({text}) IS NULL OR {bad}, 0D, ({text}) * {weight}) AS __s{n}")
                values.append(f"IF(({text}) IS NOT NULL AND {bad}, {weight}, 0L) AS __b{n}")
            elif kind.startswith(_EXACT):
                parts = zip("sh", limbs(text, kind.removeprefix(_EXACT)), strict=True)
                times = f"CAST({weight} AS DECIMAL(17, 0))"
                values += [
                    f"CAST(coalesce({part} * {times}, 0) AS DECIMAL(38, 0)) AS __{name}{n}" for name, part in parts
                ]
            elif kind:
                values.append(f"CAST(coalesce(({text}) * {weight}, 0) AS {kind}) AS __s{n}")
        return values

    def finals(self, *, trying: bool = False) -> list[str]:
        """Return the aggregates with their names; ``trying``: NULL if one overflows its type."""
        return [f"{self._final(n, trying=trying)} AS {item.column.name}" for n, item in enumerate(self.aggregates)]

    def beyond(self) -> Iterator[tuple[str, exp.Expr]]:
        """Yield for each sum in limbs the condition that it overflows its type, and the aggregate."""
        for n, item in enumerate(self.aggregates):
            if self.kinds[n].startswith(_EXACT):
                yield f"(__n{n} > 0 AND {item.column.name} IS NULL)", item.expression

    def _final(self, n: int, *, trying: bool) -> str:
        call, kind = self.aggregates[n].expression, self.kinds[n]
        if isinstance(call, exp.Count):
            return f"__n{n}"
        average, exact = isinstance(call, exp.Avg), kind.startswith(_EXACT)
        kind = kind.removeprefix(_EXACT)
        total = f"IF(__b{n} > 0, double('NaN'), __s{n})" if kind == "double" else f"__s{n}"
        interval = kind.startswith(_INTERVAL)
        if interval:
            total = as_interval(f"__s{n}", kind, tries=trying)
        elif exact and kind != "bigint":
            total = f"{'try_cast' if trying else 'CAST'}({whole(f'__s{n}', f'__h{n}', kind)} AS {kind})"
        elif exact and not average:  # the low limb of a BIGINT is the whole sum
            total = f"IF({total} BETWEEN {_LEAST} AND {_GREATEST}, {total}, NULL)" if trying else total
            total = f"CAST({total} AS BIGINT)"
        if average and not kind.startswith("decimal"):
            total = f"{total} / __n{n}" if interval else f"CAST({total} AS DOUBLE) / __n{n}"
        elif average:
            mean = self.means[n] if self.means else average_type(kind)
            total = quotient(total, f"__n{n}", kind, mean, tries=trying)
        return f"IF(__n{n} = 0, NULL, {total})"


def _loses_digits(kind: str) -> bool:
    """Return True for a decimal whose product with a BIGINT would lose digits after the point in Spark."""
    match = DECIMAL.fullmatch(kind)
    return match is not None and int(match[1]) >= _WIDE and int(match[2]) > 0


def _columns(n: int, kind: str) -> list[str]:
    more = {"double": f"__b{n}"}.get(kind, f"__h{n}" if kind.startswith(_EXACT) else "")
    return [f"__n{n}", *([f"__s{n}"] if kind else []), *([more] if more else [])]
