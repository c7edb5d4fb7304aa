"""Dates, timestamps and intervals, in UTC. Rounding keeps the direction, never strictness."""

from __future__ import annotations

from sqlglot import exp

from rowtime.core.time import MIN_MICROS
from rowtime.expr.facts import Fact, Kind
from rowtime.expr.order import Order
from rowtime.expr.rules.arithmetic import plus, reversed_
from rowtime.expr.rules.table import NAMED, RULES, Conclusion, Parts, arguments, kept, none, rounded, rule
from rowtime.sql.nodes import Before, CurrentRowTimestamp, Step

_UNITS = frozenset({
    "YEAR", "YYYY", "YY", "QUARTER", "MONTH", "MM", "MON", "WEEK", "DAY", "DD", "HOUR", "MINUTE", "SECOND",
    "MILLISECOND", "MICROSECOND", "DECADE", "CENTURY",
})  # fmt: skip
_UNITS_OF_DAYS = frozenset({"YEAR", "YYYY", "YY", "QUARTER", "MONTH", "MM", "MON", "WEEK"})
_WHOLE_DAYS = _UNITS - {"HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND"}
_FIXED = frozenset({"WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND", "DAYOFYEAR"})
_RISING_FIELDS = frozenset({"YEAR", "YEARS", "Y", "YR", "YRS", "YEAROFWEEK"})


def _unit(node: exp.Expr | None) -> str:
    name = node.name.upper() if isinstance(node, exp.Expr) else ""
    return name if name in _UNITS else name.removesuffix("S")


@rule(exp.Floor, exp.Ceil, exp.TimestampTrunc, exp.DateTrunc)
def _rounded_to(node: exp.Expr, parts: Parts) -> Conclusion:
    unit = node.args.get("to") if isinstance(node, exp.Floor | exp.Ceil) else node.args.get("unit")
    m, name = parts.of(node.this), type(node).__name__.upper()
    if unit is None:
        digits = node.args.get("decimals")
        if not m.kind.number or (digits is not None and parts.of(digits).constant is None):
            return none(f"{name} without a unit has a rule for numbers")
        return rounded(
            m, Kind.DECIMAL if digits is not None else Kind.INTEGER, "rounding to whole numbers keeps the direction"
        )
    units = _UNITS_OF_DAYS if isinstance(node, exp.DateTrunc) else _UNITS  # TRUNC to an hour is NULL
    if _unit(unit) not in units or not m.kind.time:
        return none(f"rounding to {unit.name} has a rule for dates, timestamps and units of time", Kind.TIMESTAMP)
    kind = Kind.DATE if isinstance(node, exp.DateTrunc) else Kind.TIMESTAMP
    m = m.by_day() if _unit(unit) in _WHOLE_DAYS else m
    result = rounded(m, kind, f"rounding to {_unit(unit)} keeps the direction")
    if kind is Kind.DATE:
        return result
    # Rounding stays within the years from 1 on; rounding up may leave 9999.
    return Conclusion(result.fact.within(m.low, None if isinstance(node, exp.Ceil) else m.high), result.rule)


NOT_THE_ROWTIME = "rows come in the order of ROWTIME, which is not the arrival time here"


@rule(CurrentRowTimestamp)
def _arrival(node: exp.Expr, parts: Parts) -> Conclusion:  # noqa: ARG001 - a rule
    # If ROWTIME is the arrival time, CURRENT_ROW_TIMESTAMP is bound to it and ascends like it.
    return none(NOT_THE_ROWTIME, Kind.TIMESTAMP)


@rule(Before)
def _before(node: exp.Expr, parts: Parts) -> Conclusion:
    return Conclusion(parts.of(node.this), "the last instant before a time keeps its order")


@rule(Step)
def _step(node: exp.Expr, parts: Parts) -> Conclusion:
    m, by = parts.of(node.this), parts.of(node.expression)
    if by.constant is None or by.constant <= 0:
        return none("STEP needs a constant step above 0", m.kind)
    if m.kind not in (Kind.INTEGER, Kind.DECIMAL) and not m.kind.time:
        return none("STEP has a rule for exact numbers and times; that of infinity is NaN", m.kind)
    return rounded(m, Kind.TIMESTAMP if m.kind.time else m.kind, "STEP keeps the direction")


@rule("TUMBLE", "TUMBLE_START", "TUMBLE_END")
def _tumble(node: exp.Expr, parts: Parts) -> Conclusion:
    m = parts.of(node.expressions[0])
    if not m.kind.time or any(parts.of(other).order is not Order.CONSTANT for other in node.expressions[1:]):
        return none("a window has a rule for a time and a constant width", Kind.TIMESTAMP)
    return rounded(m, Kind.TIMESTAMP, "the window of a time keeps its direction")


@rule("TIME_BUCKET")
def _bucket(node: exp.Expr, parts: Parts) -> Conclusion:
    width, m, *origin = (parts.of(part) for part in node.expressions)
    if width.kind is not Kind.DAYS or not width.constant or not m.kind.time or any(o.order.moves for o in origin):
        return none("TIME_BUCKET has a rule for a constant day-time width", Kind.TIMESTAMP)
    return rounded(m, Kind.TIMESTAMP, "a bucket keeps the direction of its time")


@rule(exp.Extract, exp.Year, "DATE_PART", "DATEPART")
def _extract(node: exp.Expr, parts: Parts) -> Conclusion:
    field, source = (exp.var("YEAR"), node.this) if isinstance(node, exp.Year) else arguments(node)
    m = parts.of(source)
    if field.name.upper() not in _RISING_FIELDS:
        return none(f"{field.name.upper()} repeats", Kind.INTEGER)
    if not m.kind.time:
        return none("only a date or timestamp has a year", Kind.INTEGER)
    low = 1 if m.low is not None and m.low >= MIN_MICROS else None
    result = rounded(m.by_day(), Kind.INTEGER, "the year never falls as time passes")
    return Conclusion(result.fact.within(low, None), result.rule)


@rule(exp.LastDay, exp.NextDay)
def _day_behind(node: exp.Expr, parts: Parts) -> Conclusion:
    m = parts.of(node.this)
    if not m.kind.time or any(parts.of(part).order is not Order.CONSTANT for part in arguments(node)[1:]):
        return none("this has a rule for a time and constants", Kind.DATE)
    return rounded(m.by_day(), Kind.DATE, "the day keeps the direction of the time")


@rule(exp.TsOrDsToDate)
def _to_date(node: exp.Expr, parts: Parts) -> Conclusion:
    m = parts.of(node.this)
    if not m.kind.time or node.args.get("format") is not None:
        return none("a cast of text to a date has no known order", Kind.DATE)
    if m.kind is Kind.DATE:
        return kept(m, Kind.DATE, "a date stays the same")
    result = rounded(m.by_day(), Kind.DATE, "the day never falls as time passes")
    return Conclusion(result.fact.within(m.low, None), result.rule)


# -- counts of time -------------------------------------------------------------------


def _converted(source: Kind, kind: Kind, *, exact: bool) -> object:
    def convert(node: exp.Expr, parts: Parts) -> Conclusion:
        m = parts.of(node.expressions[0] if isinstance(node, exp.Anonymous) else node.this)
        if m.kind is source or (source is Kind.TIMESTAMP and m.kind is Kind.DATE):
            words = "the time as a number" if kind is Kind.INTEGER else "the number as a time"
            return kept(m, kind, words) if exact else rounded(m, kind, words + ", rounded")
        return none(f"this has a rule for a {source.value}", kind)

    return convert


RULES[exp.UnixDate] = _converted(Kind.DATE, Kind.INTEGER, exact=True)  # type: ignore[assignment]
RULES[exp.UnixMicros] = _converted(Kind.TIMESTAMP, Kind.INTEGER, exact=True)  # type: ignore[assignment]
RULES[exp.UnixMillis] = _converted(Kind.TIMESTAMP, Kind.INTEGER, exact=False)  # type: ignore[assignment]
RULES[exp.UnixSeconds] = _converted(Kind.TIMESTAMP, Kind.INTEGER, exact=False)  # type: ignore[assignment]
RULES[exp.DateFromUnixDate] = _converted(Kind.INTEGER, Kind.DATE, exact=True)  # type: ignore[assignment]
for _name in ("UNIX_TIMESTAMP", "TO_UNIX_TIMESTAMP"):
    NAMED[_name] = _converted(Kind.TIMESTAMP, Kind.INTEGER, exact=False)  # type: ignore[assignment]
for _name in ("TIMESTAMP_SECONDS", "TIMESTAMP_MILLIS", "TIMESTAMP_MICROS"):
    NAMED[_name] = _converted(Kind.INTEGER, Kind.TIMESTAMP, exact=True)  # type: ignore[assignment]


# -- shifts and distances -------------------------------------------------------------


@rule(exp.TimestampAdd)
def _timestamp_add(node: exp.Expr, parts: Parts) -> Conclusion:
    m, count, unit = parts.of(node.this), parts.of(node.expression), _unit(node.args.get("unit"))
    if not m.kind.time or count.kind is not Kind.INTEGER:
        return none("TIMESTAMPADD has a rule for a time and a whole number", Kind.TIMESTAMP)
    if unit not in _FIXED:
        return plus(Fact(m.order, Kind.TIMESTAMP), Fact(count.order, Kind.MONTHS), Kind.TIMESTAMP)
    return plus(Fact(m.order, Kind.TIMESTAMP), Fact(count.order, Kind.DAYS), Kind.TIMESTAMP)


@rule(exp.TsOrDsAdd, "DATE_SUB")
def _date_add(node: exp.Expr, parts: Parts) -> Conclusion:
    m, count = (parts.of(part) for part in arguments(node)[:2])
    adds = isinstance(node, exp.TsOrDsAdd)
    if not m.kind.time or count.kind is not Kind.INTEGER:
        return none(f"DATE_{'ADD' if adds else 'SUB'} has a rule for a date and a whole number of days", Kind.DATE)
    days = Fact(count.order, Kind.INTEGER)
    date = Fact(m.order if m.kind is Kind.DATE else m.order.loosened(), Kind.DATE)
    return plus(date, days if adds else reversed_(days), Kind.DATE)


@rule(exp.AddMonths)
def _add_months(node: exp.Expr, parts: Parts) -> Conclusion:
    m, count = parts.of(node.this), parts.of(node.expression)
    if not m.kind.time or count.kind is not Kind.INTEGER:
        return none("ADD_MONTHS has a rule for a date and a whole number", Kind.DATE)
    return plus(Fact(m.order.loosened(), Kind.DATE), Fact(count.order.loosened(), Kind.MONTHS), Kind.DATE)


@rule(exp.DateDiff)
def _date_diff(node: exp.Expr, parts: Parts) -> Conclusion:
    end, start = parts.of(node.this), parts.of(node.expression)
    if node.args.get("unit") is not None or not (end.kind.time and start.kind.time):
        return none("DATEDIFF has a rule for days between two dates", Kind.INTEGER)
    difference = plus(Fact(end.order, Kind.INTEGER), Fact(start.order.reversed(), Kind.INTEGER), Kind.INTEGER)
    return Conclusion(difference.fact.as_(difference.fact.order.loosened()), difference.rule)


@rule(exp.TimestampDiff)
def _timestamp_diff(node: exp.Expr, parts: Parts) -> Conclusion:
    end, start, unit = parts.of(node.this), parts.of(node.expression), _unit(node.args.get("unit"))
    if unit not in _FIXED or not (end.kind.time and start.kind.time):
        return none("TIMESTAMPDIFF has a rule for units of fixed length", Kind.INTEGER)
    difference = plus(Fact(end.order, Kind.DAYS), reversed_(Fact(start.order, Kind.DAYS)), Kind.DAYS)
    return Conclusion(Fact(difference.fact.order.loosened(), Kind.INTEGER), difference.rule)


# -- made from parts ------------------------------------------------------------------


@rule("MAKE_DATE", "MAKE_TIMESTAMP")
def _from_parts(node: exp.Expr, parts: Parts) -> Conclusion:
    facts = [parts.of(part) for part in arguments(node)]
    moving = [fact for fact in facts if fact.order is not Order.CONSTANT]
    kind = Kind.DATE if isinstance(node, exp.Anonymous) and node.name.upper() == "MAKE_DATE" else Kind.TIMESTAMP
    if len(moving) != 1 or not all(fact.kind in (Kind.INTEGER, Kind.DECIMAL) for fact in facts):
        return none(
            "a time made from parts has a rule if only one part is not constant, and all are exact numbers", kind
        )
    return rounded(moving[0], kind, "a time made from constants and one part keeps the direction of that part")


@rule("MAKE_DT_INTERVAL", "MAKE_YM_INTERVAL")
def _interval(node: exp.Expr, parts: Parts) -> Conclusion:
    kind = Kind.DAYS if node.name.upper() == "MAKE_DT_INTERVAL" else Kind.MONTHS
    facts = [parts.of(part) for part in node.expressions]
    if not facts or not all(fact.kind in (Kind.INTEGER, Kind.DECIMAL) for fact in facts):
        return none("an interval made from parts has a rule for exact numbers", kind)
    order = facts[0].order
    for fact in facts[1:]:
        order = order.plus(fact.order)
    return Conclusion(Fact(order.loosened(), kind), "an interval grows with its parts")
