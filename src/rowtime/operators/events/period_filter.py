"""Filters events by their lifetimes, if the condition depends on an end that may be unknown yet (semantics 9.6).

An end below the bound is final; any other is somewhere from the bound on. An event is emitted, or dropped, as soon as
all of its possible ends give the same answer. Until then an open comparison is NULL, so that AND, OR and NOT give the
right result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from sqlglot import exp

from rowtime.core.clock import Clocks, least
from rowtime.core.columns import DUE, ROWTIME, STOP, WEIGHT
from rowtime.core.time import END
from rowtime.expr.conditions import col
from rowtime.operators.contract import Delta, Operator, Shape, Tick, Unary, UpTo, passed, quoted
from rowtime.operators.contract.state import StateNote
from rowtime.operators.rows.lifetimes import BEGINS, WeightedLog, derived, derived_columns, netted
from rowtime.operators.rows.select import Item, Select
from rowtime.sql.generate import to_spark

_ORDERS = (exp.LT, exp.LTE, exp.EQ)


@dataclass(frozen=True)
class NotJudged(UpTo):
    """``oldest`` (µs UTC): the least start of the undecided events, which holds the bound; END if there are none."""

    oldest: int = END


@dataclass(frozen=True)
class PeriodFilter(Unary):
    """The events for which ``where`` holds; it compares ``ends``, which are BIGINT columns (µs), with other times.

    ``hidden``: columns that are not passed on. If there are two ends, they belong to the two events of a pair, which
    lasts while both do.
    """

    where: exp.Expr
    ends: tuple[str, ...] = (STOP,)
    hidden: tuple[str, ...] = ()

    control: ClassVar = NotJudged
    kind: ClassVar[str] = "period filter"
    same_below: ClassVar = (ROWTIME,)
    promise: ClassVar[str] = "the least start of the events that are not decided yet"
    reason: ClassVar[str] = "an event waits until the bound passes the time that its end is compared with"

    def keeps(self) -> tuple[StateNote, ...]:
        """Return the events that are still undecided."""
        until = "the bound passes the times that their ends are compared with"
        return (WeightedLog.kept(*self._identity).noted("events that are not decided yet", until),)

    def emits(self) -> Shape:
        """Return the columns of the events."""
        return derived(Shape(tuple(c for c in self.input.emits().columns if c.name not in self.hidden)))

    def promises(self, clocks: Sequence[Clocks], control: NotJudged) -> Clocks:
        """Return the input's bound, but not beyond the start of the oldest held event."""
        return {"": min(least(clocks[0].values()), control.oldest)}

    def opens_events(self) -> bool:
        """Return False: it may emit only events that have an end."""
        return False

    def on_versions(self, below: Sequence[Operator]) -> Operator:
        """Return the plain filter, because every end is known."""
        return passing(self.name, below[0], self.where, self.hidden)

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Emit the events that satisfy the condition by now, and keep undecided ones."""
        delta, control = deltas[0], tick.control(self)
        kept, before = WeightedLog(tick, self), control.bound
        bound = max(before, least(delta.clocks.values()))
        rows = None
        if delta.rows is not None:
            new = delta.rows.selectExpr(*map(quoted, self._identity), WEIGHT, f"{self._due()} AS {DUE}")
            rows = new.where(self._known(bound))
            if bound < END:
                kept.add(new.where(self._open(bound)))
        old = kept.between(before, END) if bound > before else None
        if old is not None:
            newly_due = old.where(f"NOT coalesce({self._known(before)}, false) AND {self._known(bound)}")
            rows = newly_due if rows is None else rows.unionByName(newly_due)
        control = tick.remember(self, bound=bound)
        kept.forget(bound, self._identity)
        control = tick.remember(self, oldest=self._oldest(kept, bound))
        names = [quoted(name) for name in self.emits().names]
        out = None if rows is None else rows.selectExpr(*names, *derived_columns(BEGINS, STOP, WEIGHT))
        return Delta(out, self.promises([delta.clocks], control))

    def _oldest(self, kept: WeightedLog, bound: int) -> int:
        rows = kept.between(bound, END)
        if rows is None:
            return END
        held = netted(rows.where(self._open(bound)).drop(DUE), self._identity)
        start = held.selectExpr(f"min({BEGINS}) AS s").collect()[0][0]
        return END if start is None else int(start)

    # -- known values -------------------------------------------------------------------

    def _known(self, bound: int) -> str:
        """Return the condition as far as it is known at a bound; NULL while it is undecided."""
        return to_spark(self.where.transform(lambda node: self._judged(node, bound)[0]))

    def _open(self, bound: int) -> str:
        """Return the condition that an unknown end may still change the result."""
        waits = [self._judged(node, bound)[1] for node in self._comparisons()]
        return f"({' OR '.join(waits)}) AND ({self._known(bound)}) IS NULL"

    def _comparisons(self) -> list[exp.Expr]:
        return [node for node in self.where.find_all(*_ORDERS) if self._ends_in(node)]

    def _ends_in(self, node: exp.Expr) -> bool:
        return any(isinstance(side, exp.Column) and side.name in self.ends for side in (node.this, node.expression))

    def _judged(self, node: exp.Expr, bound: int) -> tuple[exp.Expr, str]:
        """Return a comparison with an end as true, false or NULL; and when it is unknown although both times exist."""
        if not isinstance(node, _ORDERS) or not self._ends_in(node):
            return node, "false"
        (low, high), (other_low, other_high) = (self._between(side, bound) for side in (node.this, node.expression))
        holds, fails = {
            exp.LT: (f"{high} < {other_low}", f"{low} >= {other_high}"),
            exp.LTE: (f"{high} <= {other_low}", f"{low} > {other_high}"),
            exp.EQ: (
                f"{low} = {other_high} AND {high} = {other_low}",
                f"{high} < {other_low} OR {other_high} < {low}",
            ),
        }[type(node)]  # fmt: skip
        text = f"CASE WHEN {holds} THEN true WHEN {fails} THEN false END"
        return exp.Paren(this=exp.Var(this=text)), f"NOT coalesce(({holds}) OR ({fails}), true)"

    def _between(self, side: exp.Expr, bound: int) -> tuple[str, str]:
        """Return the least and the greatest possible value of a time, as BIGINT expressions."""
        text = to_spark(side)
        if not isinstance(side, exp.Column) or side.name not in self.ends:
            return text, text
        settled = f"{text} < {passed(bound, text)}"
        return f"IF({settled}, {text}, greatest({passed(bound, text)}, {BEGINS} + 1))", f"IF({settled}, {text}, {END}L)"

    def _due(self) -> str:
        """Return the bound at which an event is certainly decided."""
        ends = [quoted(name) for name in self.ends]
        others = [
            to_spark(side)
            for node in self._comparisons()
            for side in (node.this, node.expression)
            if not (isinstance(side, exp.Column) and side.name in self.ends)
        ]
        compared = [*others, *([_of("least", ends)] if len(ends) > 1 else [])]
        last = _of("least", [_of("greatest", ends), *([_of("greatest", compared)] if compared else [])])
        return f"IF({last} < {END}L, {last} + 1, {END}L)"

    @property
    def _identity(self) -> list[str]:
        return [*self.input.emits().names, ROWTIME, STOP]


def _of(function: str, values: Sequence[str]) -> str:
    return values[0] if len(values) == 1 else f"{function}({', '.join(values)})"


def passing(name: str, node: Operator, condition: exp.Expr, hidden: Sequence[str] = ()) -> Select:
    """Return the filter that takes every lifetime as it is known."""
    items = tuple(Item(c, col(c.name)) for c in node.emits().columns if c.name not in hidden)
    return Select(name, node, items, condition)
