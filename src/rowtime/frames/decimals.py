"""Decimals: arithmetic whose digits Spark rounds once, and numbers of floating point by the digits that Java writes."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from rowtime.frames.kinds import MOST_DIGITS, decimal
from rowtime.frames.values import Value, holds_or_leaves, once, size_of
from rowtime.frames.words import Untranslated

EXACT: Final = "1e14"  # each number below it has 15 digits, of which a DOUBLE keeps all
LONGEST: Final = 9  # digits behind the point to which a DOUBLE is rounded
_NARROW: Final = 18  # digits of a decimal in 64 bits
_LEAST_SCALE: Final = 6  # of a quotient


def _as_decimal(of: Value, node: exp.Expr) -> tuple[Value, int, int]:
    """Return a number as a decimal; for a whole literal, Spark uses its own digits."""
    digits, scale = size_of(of.type)
    if of.whole:
        literal = node.unnest()
        if isinstance(literal, exp.Literal):
            digits = len(str(int(literal.name)))
        elif isinstance(literal, exp.Neg | exp.Cast):
            raise Untranslated(node.sql())
    kind = decimal(digits, scale)
    return Value(f"CAST({of.sql} AS {kind})" if of.whole else of.sql, kind), digits, scale


def as_decimals(node: exp.Expr, left: Value, right: Value) -> tuple[Value, Value]:
    """Return both sides of an operator as decimals."""
    return _as_decimal(left, node.this)[0], _as_decimal(right, node.expression)[0]


def of_decimals(sign: str, node: exp.Expr, left: Value, right: Value) -> Value:
    """Return a sum, difference or product."""
    (left, p1, s1), (right, p2, s2) = _as_decimal(left, node.this), _as_decimal(right, node.expression)
    scale = s1 + s2 if sign == "*" else max(s1, s2)
    kind = decimal(p1 + p2 + 1 if sign == "*" else max(p1 - s1, p2 - s2) + scale + 1, scale)
    if sign != "*":
        left, right = (Value(f"CAST({side.sql} AS {kind})", kind) for side in (left, right))
    elif max(p1, p2) <= _NARROW < p1 + p2:  # DuckDB would multiply them in 64 bits
        left = Value(f"CAST({left.sql} AS {decimal(_NARROW + 1, s1)})", kind)
    return Value(f"CAST({left.sql} {sign} {right.sql} AS {kind})", kind)


def count_of(number: str, places: int) -> str:
    """Return how many units of the last place a positive DOUBLE has, if it has at most 15 digits."""
    unit = power(places)
    below = f"floor(abs({number}) * {unit})"
    return f"({below} + CASE WHEN abs({number}) >= ({below} * 2 + 1) / (2 * {unit}) THEN 1 ELSE 0 END)"


def from_double(number: str, kind: str) -> str:
    """Return a DOUBLE as a decimal, rounded as Java does; Spark casts those with more than 15 digits."""
    _, scale = size_of(kind)
    if scale > LONGEST:
        raise Untranslated(kind)

    def exact(number: str) -> str:
        sign = f"CASE WHEN {number} < 0 THEN -1 ELSE 1 END"
        count = f"CAST({count_of(number, scale)} AS BIGINT) * {sign}"
        within = holds_or_leaves(f"abs({number}) * {power(scale)} < {EXACT}")
        return f"CASE WHEN {within} THEN {_of_count(f'CAST({count} AS HUGEINT)', scale, kind)} END"

    return once(number, exact)


def power(places: int) -> str:
    """Return a power of ten as a DOUBLE."""
    return f"1e{places}"


def _of_count(count: str, scale: int, kind: str) -> str:
    """Return so many units of the last place as a decimal."""
    if not scale:
        return f"CAST({count} AS {kind})"
    unit = f"CAST('0.{'1':0>{scale}}' AS DECIMAL({scale}, {scale}))"
    return f"CAST(CAST({count} AS DECIMAL(38, 0)) * {unit} AS {kind})"


def _count(of: Value) -> str:
    """Return how many units of its last place a decimal has."""
    digits, scale = size_of(of.type)
    if digits + scale >= MOST_DIGITS:
        raise Untranslated(of.type)
    factor = f"CAST('1{'0' * scale}' AS DECIMAL({scale + 1}, 0))"
    return (
        f"CAST(CAST({of.sql} AS DECIMAL(38, {scale})) * {factor} AS HUGEINT)"
        if scale
        else (f"CAST({of.sql} AS HUGEINT)")
    )


def quotient(left: Value, right: Value) -> Value:
    """Return a quotient of decimals, whose digits Spark rounds once; it fails for a divisor of zero."""
    (p1, s1), (p2, s2) = size_of(left.type), size_of(right.type)
    scale = max(_LEAST_SCALE, s1 + p2 + 1)
    kind = decimal(p1 - s1 + s2 + scale, scale)
    if size_of(kind)[0] >= MOST_DIGITS:
        raise Untranslated(kind)
    sql = _rounded_quotient(_count(left), _count(right), scale - s1 + s2)
    return Value(_of_count(sql, scale, kind), kind)


def _rounded_quotient(dividend: str, divisor: str, places: int) -> str:
    """Return the whole number nearest to a quotient of whole numbers, times a power of ten."""

    def over(below: str) -> str:
        def of(above: str) -> str:
            half_up = f"(2 * abs({above}) * CAST('1{'0' * places}' AS HUGEINT) + abs({below})) // (2 * abs({below}))"
            return f"CASE WHEN ({above} < 0) <> ({below} < 0) THEN 0 - {half_up} ELSE {half_up} END"

        return once(dividend, of)

    return once(divisor, over)


def average(of: Value) -> Value:
    """Return the average of decimals: their sum is exact, and the quotient is rounded once."""
    digits, scale = size_of(of.type)
    total = Value(f"CAST(sum({of.sql}) AS {decimal(digits + 10, scale)})", decimal(digits + 10, scale))
    if digits + 10 + 5 > MOST_DIGITS:
        raise Untranslated(of.type)
    kind = decimal(digits + 4, scale + 4)
    sql = _of_count(_rounded_quotient(_count(total), f"CAST(count({of.sql}) AS HUGEINT)", 4), scale + 4, kind)
    return Value(f"CASE WHEN count({of.sql}) > 0 THEN {sql} END", kind)
