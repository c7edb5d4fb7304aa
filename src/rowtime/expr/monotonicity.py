"""Monotonicity: which order an expression over a stream has, by the rules of SPEC 6.

One rule a kind of node, in one table. What has no rule has no order: unknown is no.
Columns stand for themselves; ``columns`` says what is known about each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation

from sqlglot import exp

from rowtime.expr.order import Order
from rowtime.sql.nodes import Monotonic, Step

Columns = Mapping[str, Order]
Rule = Callable[[exp.Expr, Columns], Order]

NON_DETERMINISTIC: frozenset[str] = frozenset({
    "RAND", "RANDN", "RANDOM", "UUID", "SHUFFLE", "SPARK_PARTITION_ID", "MONOTONICALLY_INCREASING_ID",
    "INPUT_FILE_NAME", "INPUT_FILE_BLOCK_START", "INPUT_FILE_BLOCK_LENGTH", "RANDSTR", "UNIFORM",
    "CLOCK_TIMESTAMP", "SESSION_USER_RANDOM",
})  # fmt: skip
"""Functions whose value is no function of the row; queries that use them are refused (SPEC 3)."""

_KEEPS_PREFIXES = frozenset({"YEAR", "DECADE", "CENTURY", "MILLENNIUM", "EPOCH"})
_ROUNDS = (exp.Floor, exp.Ceil, Step, exp.TimestampTrunc, exp.DateTrunc, exp.LastDay, exp.Year)
_EXACT_TIMES = (exp.UnixMicros, exp.UnixMillis, exp.UnixSeconds)


def order_of(node: exp.Expr, columns: Columns) -> Order:
    """The order of a bound expression; ``Order.NONE`` where no rule proves one."""
    if is_constant(node):
        return Order.CONSTANT
    if isinstance(node, exp.Column):
        return columns.get(node.name, Order.NONE)
    for kind, rule in _RULES.items():
        if isinstance(node, kind):
            return rule(node, columns)
    return Order.NONE


def is_constant(node: exp.Expr) -> bool:
    """True if there is no column, aggregate, window or non-deterministic call inside."""
    banned = (exp.Column, exp.Star, exp.AggFunc, exp.Window, exp.Subquery, exp.Query)
    return not any(isinstance(part, banned) or non_deterministic(part) for part in node.walk())


def non_deterministic(node: exp.Expr) -> bool:
    """True for a call whose value is no function of its row."""
    if isinstance(node, (exp.Rand, exp.Randn, exp.Uuid)):
        return True
    return isinstance(node, exp.Anonymous) and node.name.upper() in NON_DETERMINISTIC


def number_of(node: exp.Expr) -> Decimal | None:
    """The value of a constant number, folded; ``None`` for NULL and what is not folded here."""
    if isinstance(node, exp.Paren | exp.Cast):
        return number_of(node.this)
    if isinstance(node, exp.Neg):
        inner = number_of(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Add | exp.Sub | exp.Mul):
        return _fold(node)
    if isinstance(node, exp.Literal):
        try:
            return Decimal(node.name)
        except InvalidOperation:
            return None
    return None


def _fold(node: exp.Binary) -> Decimal | None:
    left, right = number_of(node.this), number_of(node.expression)
    if left is None or right is None:
        return None
    if isinstance(node, exp.Add):
        return left + right
    return left - right if isinstance(node, exp.Sub) else left * right


def _same(node: exp.Expr, columns: Columns) -> Order:
    return order_of(node.this, columns)


def _rounded(node: exp.Expr, columns: Columns) -> Order:
    return order_of(node.this, columns).loosened()


def _negated(node: exp.Expr, columns: Columns) -> Order:
    return order_of(node.this, columns).reversed()


def _sum(node: exp.Expr, columns: Columns) -> Order:
    if _month_interval(node.this) or _month_interval(node.expression):
        return Order.NONE
    return order_of(node.this, columns).plus(order_of(node.expression, columns))


def _difference(node: exp.Expr, columns: Columns) -> Order:
    if _month_interval(node.expression):
        return Order.NONE
    return order_of(node.this, columns).plus(order_of(node.expression, columns).reversed())


def _month_interval(node: exp.Expr) -> bool:
    # A month added to 30 January 23:00 and 31 January 01:00 makes them change places.
    units = {str(unit).upper().rstrip("S") for unit in node.find_all(exp.Var)}
    return isinstance(node, exp.Interval) and bool(units & {"MONTH", "YEAR", "QUARTER"})


def _product(node: exp.Expr, columns: Columns) -> Order:
    for factor, other in ((node.this, node.expression), (node.expression, node.this)):
        if is_constant(factor):
            return _scaled(order_of(other, columns), _sign(factor))
    return Order.NONE


def _quotient(node: exp.Expr, columns: Columns) -> Order:
    if is_constant(node.expression):
        return _scaled(order_of(node.this, columns), _sign(node.expression))
    return Order.NONE


def _sign(node: exp.Expr) -> int | None:
    if isinstance(node, exp.Interval):
        node = node.this
    number = number_of(node)
    return None if number is None else (number > 0) - (number < 0)


def _scaled(order: Order, sign: int | None) -> Order:
    if sign is None or sign == 0:
        return Order.CONSTANT if sign == 0 and order.monotonic else Order.NONE
    scaled = order if sign > 0 else order.reversed()
    return scaled.loosened()  # rounding of fractions may merge neighbours


def _extract(node: exp.Expr, columns: Columns) -> Order:
    if node.name.upper() in _KEEPS_PREFIXES:
        return order_of(node.expression, columns).loosened()
    return Order.NONE


_TEMPORAL = (exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ)


def _cast(node: exp.Expr, columns: Columns) -> Order:
    if node.args["to"].this in _TEMPORAL and columns.get("__temporal__") is not Order.NONE:
        inner = order_of(node.this, columns)
        return inner.loosened() if _about_time(node.this) else Order.NONE
    return Order.NONE


def _about_time(node: exp.Expr) -> bool:
    """True if the value is a time for sure: the rowtime, or a rounding or shift of one."""
    if isinstance(node, exp.Column):
        return node.name == "__t"
    kinds = (exp.Floor, exp.Ceil, Step, exp.TimestampTrunc, exp.Paren, exp.Cast, exp.Add, exp.Sub)
    return isinstance(node, kinds) and _about_time(node.this)


def _promised(_node: exp.Expr, _columns: Columns) -> Order:
    return Order.ASCENDING


_RULES: dict[type[exp.Expr] | tuple[type[exp.Expr], ...], Rule] = {
    exp.Paren: _same,
    exp.Neg: _negated,
    exp.Add: _sum,
    exp.Sub: _difference,
    exp.Mul: _product,
    exp.Div: _quotient,
    exp.Extract: _extract,
    exp.Cast: _cast,
    exp.TsOrDsToDate: lambda n, c: _rounded(n, c) if _about_time(n.this) else Order.NONE,
    Monotonic: _promised,
    _ROUNDS: _rounded,
    _EXACT_TIMES: _rounded,
}
