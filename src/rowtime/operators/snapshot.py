"""GROUP BY SNAPSHOT(): what is alive between each two changes of a group (SPEC 9.6).

A new snapshot begins at every start and every end. Counts and sums of it are running sums
over the starts and ends, which are cut at the bound: what lies below is final, and of each
group the sums at the bound are kept. So a tick costs its own events and the open groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from rowtime.core.time import BEGINNING, END
from rowtime.operators.contract import Delta, Kept, Shape, Tick, passed
from rowtime.operators.event_groups import EventGroups
from rowtime.operators.lifetimes import ALWAYS, D, E, N, S, made, netted, routed
from rowtime.operators.lifetimes import Kept as Rows
from rowtime.sql.generate import to_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

AT, STARTS, ENDS, OLD = "__t0", "__starts", "__ends", "__old"  # when; how many start and end; 1 for kept sums


@dataclass(frozen=True)
class Snapshot(EventGroups):
    """Counts and sums ``aggregates`` of each snapshot and ``keys``; ``items`` and ``having`` are over both by name."""

    kind: ClassVar[str] = "snapshot"

    def keeps(self) -> tuple[Kept, ...]:
        """What lies ahead of the bound, and the sums at it."""
        ahead = Kept("starts and ends ahead of the bound", "the bound passes them")
        return (ahead, Kept("the sums of each group in which events are alive", "they have ended"))

    def emits(self) -> Shape:
        """The select list; a snapshot has no end until the next change of its group."""
        return replace(super().emits(), retracts="open")

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Add the new starts and ends to what is due, let the snapshots below the bound go out. One job."""
        delta, control = deltas[0], tick.control(self)
        ahead, sums = Rows(tick, self), Rows(tick, self, "open")
        before = control.get("bound", BEGINNING)
        clocks = self.promises([delta.clocks], control)
        bound = max(before, clocks[""])
        if delta.rows is not None and "types" not in control:
            control["types"] = self._types(delta.rows)
        known = delta.rows is None or delta.count is not None
        count = (
            4 * (2 * (delta.count or 0) + ahead.count(before, bound) + sums.count(BEGINNING, END)) if known else None
        )
        parts = [] if delta.rows is None else [self._points(delta.rows, control["types"])]
        due = ahead.between(before, bound) if bound > before else None
        parts += [] if due is None else [due.drop(N).selectExpr("*", f"0 AS {OLD}")]
        rows = None
        if parts:
            kept = sums.between(BEGINNING, END)
            if kept is not None:
                kept = netted(kept, [*self.key_names, AT, STARTS, *self._sums(control["types"])])
                parts.append(
                    kept.selectExpr(
                        *self.key_names, AT, STARTS, f"0L AS {ENDS}", *self._sums(control["types"]), f"1 AS {OLD}"
                    )
                )
            rows = self._advance(tick, parts, bound, count)
        control["bound"] = bound
        ahead.segments.forget(bound)
        sums.forget(bound, [*self.key_names, AT, STARTS, *self._sums(control.get("types", []))])
        return Delta(rows, clocks, count)

    # -- starts and ends --------------------------------------------------------------

    def _types(self, rows: DataFrame) -> list[str]:
        """The Spark type of the sum of each aggregate's argument; empty for what only counts."""
        types = []
        for item in self.aggregates:
            texts = [] if isinstance(item.expression, exp.Count) else [f"sum({to_spark(item.expression.this)}) AS v"]
            types.append(rows.selectExpr(*texts).schema[0].dataType.simpleString() if texts else "")
        return types

    def _sums(self, types: Sequence[str]) -> list[str]:
        """The names of the running sums: how many values, their sum, how many that are no finite number."""
        return [
            name
            for n, kind in enumerate(types)
            for name in (f"__n{n}", *([f"__s{n}"] if kind else []), *([f"__b{n}"] if kind == "double" else []))
        ]

    def _values(self, types: Sequence[str], weight: str) -> list[str]:
        values = []
        for n, (item, kind) in enumerate(zip(self.aggregates, types, strict=True)):
            text = "1" if isinstance(item.expression.this, exp.Star) else to_spark(item.expression.this)
            values.append(f"IF(({text}) IS NULL, 0L, {weight}) AS __n{n}")
            if kind == "double":
                bad = f"(isnan({text}) OR abs({text}) = double('infinity'))"
                values.append(f"IF(({text}) IS NULL OR {bad}, 0D, ({text}) * {weight}) AS __s{n}")
                values.append(f"IF(({text}) IS NOT NULL AND {bad}, {weight}, 0L) AS __b{n}")
            elif kind:
                values.append(f"CAST(coalesce(({text}) * {weight}, 0) AS {kind}) AS __s{n}")
        return values

    def _points(self, rows: DataFrame, types: Sequence[str]) -> DataFrame:
        """Each event as its start and, where it has one, its end."""
        keys = [key.sql for key in self.keys]
        start = f"struct({S} AS {AT}, {D} AS {STARTS}, 0L AS {ENDS}, {D} AS w)"
        end = f"struct({E} AS {AT}, 0L AS {STARTS}, {D} AS {ENDS}, -{D} AS w)"
        both = rows.selectExpr("*", f"explode(IF({E} < {END}L, array({start}, {end}), array({start}))) AS __x")
        return both.selectExpr(
            *keys, f"__x.{AT}", f"__x.{STARTS}", f"__x.{ENDS}", *self._values(types, "__x.w"), f"0 AS {OLD}"
        )

    # -- snapshots --------------------------------------------------------------------

    def _advance(self, tick: Tick, parts: Sequence[DataFrame], bound: int, count: int | None) -> DataFrame | None:
        from functools import reduce  # noqa: PLC0415

        types = tick.control(self)["types"]
        sums = self._sums(types)
        changes = self._changes(reduce(lambda one, other: one.unionByName(other), parts), sums, bound)
        tick.describe(self, "snapshots up to the bound")
        keys = self.key_names
        routes = {
            "complete": (0, [*keys, AT, E, D, *sums]),
            "state": (1, [*keys, AT, STARTS, ENDS, *sums, N]),
            "open": (2, [*keys, AT, STARTS, D, *sums, N]),
        }
        found = routed(tick, self, changes, routes, count)["complete"]
        return None if found is None else self._selected(found, types)

    def _changes(self, points: DataFrame, sums: Sequence[str], bound: int) -> DataFrame:
        """Snapshots that begin or end (route 0), what lies ahead (1), and how the kept sums change (2)."""
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        keys = self.key_names
        totals = [F.expr(f"sum({name}) AS {name}") for name in (STARTS, ENDS, *sums)]
        times = points.groupBy(*keys, AT).agg(*totals, F.expr(f"max({OLD}) AS {OLD}"))
        times = times.where(f"{STARTS} <> 0 OR {ENDS} <> 0").selectExpr("*", f"{AT} < {passed(bound, AT)} AS __due")
        by = ", ".join([*keys, "__due"])
        running = f"OVER (PARTITION BY {by} ORDER BY {AT} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
        alive = f"sum({STARTS} - {ENDS}) {running} AS __alive"
        totals_so_far = [f"sum({name}) {running} AS __r{name}" for name in sums]
        times = times.selectExpr(
            "*", alive, *totals_so_far, f"lead({AT}) OVER (PARTITION BY {by} ORDER BY {AT}) AS __next"
        )
        lasting = "NOT __due", "__due AND __alive > 0"
        kinds = [
            (lasting[0], 1, f"{END}L", "1L", STARTS, sums),
            (f"{lasting[1]} AND {OLD} = 0", 0, f"coalesce(__next, {END}L)", "1L", "__alive", [f"__r{s}" for s in sums]),
            (f"__due AND {OLD} = 1 AND __next IS NOT NULL", 0, f"{END}L", "-1L", "__alive", [f"__r{s}" for s in sums]),
            (f"__due AND {OLD} = 1 AND __next IS NOT NULL", 0, "__next", "1L", "__alive", [f"__r{s}" for s in sums]),
            (
                f"{lasting[1]} AND {OLD} = 0 AND __next IS NULL",
                2,
                f"{END}L",
                "1L",
                "__alive",
                [f"__r{s}" for s in sums],
            ),
            (f"__due AND {OLD} = 1 AND __next IS NOT NULL", 2, f"{END}L", "-1L", STARTS, sums),
        ]
        structs = [
            f"IF({when}, struct({to} AS __route, {end} AS {E}, {weight} AS {D}, {starts} AS {STARTS}"
            + "".join(f", {value} AS {name}" for value, name in zip(values, sums, strict=True))
            + "), NULL)"
            for when, to, end, weight, starts, values in kinds
        ]
        # Most rows are one snapshot or lie ahead: only where there may be several is what came of each sorted out.
        others = f"filter(array({', '.join(structs)}), x -> x IS NOT NULL)"
        single = f"WHEN __due AND __alive > 0 AND {OLD} = 0 AND __next IS NOT NULL THEN array({structs[1]})"
        found = f"CASE WHEN NOT __due THEN array({structs[0]}) {single} ELSE {others} END"
        exploded = times.selectExpr(*keys, AT, ENDS, f"explode({found}) AS __x")
        due_at = f"IF(__x.__route = 1, {AT} + 1, {ALWAYS}L) AS {N}"
        return exploded.selectExpr(*keys, AT, ENDS, "__x.*", due_at)

    def _selected(self, rows: DataFrame, types: Sequence[str]) -> DataFrame:
        """The select list over keys and sums, as events."""
        finals = [
            self._final(n, kind) + f" AS {item.column.name}"
            for n, (item, kind) in enumerate(zip(self.aggregates, types, strict=True))
        ]
        rows = rows.selectExpr("*", *finals)
        if self.having is not None:
            rows = rows.where(to_spark(self.having))
        return rows.selectExpr(*(item.sql for item in self.items), *made(AT, E, D))

    def _final(self, n: int, kind: str) -> str:
        call = self.aggregates[n].expression
        if isinstance(call, exp.Count):
            return f"__n{n}"
        total = f"IF(__b{n} > 0, double('NaN'), __s{n})" if kind == "double" else f"__s{n}"
        count = f"__n{n}" if kind != "double" else f"(__n{n})"
        if isinstance(call, exp.Avg):
            total = f"CAST({total} AS DOUBLE) / {count}" if not kind.startswith("decimal") else f"{total} / {count}"
        return f"IF(__n{n} = 0, NULL, {total})"


SUMS = (exp.Count, exp.Sum, exp.Avg)


def summed(call: exp.Expr) -> bool:
    """True for the aggregates of a snapshot: what a start adds and an end takes away."""
    return isinstance(call, SUMS) and not isinstance(call.this, exp.Distinct) and not call.expressions
