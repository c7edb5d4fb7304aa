"""How far apart the rows of a join may be: the range that windows or a condition on rowtimes give.

With d = right rowtime - left rowtime, every join of streams is bounded by low <= d <= high
(SPEC 5, 6); what is left of the condition may be anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from rowtime.expr.conditions import col
from rowtime.plan.bind.scope import Input
from rowtime.sql.intervals import duration_of


@dataclass(frozen=True)
class Range:
    """``low`` <= right - left rowtime <= ``high`` (µs), where known; ``rest``: the conjuncts that it does not say."""

    low: int | None = None
    high: int | None = None
    rest: tuple[exp.Expr, ...] = ()
    timed: tuple[exp.Expr, ...] = ()
    """The conjuncts that compare a rowtime of one side with one of the other."""

    def at_least(self, low: int) -> Range:
        """With one more lower limit."""
        return replace(self, low=low if self.low is None else max(self.low, low))

    def at_most(self, high: int) -> Range:
        """With one more upper limit."""
        return replace(self, high=high if self.high is None else min(self.high, high))


def conjuncts(condition: exp.Expr | None) -> list[exp.Expr]:
    """The parts of a condition that must all hold."""
    if condition is None:
        return []
    node = condition.unnest()
    if isinstance(node, exp.And):
        return [*conjuncts(node.this), *conjuncts(node.expression)]
    if isinstance(node, exp.Between) and not node.args.get("symmetric"):
        lower = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
        upper = exp.LTE(this=node.this.copy(), expression=node.args["high"].copy())
        lower.meta.update(node.meta)
        upper.meta.update(node.meta)
        return [lower, upper]
    return [node]


def windows(left: Sequence[Input], right: Input) -> Range:
    """At the later rowtime all rows are inside their windows; without one only at their own rowtime."""
    always = [one for one in left if not one.optional]
    ends = [one.window or 0 for one in always or left]
    found = Range(-(right.window or 0), min(ends) if always else max(ends))
    if len(left) > 1:
        found = replace(found, rest=tuple(_inside(one, right) for one in left))
    return found


def _inside(one: Input, right: Input) -> exp.Expr:
    """Where the right row is the later one, an earlier row of the left is still inside its window."""
    window = exp.Interval(this=exp.Literal.string(str(one.window or 0)), unit=exp.var("MICROSECOND"))
    last = exp.Add(this=col(one.rowtime), expression=window)
    inside: exp.Expr = exp.LTE(this=col(right.rowtime), expression=last)
    if one.optional:
        inside = exp.paren(exp.or_(exp.Is(this=col(one.rowtime), expression=exp.null()), inside))
    return inside


def between(parts: Iterable[exp.Expr], left: Sequence[Input], right: Input) -> Range:
    """The range that conditions on rowtimes give."""
    known = {one.rowtime: one for one in left}
    found = Range()
    for part in parts:
        names = {column.name for column in part.find_all(exp.Column)}
        if right.rowtime not in names or not names & known.keys():
            found = replace(found, rest=(*found.rest, part))
            continue
        found = replace(found, timed=(*found.timed, part))
        limits = _limits(part, known, right.rowtime)
        if limits is None:
            found = replace(found, rest=(*found.rest, part))
            continue
        low, high, exact = limits
        found = found if low is None else found.at_least(low)
        found = found if high is None else found.at_most(high)
        found = found if exact else replace(found, rest=(*found.rest, part))
    return found


def _limits(part: exp.Expr, known: Mapping[str, Input], right: str) -> tuple[int | None, int | None, bool] | None:
    """What a comparison says of right - left: low, high, and whether that is all that it says."""
    if not isinstance(part, exp.GTE | exp.GT | exp.LTE | exp.LT | exp.EQ):
        return None
    one, other = _linear(part.this), _linear(part.expression)
    if one is None or other is None:
        return None
    terms = {name: one[0].get(name, 0) - other[0].get(name, 0) for name in one[0].keys() | other[0].keys()}
    terms = {name: times for name, times in terms.items() if times}
    by = other[1] - one[1]  # the comparison as: terms against by
    [left] = [name for name in terms if name != right] if len(terms) == 2 else [""]  # noqa: PLR2004
    sign = terms.get(right, 0)
    if left not in known or abs(sign) != 1 or terms[left] != -sign:
        return None
    by, greater = by * sign, isinstance(part, exp.GTE | exp.GT) == (sign > 0)
    strict = 1 if isinstance(part, exp.GT | exp.LT) else 0
    lag, exact = known[left].lag, not known[left].lag and not known[left].optional
    if isinstance(part, exp.EQ):
        return by - lag, by, exact
    return (by + strict - lag, None, exact) if greater else (None, by - strict, exact)


def _linear(node: exp.Expr) -> tuple[dict[str, int], int] | None:
    """An expression as a sum of columns and µs; ``None`` where it is none."""
    node = node.unnest()
    if isinstance(node, exp.Column):
        return {node.name: 1}, 0
    if isinstance(node, exp.Neg):
        inner = _linear(node.this)
        return None if inner is None else ({name: -times for name, times in inner[0].items()}, -inner[1])
    if isinstance(node, exp.Interval):
        return _constant(node)
    if not isinstance(node, exp.Add | exp.Sub):
        return None
    one, other = _linear(node.this), _linear(node.expression)
    if one is None or other is None:
        return None
    sign = 1 if isinstance(node, exp.Add) else -1
    terms = {name: one[0].get(name, 0) + sign * other[0].get(name, 0) for name in one[0].keys() | other[0].keys()}
    return terms, one[1] + sign * other[1]


def _constant(node: exp.Interval) -> tuple[dict[str, int], int] | None:
    length = duration_of(node)
    return None if length is None else ({}, length)
