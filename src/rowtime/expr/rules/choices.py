"""Choices: greatest and least, COALESCE, conditions, and CASE ladders."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal

from sqlglot import exp

from rowtime.expr.facts import Fact, Kind, wider
from rowtime.expr.order import Order
from rowtime.expr.rules.table import Conclusion, Parts, constant, none, rule


@rule(exp.Greatest, exp.Least)
def _extreme(node: exp.Expr, parts: Parts) -> Conclusion:
    facts = [parts.of(part) for part in (node.this, *node.expressions)]
    kind = _common(facts)
    if kind is Kind.OTHER or any(fact.null for fact in facts):
        return none("GREATEST and LEAST have a rule for values of one kind that are never NULL")
    order = facts[0].order
    for fact in facts[1:]:
        order = _both(order, fact.order)
    name = type(node).__name__.upper()
    if order is Order.NONE:
        return none(f"{name} has an order only if all its arguments have the same direction", kind)
    pick = min if isinstance(node, exp.Least) else max
    lows = [fact.low for fact in facts if fact.low is not None]
    highs = [fact.high for fact in facts if fact.high is not None]
    # If one argument has no limit on the far side, the choice has none either.
    low = pick(lows) if lows and (pick is max or len(lows) == len(facts)) else None
    high = pick(highs) if highs and (pick is min or len(highs) == len(facts)) else None
    return Conclusion(Fact(order, kind).within(low, high), f"{name} goes in the one direction of its arguments")


def _both(left: Order, right: Order) -> Order:
    """Return the order of a choice between two at every row; strict only if both are."""
    order = left.plus(right)
    return order if left.strict and right.strict else order.loosened()


def _common(facts: Iterable[Fact]) -> Kind:
    kinds = {fact.kind for fact in facts}
    if len(kinds) == 1:
        return kinds.pop()
    widest = Kind.INTEGER
    for kind in kinds:
        widest = wider(widest, kind)
        if widest is Kind.OTHER:
            return widest
    # Whole numbers beyond 2^53 become floating point, which makes neighbours equal but keeps order.
    return widest


@rule(exp.Coalesce)
def _coalesce(node: exp.Expr, parts: Parts) -> Conclusion:
    m = parts.of(node.this)
    if m.order.moves:
        return Conclusion(m, "the first argument is never NULL")
    if m.null and len(node.expressions) == 1:
        return Conclusion(parts.of(node.expressions[0]), "the first argument is NULL")
    return none("a value that may be NULL in between has no order", m.kind)


# -- conditions -----------------------------------------------------------------------


@rule(exp.GT, exp.GTE, exp.LT, exp.LTE)
def _comparison(node: exp.Expr, parts: Parts) -> Conclusion:
    left, right = parts.of(node.this), parts.of(node.expression)
    if left.null or right.null:
        return constant(Kind.BOOLEAN, "a comparison with NULL is NULL")
    if _common((left, right)) is Kind.OTHER and not (left.kind.time and right.kind.time):
        return none("a comparison has a rule for values of one kind", Kind.BOOLEAN)
    order = _both(left.order, right.order.reversed())
    if isinstance(node, exp.LT | exp.LTE):
        order = order.reversed()
    if order is Order.NONE:
        return none("the comparison may change more than once", Kind.BOOLEAN)
    return Conclusion(
        Fact(order.loosened(), Kind.BOOLEAN), "a comparison of values with opposite directions changes once"
    )


@rule(exp.Not)
def _not(node: exp.Expr, parts: Parts) -> Conclusion:
    m = parts.of(node.this)
    if m.kind is not Kind.BOOLEAN:
        return none("NOT has a rule for conditions whose order is known", Kind.BOOLEAN)
    return Conclusion(Fact(m.order.reversed(), Kind.BOOLEAN), "NOT reverses")


@rule(exp.And, exp.Or)
def _joined(node: exp.Expr, parts: Parts) -> Conclusion:
    left, right = parts.of(node.this), parts.of(node.expression)
    if left.kind is not Kind.BOOLEAN or right.kind is not Kind.BOOLEAN or left.null or right.null:
        return none("AND and OR have a rule for conditions whose order is known", Kind.BOOLEAN)
    return Conclusion(
        Fact(_both(left.order, right.order).loosened(), Kind.BOOLEAN), "conditions with the same direction"
    )


# -- ladders --------------------------------------------------------------------------


@rule(exp.Case, exp.If)
def _ladder(node: exp.Expr, parts: Parts) -> Conclusion:
    """Prove a ladder: every condition changes once, all in one direction, so the branches follow each other in time."""
    if isinstance(node, exp.Case) and node.this is not None:
        return none("CASE with a value has no rule; write WHEN with full conditions")
    whens = node.args["ifs"] if isinstance(node, exp.Case) else [node]
    default = node.args.get("default") if isinstance(node, exp.Case) else node.args.get("false")
    listed = [(when.this, when.args["true"]) for when in whens]
    truths = [_truth(condition) for condition, _ in listed]
    listed = [pair for pair, truth in zip(listed, truths, strict=True) if truth is not False]
    if True in truths:  # branches after a condition that always holds are never reached
        always = [_truth(condition) for condition, _ in listed].index(True)
        listed, default = listed[:always], listed[always][1]
    if not listed:
        return Conclusion(parts.of(default), "the condition always holds") if default is not None else _open_ended()
    if default is None:
        return _open_ended()
    directions = {parts.of(condition).order.direction for condition, _ in listed}
    facts = [parts.of(result) for _, result in listed] + [parts.of(default)]
    if len(directions) > 1 or 0 in directions or any(parts.of(c).kind is not Kind.BOOLEAN for c, _ in listed):
        return none("a condition may change more than once, and so may the result", facts[0].kind)
    # Each branch with the range that the condition before it leaves.
    branches = [_cut(fact, *_edges(*branch)) for branch, fact in zip(listed, facts, strict=False)]
    branches.append(_otherwise(listed, default, facts[-1]))
    # If conditions become true, branches go upwards, from ELSE to the first; else the other way.
    in_time = branches[::-1] if directions == {1} else branches
    return _in_sequence(in_time, _common(facts))


def _open_ended() -> Conclusion:
    return none("CASE without ELSE is NULL in between")


def _truth(condition: exp.Expr) -> bool | None:
    condition = condition.unnest()
    if isinstance(condition, exp.Boolean):
        return bool(condition.this)
    same = isinstance(condition, exp.EQ) and isinstance(condition.this, exp.Literal)
    return True if same and condition.this == condition.expression else None


def _otherwise(listed: list[tuple[exp.Expr, exp.Expr]], default: exp.Expr, fact: Fact) -> Fact:
    for condition, _ in listed:
        low, high = _edges(condition, default)  # no condition holds, so each limit is the other one
        fact = _cut(fact, high, low)
    return fact


def _edges(condition: exp.Expr, result: exp.Expr) -> tuple[Decimal | None, Decimal | None]:
    """Return the range that ``m > c`` implies for the result if that is m itself; a wider range is harmless."""
    condition = condition.unnest()
    for m, c, swapped in ((condition.this, condition.expression, False), (condition.expression, condition.this, True)):
        if (
            m == result
            and isinstance(c, exp.Literal | exp.Neg)
            and isinstance(condition, exp.GT | exp.GTE | exp.LT | exp.LTE)
        ):
            number = c.this if isinstance(c, exp.Neg) else c
            if not isinstance(number, exp.Literal) or number.is_string:
                return None, None
            edge = Decimal(number.name) * (-1 if isinstance(c, exp.Neg) else 1)
            above = isinstance(condition, exp.GT | exp.GTE) != swapped
            return (edge, None) if above else (None, edge)
    return None, None


def _cut(fact: Fact, low: Decimal | None, high: Decimal | None) -> Fact:
    lows = [edge for edge in (fact.low, low) if edge is not None]
    highs = [edge for edge in (fact.high, high) if edge is not None]
    return replace(fact, low=max(lows) if lows else None, high=min(highs) if highs else None)


def _in_sequence(facts: list[Fact], kind: Kind) -> Conclusion:
    if kind is Kind.OTHER or not kind.number or any(fact.null for fact in facts):
        return none("CASE has a rule for numbers that are never NULL", kind)
    for way in (Order.ASCENDING, Order.DESCENDING):
        if all(fact.order is Order.CONSTANT or fact.order.loosened() is way for fact in facts) and all(
            _leads(before, after, way) for n, before in enumerate(facts) for after in facts[n + 1 :]
        ):
            return Conclusion(Fact(way, kind), "the branches follow each other, and no step goes back")
    return none("the branches do not follow each other in one direction", kind)


def _leads(before: Fact, after: Fact, way: Order) -> bool:
    if way is Order.DESCENDING:
        before, after = after, before
    return before.high is not None and after.low is not None and before.high <= after.low
