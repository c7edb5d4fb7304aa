"""Functions of numbers. Java specifies those listed here from its Math class as semi-monotonic.

ASINH, ACOSH and ATANH are missing: Spark computes them by formulas that cancel digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from sqlglot import exp

from rowtime.expr.facts import Fact, Kind
from rowtime.expr.rules.table import NAMED, RULES, Conclusion, Parts, arguments, constant, none, rounded, rule


@dataclass(frozen=True)
class _Rising:
    """A function that rises above ``above`` (if ``closed``, from it on), with a result in [low, high]."""

    above: int | None = None
    closed: bool = False
    low: int | None = None
    high: int | None = None

    def __call__(self, node: exp.Expr, parts: Parts) -> Conclusion:
        m = parts.of(node.expressions[0] if isinstance(node, exp.Anonymous) else node.this)
        name = node.name.upper() if isinstance(node, exp.Anonymous) else type(node).__name__.upper()
        if not m.kind.number:
            return none(f"{name} of a value of {m.kind.value} kind has no rule")
        if self.above is not None and not _above(m, self.above, closed=self.closed):
            edge = f"{'at least' if self.closed else 'above'} {self.above}"
            return none(f"{name} rises only {edge}, which is not known for its argument", Kind.FLOAT)
        result = rounded(m, Kind.FLOAT, f"{name} rises")
        return Conclusion(result.fact.within(self.low, self.high), result.rule)


def _above(m: Fact, edge: int, *, closed: bool) -> bool:
    if m.low is None:
        return False
    return m.low > edge or (m.low == edge and (closed or (edge == 0 and not m.zero)))


for _kind in (exp.Cbrt, exp.Atan, exp.Tanh, exp.Sinh, exp.Degrees, exp.Radians, exp.Rint):
    RULES[_kind] = _Rising()
RULES[exp.Exp] = _Rising(low=0)
RULES[exp.Sign] = _Rising(low=-1, high=1)
RULES[exp.Sqrt] = _Rising(above=0, closed=True, low=0)
RULES[exp.Ln] = _Rising(above=0)
NAMED["LOG"] = _Rising(above=0)  # with one argument; with a base it is a node
NAMED["EXPM1"] = _Rising(low=-1)
NAMED["LOG1P"] = _Rising(above=-1)


@rule(exp.Log)
def _log(node: exp.Expr, parts: Parts) -> Conclusion:
    base, m = parts.of(node.this), parts.of(node.expression)
    if base.constant is None or base.constant <= 0 or base.constant == 1 or not _above(m, 0, closed=False):
        return none("LOG has a rule for arguments above 0 and a constant base above 0 that is not 1", Kind.FLOAT)
    order = m.order.loosened()
    return Conclusion(Fact(order if base.constant > 1 else order.reversed(), Kind.FLOAT), "LOG to a constant base")


@rule(exp.Pow)
def _pow(node: exp.Expr, parts: Parts) -> Conclusion:
    base, power = parts.of(node.this), parts.of(node.expression)
    if base.constant is not None and power.kind.number:
        if base.constant <= 0:
            return none("a power of a base that may not be positive can change direction", Kind.FLOAT)
        order = power.order.loosened() if base.constant >= 1 else power.order.loosened().reversed()
        return Conclusion(Fact(order, Kind.FLOAT).within(0, None), "c ^ m")
    if power.constant is None or not base.kind.number:
        return none("a power has a rule for a constant base or a constant exponent", Kind.FLOAT)
    return _to_constant(base, power.constant)


def _to_constant(m: Fact, power: Decimal) -> Conclusion:
    whole, order = power == power.to_integral_value(), m.order.loosened()
    if m.sign == 1 and power >= 0:
        return Conclusion(Fact(order, Kind.FLOAT).within(0, None), "m ^ c, m never below 0, c ≥ 0")
    if m.sign == 1 and not m.zero:
        return Conclusion(Fact(order.reversed(), Kind.FLOAT).within(0, None), "m ^ c, m above 0, c < 0")
    if whole and power > 0 and power % 2 == 1:
        return Conclusion(Fact(order, Kind.FLOAT), "an odd power keeps the order")
    if whole and power > 0 and m.sign == -1:
        return Conclusion(
            Fact(order.reversed(), Kind.FLOAT), "an even power of a value that is never above 0 reverses the order"
        )
    return none("the power changes direction at zero", Kind.FLOAT)


@rule(exp.Abs)
def _abs(node: exp.Expr, parts: Parts) -> Conclusion:
    m = parts.of(node.this)
    if m.sign is None or not m.kind.number:
        return none("ABS changes direction at zero", m.kind)
    order = m.order if m.sign >= 0 else m.order.reversed()
    return Conclusion(Fact(order, m.kind).within(0, None, zero=m.zero), "ABS of what never changes its sign")


@rule(exp.Round, "BROUND")
def _round(node: exp.Expr, parts: Parts) -> Conclusion:
    listed = node.expressions if isinstance(node, exp.Anonymous) else [node.this, node.args.get("decimals")]
    digits = listed[1] if len(listed) > 1 else None
    m = parts.of(listed[0])
    if not m.kind.number or (digits is not None and parts.of(digits).constant is None):
        return none("rounding has a rule for numbers and a constant number of digits")
    return rounded(m, m.kind, "rounding keeps the direction")


@rule(exp.WidthBucket)
def _bucket(node: exp.Expr, parts: Parts) -> Conclusion:
    m, low, high = (parts.of(node.args[name]) for name in ("this", "min_value", "max_value"))
    count = parts.of(node.args["num_buckets"])
    if low.constant is None or high.constant is None or count.constant is None or low.constant == high.constant:
        return none("WIDTH_BUCKET has a rule for constant edges that differ", Kind.INTEGER)
    if not m.kind.number:
        return none("WIDTH_BUCKET has a rule for numbers", Kind.INTEGER)
    order = m.order.loosened() if low.constant < high.constant else m.order.loosened().reversed()
    return Conclusion(Fact(order, Kind.INTEGER), "WIDTH_BUCKET with constant edges")


@rule(exp.BitwiseRightShift, "SHIFTRIGHT")
def _shift(node: exp.Expr, parts: Parts) -> Conclusion:
    m, by = (parts.of(part) for part in arguments(node)[:2])
    if m.kind is not Kind.INTEGER or by.constant is None:
        return none("a shift has a rule for whole numbers and a constant number of bits", Kind.INTEGER)
    return rounded(m, Kind.INTEGER, "a shift to the right rounds down")


@rule(exp.Mod, "MOD", "PMOD")
def _mod(node: exp.Expr, parts: Parts) -> Conclusion:
    listed = node.expressions if isinstance(node, exp.Anonymous) else [node.this, node.expression]
    m, by = parts.of(listed[0]), parts.of(listed[1])
    if by.constant == 0 or m.null or by.null:
        return constant(m.kind, "a remainder by 0 or NULL is never a value")
    return none("a remainder wraps", m.kind)
