"""Sums, differences, products and quotients (semantics 6).

Floating point keeps the direction and never strictness. A sum of two infinities of opposite sign, a zero times an
infinity and a quotient of infinities are NaN, which Spark orders above all numbers. Where they are possible there is no
order.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from sqlglot import exp

from rowtime.expr.facts import Fact, Kind, wider
from rowtime.expr.order import Order
from rowtime.expr.rules.table import Conclusion, Parts, arguments, constant, none, rule

_MERGED = (Kind.FLOAT, Kind.DECIMAL)  # rounding may make neighbours equal, in decimals beyond 38 digits
_TIMES = {
    (Kind.TIMESTAMP, Kind.DAYS): Kind.TIMESTAMP,
    (Kind.DATE, Kind.DAYS): Kind.TIMESTAMP,
    (Kind.DATE, Kind.INTEGER): Kind.DATE,
    (Kind.DATE, Kind.MONTHS): Kind.DATE,
    (Kind.DAYS, Kind.DAYS): Kind.DAYS,
    (Kind.MONTHS, Kind.MONTHS): Kind.MONTHS,
}


@rule(exp.Paren)
def _paren(node: exp.Expr, parts: Parts) -> Conclusion:
    return Conclusion(parts.of(node.this), "parentheses")


@rule("POSITIVE")
def _positive(node: exp.Expr, parts: Parts) -> Conclusion:
    return Conclusion(parts.of(node.expressions[0]), "+m keeps the order")


@rule(exp.Neg, "NEGATIVE")
def _neg(node: exp.Expr, parts: Parts) -> Conclusion:
    m = parts.of(arguments(node)[0])
    if not (m.kind.number or m.kind in (Kind.DAYS, Kind.MONTHS)):
        return none(f"-m of a value of {m.kind.value} kind is not known")
    return Conclusion(reversed_(m), "-m reverses")


def reversed_(m: Fact) -> Fact:
    """Return the fact of ``-m``."""
    low, high = (None if edge is None else -edge for edge in (m.high, m.low))
    return Fact(m.order.reversed(), m.kind, low, high, m.zero, m.null)


@rule(exp.Add)
def _add(node: exp.Expr, parts: Parts) -> Conclusion:
    left, right = parts.of(node.this), parts.of(node.expression)
    kind = _sum_kind(left.kind, right.kind) or _sum_kind(right.kind, left.kind)
    return plus(left, right, kind, same=node.this == node.expression)


@rule(exp.Sub)
def _sub(node: exp.Expr, parts: Parts) -> Conclusion:
    left, right = parts.of(node.this), parts.of(node.expression)
    kind = Kind.DAYS if left.kind.time and right.kind.time else _sum_kind(left.kind, right.kind)
    if node.this == node.expression and kind not in (None, Kind.FLOAT):
        fact = Fact(Order.CONSTANT, kind or Kind.OTHER)
        return Conclusion(fact.within(0, 0) if fact.kind.number else fact, "m - m is always 0")
    return plus(left, reversed_(right), kind)


def plus(left: Fact, right: Fact, kind: Kind | None, *, same: bool = False) -> Conclusion:
    """Return the sum of two facts; ``same``: of an expression with itself."""
    if left.null or right.null:
        return constant(kind or Kind.OTHER, "NULL in a sum makes it NULL")
    if kind is None:
        return none(f"a sum of {left.kind.value} and {right.kind.value} has no rule")
    if Kind.MONTHS in (left.kind, right.kind) and Kind.TIMESTAMP in (left.kind, right.kind):
        return none("months change the order of timestamps: 30 January 23:00 and 31 January 01:00, plus a month", kind)
    order = left.order.plus(right.order)
    if order is Order.NONE:
        return none(_why_no_sum(left, right), kind)
    moving = left.order.moves and right.order.moves
    if moving and left.kind is right.kind is Kind.FLOAT and not same:
        return none("two infinities of opposite sign give NaN, which is above all numbers", kind)
    if kind in _MERGED or Kind.MONTHS in (left.kind, right.kind):
        order = order.loosened()
    low = None if left.low is None or right.low is None else left.low + right.low
    high = None if left.high is None or right.high is None else left.high + right.high
    words = "m1 + m2 with the same direction keeps it" if moving else "m + c keeps the order"
    return Conclusion(_ranged(order, kind, low, high), words)


def _ranged(order: Order, kind: Kind, low: Decimal | None, high: Decimal | None) -> Fact:
    if not kind.number:
        return Fact(order, kind)
    fact = Fact(order, kind).within(low, high)
    return fact if kind is Kind.INTEGER or order is Order.CONSTANT else replace(fact.signed(), zero=True)


def _why_no_sum(left: Fact, right: Fact) -> str:
    if Order.NONE in (left.order, right.order):
        return "a sum with an expression without a known order has none"
    return "one part ascends and the other descends, so the sum has no order"


def _sum_kind(left: Kind, right: Kind) -> Kind | None:
    if left.number and right.number:
        return wider(left, right)
    if left is Kind.TIMESTAMP and right is Kind.MONTHS:
        return Kind.TIMESTAMP
    return _TIMES.get((left, right))


# -- products -------------------------------------------------------------------------


@rule(exp.Mul)
def _mul(node: exp.Expr, parts: Parts) -> Conclusion:
    left, right = parts.of(node.this), parts.of(node.expression)
    kind = _product_kind(left.kind, right.kind)
    if left.null or right.null:
        return constant(kind or Kind.OTHER, "NULL in a product makes it NULL")
    if kind is None:
        return none(f"a product of {left.kind.value} and {right.kind.value} has no rule")
    if Decimal(0) in (left.constant, right.constant) and left.kind.exact and right.kind.exact:
        return Conclusion(Fact(Order.CONSTANT, kind).within(0, 0), "m * 0 is always 0")
    both_move = Order.CONSTANT not in (left.order, right.order)
    if both_move and kind is Kind.FLOAT and (left.zero or right.zero):
        return none("zero times infinity gives NaN, which is above all numbers", kind)
    return times(left, right, kind, "m * c")


def times(left: Fact, right: Fact, kind: Kind, shown: str) -> Conclusion:
    """Return the product of two facts with known signs, by the order of its absolute value."""
    for m, c in ((left, right), (right, left)):
        if c.order is Order.CONSTANT and c.constant is not None and c.constant != 0:
            order = m.order if c.constant > 0 else m.order.reversed()
            exact = kind not in _MERGED and c.kind is not Kind.FLOAT
            words = (
                f"{shown}, c {'>' if c.constant > 0 else '<'} 0 {'keeps' if c.constant > 0 else 'reverses'} the order"
            )
            return _scaled(m, c.constant, order if exact else order.loosened(), kind, words)
    if not left.sign or not right.sign:
        return none("the product changes direction where a factor changes its sign, and the signs are not known", kind)
    size = _size(left).plus(_size(right)).loosened()
    sign = left.sign * right.sign
    if size is Order.NONE:
        return none("the absolute values of the factors do not have the same direction", kind)
    order = size if sign > 0 else size.reversed()
    fact = Fact(order, kind).within(0 if sign > 0 else None, 0 if sign < 0 else None)
    return Conclusion(fact, "the product of factors of known sign has the direction of their absolute values")


def _scaled(m: Fact, by: Decimal, order: Order, kind: Kind, words: str) -> Conclusion:
    if order is Order.NONE:
        return none("a multiple of an expression without a known order has none", kind)
    low, high = (None if edge is None else edge * by for edge in ((m.low, m.high) if by > 0 else (m.high, m.low)))
    return Conclusion(_ranged(order, kind, low, high), words)


def _size(m: Fact) -> Order:
    return m.order.reversed() if m.sign == -1 else m.order


def _product_kind(left: Kind, right: Kind) -> Kind | None:
    if left.number and right.number:
        return wider(left, right)
    for interval, other in ((left, right), (right, left)):
        if interval in (Kind.DAYS, Kind.MONTHS) and other.number:
            return interval
    return None


# -- quotients ------------------------------------------------------------------------


@rule(exp.Div)
def _div(node: exp.Expr, parts: Parts) -> Conclusion:
    left, right = parts.of(node.this), parts.of(node.expression)
    if left.kind in (Kind.DAYS, Kind.MONTHS) and right.kind.number:
        return _quotient(left, right, left.kind)
    if not (left.kind.number and right.kind.number) and not (left.null or right.null):
        return none(f"a quotient of {left.kind.value} and {right.kind.value} has no rule")
    return _quotient(left, right, Kind.FLOAT if Kind.DECIMAL not in (left.kind, right.kind) else Kind.DECIMAL)


@rule(exp.IntDiv)
def _int_div(node: exp.Expr, parts: Parts) -> Conclusion:
    left, right = parts.of(node.this), parts.of(node.expression)
    if not (left.kind.exact and right.kind.exact and left.kind.number == right.kind.number):
        return none("DIV has a rule for exact numbers only", Kind.INTEGER)
    quotient = _quotient(left, right, Kind.INTEGER)
    return Conclusion(quotient.fact.as_(quotient.fact.order.loosened(), Kind.INTEGER), quotient.rule)  # 1 DIV 5 is 0


def _quotient(left: Fact, right: Fact, kind: Kind) -> Conclusion:
    if left.null or right.null:
        return constant(kind, "NULL in a quotient makes it NULL")
    if right.constant == 0:
        return constant(kind, "m / 0 is an error or NULL, never a value")
    if left.constant == 0 and not right.zero and right.kind.exact:
        return Conclusion(Fact(Order.CONSTANT, kind).within(0, 0), "0 / m is always 0")
    if right.order is Order.CONSTANT and right.constant is not None:
        by = 1 / right.constant
        product = times(left, Fact(Order.CONSTANT, right.kind).within(by, by), kind, "m / c")
        return Conclusion(product.fact.as_(product.fact.order.loosened()), product.rule)
    why = _why_no_quotient(left, right)
    return none(why, kind) if why else _by_inverse(left, right, kind)


def _why_no_quotient(left: Fact, right: Fact) -> str:
    if right.order is Order.NONE:
        return "the divisor has no known order"
    if right.zero or right.sign in (None, 0):
        return "the divisor may be zero"
    if left.order.moves and left.kind is right.kind is Kind.FLOAT:
        return "infinity divided by infinity gives NaN, which is above all numbers"
    if left.order is Order.CONSTANT and left.constant is None:
        return "the sign of the dividend is not known"
    return ""


def _by_inverse(left: Fact, right: Fact, kind: Kind) -> Conclusion:
    """Return a quotient as a product with the inverse of a divisor that is never 0."""
    low, high = (0, None) if right.sign == 1 else (None, 0)
    inverse = Fact(right.order.reversed(), right.kind).within(low, high, zero=False)
    product = times(left, inverse, kind, "c / m")
    words = "c / m, m never 0, " + ("reverses" if (left.constant or 0) > 0 else "keeps") + " the order"
    return Conclusion(
        product.fact.as_(product.fact.order.loosened()), words if left.constant is not None else product.rule
    )
