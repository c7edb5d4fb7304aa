"""Binds conditions on lifetimes in WHERE and ON: ``LIFETIME(s) CONTAINS s.t``, ``LIFETIME(a) EQUALS LIFETIME(b)``.

Times are compared as BIGINT, in µs. If no end is used, this is an ordinary filter; otherwise a `PeriodFilter` waits
until the ends are known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from rowtime.core.columns import PERIODS, ROWTIME, STOP
from rowtime.core.errors import Refused
from rowtime.expr.conditions import col, conjuncts
from rowtime.operators.contract import Column, Operator
from rowtime.operators.events.period_filter import PeriodFilter, passing
from rowtime.operators.rows.lifetimes import is_lifetimes
from rowtime.operators.rows.select import Item, extended
from rowtime.plan.bind.scope import From, Input, Scope
from rowtime.plan.bind.sources import Binder
from rowtime.sql.generate import to_rowtime
from rowtime.sql.nodes import Lifetime, PeriodPredicate
from rowtime.sql.period_parser import compared, periodic
from rowtime.sql.places import refuse_at

Times = Mapping[str, tuple[exp.Expr, exp.Expr]]
"""Start and end (BIGINT expressions, µs) of an input's event, by the input's lower-case name."""

_LOGIC = (exp.And, exp.Or, exp.Not, exp.Paren)
_APART = {
    "PRECEDES": "ALTER_DURATION(POINT_AT_END({a}), INTERVAL '1' HOUR) AS {a} JOIN TO_POINT({b}) AS {b}",
    "IMMEDIATELY PRECEDES": "POINT_AT_END({a}) AS {a} JOIN TO_POINT({b}) AS {b}",
}


def timed(condition: exp.Expr) -> bool:
    """Return True for a condition about lifetimes, outside of sub-queries."""
    within = condition.find_ancestor(exp.Query)
    return any(node.find_ancestor(exp.Query) is within for node in condition.find_all(Lifetime))


def split_off(query: exp.Select) -> list[exp.Expr]:
    """Take the conditions on lifetimes out of the query's WHERE, and return them."""
    where = query.args.get("where")
    listed = conjuncts(where.this if where else None)
    timed_conditions = [condition for condition in listed if timed(condition)]
    if timed_conditions:
        others = [condition for condition in listed if condition not in timed_conditions]
        query.set("where", exp.Where(this=exp.and_(*others, copy=False)) if others else None)
    return timed_conditions


def tells_times(node: Operator) -> bool:
    """Return True for a side of a join with its times as columns: a change of the end changes those too."""
    return any(name in node.emits().names for side in PERIODS for name in side)


class Periods:
    """The conditions of one SELECT on the lifetimes of its inputs."""

    def __init__(self, binder: Binder, name: str) -> None:
        self.text, self.sources, self.name = binder.text, binder.sources, name

    def filtered(self, source: From, conditions: Sequence[exp.Expr]) -> From:
        """Return the events of one input for which the conditions hold."""
        if not conditions:
            return source
        alone = len(source.inputs) == 1 and is_lifetimes(source.node)
        times = {source.inputs[0].alias.lower(): _TIMES} if alone else {}
        bound = [self._bound(source, condition, times) for condition in conditions]
        return replace(source, node=self._filter(source.node, exp.and_(*bound, copy=False), (STOP,)))

    def meeting(
        self,
        sides: tuple[From, From],
        named: tuple[tuple[Input, ...], tuple[Input, ...]],
        on: Sequence[exp.Expr],
        alone: Sequence[int],
    ) -> tuple[tuple[From, From], list[exp.Expr], list[exp.Expr]]:
        """Return the sides below their own conditions; the conditions about both; and those about neither.

        ``alone``: the sides whose events are also emitted without a pair.
        """
        filtered, both, others = list(sides), [], []
        names = [
            {c.name for source in inputs for _, c in source.columns} | {source.rowtime for source in inputs} - {ROWTIME}
            for inputs in named
        ]
        whole = From(sides[0].node, (*named[0], *named[1]))
        aliases = [side.inputs[0].alias.lower() if len(side.inputs) == 1 else "" for side in sides]
        times = {alias: (col(start), col(end)) for alias, (start, end) in zip(aliases, PERIODS, strict=True)}
        for given in on:
            condition = self._met(given, aliases)
            if not timed(condition):
                others.append(condition)
                continue
            bound = self._bound(whole, condition, times)
            used = {column.name for column in bound.find_all(exp.Column)}
            side = next((n for n in (0, 1) if used <= names[n] | set(PERIODS[n])), None)
            if alone and (side is None or side in alone):
                what = f"{to_rowtime(given)} would decide which events have no match before their ends are known"
                hint = "Filter the events first, in a view or a query in parentheses. In an inner JOIN it is allowed."
                raise self._refused(what, given, hint)
            if side is None:
                self._check_ends(bound, given)
                both.append(bound)
            else:
                filtered[side] = self.filtered(filtered[side], [condition])
        return (filtered[0], filtered[1]), both, others

    def with_times(self, side: From, number: int) -> From:
        """Return a side with its times as columns, which pass through the join."""
        start, end = (Item(Column(name, "BIGINT"), value) for name, value in zip(PERIODS[number], _TIMES, strict=True))
        return replace(side, node=extended(self.sources.fresh(f"{self.name}.times"), side.node, start, end))

    def paired(self, node: Operator, conditions: Sequence[exp.Expr]) -> Operator:
        """Return the pairs of a join, whose sides have their times as columns, for which the conditions hold."""
        hidden = tuple(name for side in PERIODS for name in side)
        return self._filter(node, exp.and_(*conditions, copy=False), tuple(end for _, end in PERIODS), hidden)

    def _filter(
        self, node: Operator, condition: exp.Expr, ends: tuple[str, ...], hidden: tuple[str, ...] = ()
    ) -> Operator:
        used = {column.name for column in condition.find_all(exp.Column)}
        name = self.sources.fresh(f"{self.name}.periods")
        if not used.intersection(ends):
            return passing(name, node, condition, hidden)
        return PeriodFilter(name, node, condition, tuple(end for end in ends if end in used), hidden)

    def _bound(self, source: From, condition: exp.Expr, times: Times) -> exp.Expr:
        """Return a condition as comparisons of BIGINT columns."""
        for predicate in condition.find_all(PeriodPredicate):
            self._check(predicate, condition, source, times)
        scope = Scope(self.text, source, lifetimes=True)
        bound = exp.Paren(this=scope.bind(condition))
        if scope.problems:
            raise Refused(*scope.problems)
        for predicate in list(bound.find_all(PeriodPredicate)):
            predicate.replace(exp.Paren(this=compared(predicate, lambda period: _ends(period, times))))
        return bound

    def _check(self, predicate: exp.Expr, condition: exp.Expr, source: From, times: Times) -> None:
        above = predicate
        while above is not condition and above.parent is not None:
            above = above.parent
            if not isinstance(above, _LOGIC):
                what = f"{to_rowtime(predicate)} is not allowed inside {to_rowtime(above)}"
                raise self._refused(what, predicate, "Combine conditions on lifetimes with AND, OR and NOT.")
        for name in (node.name for node in predicate.find_all(Lifetime)):
            if name.lower() in times:
                continue
            aliases = {part.alias.lower() for part in source.inputs}
            if name.lower() not in aliases:
                raise refuse_at(self.text, predicate, "R103", f"there is no stream {name} here")
            hint = "Name the lifetime of an input of this JOIN, or of a view over the joins before it."
            raise self._refused(f"{name} has no lifetime of its own here", predicate, hint)

    def _met(self, condition: exp.Expr, aliases: Sequence[str]) -> exp.Expr:
        """Return a condition of ON, where lifetimes overlap anyway."""
        if not timed(condition):
            return condition
        root = exp.Paren(this=condition.copy())
        for predicate in list(root.find_all(PeriodPredicate)):
            names = [side.name.lower() for side in (predicate.this, predicate.expression) if isinstance(side, Lifetime)]
            if sorted(names) != sorted(aliases):
                continue
            if predicate.args["how"] == "OVERLAPS":
                predicate.replace(exp.true())
            elif predicate.args["how"] not in ("CONTAINS", "EQUALS"):
                raise self._apart(predicate)
        met: exp.Expr = root.this
        return met

    def _apart(self, predicate: exp.Expr) -> Refused:
        """Return why events that never overlap are not joined, and what to write instead."""
        how, (first, second) = predicate.args["how"], (predicate.this.name, predicate.expression.name)
        if "SUCCEEDS" in how:
            how, first, second = how.replace("SUCCEEDS", "PRECEDES"), second, first
        what = f"{to_rowtime(predicate)} is true for no pair: events are joined while both are alive"
        return self._refused(what, predicate, f"Move the lifetimes: FROM {_APART[how].format(a=first, b=second)}.")

    def _check_ends(self, bound: exp.Expr, given: exp.Expr) -> None:
        """Check that ends are compared only with each other and with starts: the events of a pair may be gone."""
        own = {name for side in PERIODS for name in side}
        for node in bound.find_all(exp.LT, exp.LTE, exp.EQ):
            sides = [side.name if isinstance(side, exp.Column) else "" for side in (node.this, node.expression)]
            if any(name.endswith("_end") and name in own for name in sides) and not own.issuperset(sides):
                what = f"{to_rowtime(given)} compares the end of an event with a time of the other event"
                hint = "Compare it with the LIFETIME of the other event, or make that time its start."
                raise self._refused(what, given, hint)

    def _refused(self, what: str, node: exp.Expr, hint: str) -> Refused:
        return refuse_at(self.text, node, "R198", what, hint)


_TIMES = (exp.Anonymous(this="unix_micros", expressions=[col(ROWTIME)]), col(STOP))


def _ends(period: exp.Expr, times: Times) -> tuple[exp.Expr, exp.Expr]:
    """Return start and end of a period as BIGINT expressions."""
    if isinstance(period, Lifetime):
        return times[period.name.lower()]
    times_of = (exp.cast(time.copy(), "TIMESTAMP", dialect="spark") for time in periodic(period))
    start, end = (exp.Anonymous(this="unix_micros", expressions=[time]) for time in times_of)
    return start, end
