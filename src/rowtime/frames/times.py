"""Translates functions of times and dates from Spark SQL to DuckDB, if both give the same values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from sqlglot import exp

from rowtime.core.time_patterns import parts_of
from rowtime.frames.computed_parts import is_safe
from rowtime.frames.kinds import TIMES
from rowtime.frames.text_casts import YEAR, time_of
from rowtime.frames.texts import literal, text_of
from rowtime.frames.values import NUMBER, READS, Rule, Scope, Value, cast, holds_or_leaves, once, only
from rowtime.frames.words import Untranslated, in_text

UNITS: Final = {
    "MICROSECOND": 1, "MILLISECOND": 1000, "SECOND": 10**6, "MINUTE": 60 * 10**6, "HOUR": 3600 * 10**6,
    "DAY": 86400 * 10**6, "WEEK": 7 * 86400 * 10**6,
}  # fmt: skip
_MONDAY: Final = 4 * 86400 * 10**6  # µs from 1970-01-01, a Thursday, to the Monday after it
_CALENDAR: Final = ("MONTH", "QUARTER", "YEAR")
_PARTS: Final = re.compile(r"(-?[0-9]+)[.]([0-9]{1,6})")


def micros(node: exp.Interval) -> int:
    """Return an interval in µs; raises ``Untranslated`` for one of months, and for another form."""
    only(node, READS[exp.Interval])
    unit = node.args.get("unit")
    size = UNITS.get(unit.name.upper().removesuffix("S")) if isinstance(unit, exp.Var) else None
    text = node.this.name if isinstance(node.this, exp.Literal) else ""
    parts = _PARTS.fullmatch(text)
    if size == UNITS["SECOND"] and parts is not None:
        return int(f"{parts[1]}{parts[2]:0<6}")
    if size is None or not NUMBER.fullmatch(text):
        raise Untranslated(node.sql())
    return size * int(text)


def truncated(node: exp.Expr, scope: Scope) -> Value:
    """Translate DATE_TRUNC of a time."""
    of, unit = scope.value(node.this), node.args["unit"].name.upper()
    if of.type != "timestamp":
        raise Untranslated(of.type)
    if unit in _CALENDAR:
        return Value(f"CAST(date_trunc('{unit.lower()}', {of.sql}) AS TIMESTAMP)", of.type)
    size = UNITS.get(unit)
    if size is None:
        raise Untranslated(unit)
    shift = _MONDAY if unit == "WEEK" else 0
    us = f"epoch_us({of.sql})"
    return Value(f"make_timestamp({us} - ((({us} - {shift}) % {size}) + {size}) % {size})", of.type)


_FIELDS: Final = {"yyyy": "%Y", "y": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
"""The fields of a DATE_FORMAT pattern in DuckDB's notation."""
_OF_DATES: Final = ("YEAR", "QUARTER", "MONTH", "DAY")
_OF_TIMES: Final = (*_OF_DATES, "HOUR", "MINUTE")
_READ: Final = {
    "yyyy": YEAR, "MM": "[0-9]{2}", "dd": "[0-9]{2}", "HH": "(?:[01][0-9]|2[0-3])", "mm": "[0-5][0-9]",
    "ss": "[0-5][0-9]",
}  # fmt: skip
"""The fields of a TO_TIMESTAMP pattern as regular expressions."""
_DATE: Final = ("yyyy", "MM", "dd")
_CLOCKS: Final = ((), ("HH", "mm"), ("HH", "mm", "ss"))
_SECOND: Final = UNITS["SECOND"]


def _inner(node: exp.Expr) -> exp.Expr:
    """Return what sqlglot has put into a conversion to a date."""
    return node.this if isinstance(node, exp.TsOrDsToDate) else node


def _part(name: str) -> Rule:
    """Return a part of a time, as a number."""

    def rule(node: exp.Expr, scope: Scope) -> Value:
        inner = _inner(node.this)
        of = scope.value(inner)
        if of.type not in TIMES and not (of.type == "date" and inner is not node.this):
            raise Untranslated(of.type)
        return Value(f"CAST({name}({of.sql}) AS INTEGER)", "int")

    return rule


def _part_of_date(form: str) -> Rule:
    """Return a part of the date of a time or of a date, as a number."""

    def rule(node: exp.Expr, scope: Scope) -> Value:
        [given] = node.expressions if isinstance(node, exp.Anonymous) else [_inner(node.this)]
        return Value(f"CAST({form.format(_date(given, scope))} AS INTEGER)", "int")

    return rule


def _date(node: exp.Expr, scope: Scope) -> str:
    """Return the date of a date or time."""
    of = scope.value(_inner(node))
    if of.type != "date" and of.type not in TIMES:
        raise Untranslated(of.type)
    return of.sql if of.type == "date" else f"CAST({of.sql} AS DATE)"


def _formatted(node: exp.Expr, scope: Scope) -> Value:
    """Translate DATE_FORMAT with fields of fixed length; Spark handles all but four-digit years."""
    time, pattern = node.expressions
    of = scope.value(time)
    if of.type not in TIMES or not isinstance(pattern, exp.Literal) or not pattern.name:
        raise Untranslated(node.sql())
    return Value(once(of.sql, lambda time: _written(time, pattern.name)), "string")


def _written(time: str, pattern: str) -> str:
    """Return a time as text."""
    whole = ""
    for part in parts_of(pattern):
        quoted_quote = len(part.text) > 1 and "'" in part.text  # Spark counts it as the end of the text
        if part.field not in ("", *_FIELDS) or not (part.field or part.text) or quoted_quote:
            raise Untranslated(pattern)
        whole += _FIELDS[part.field] if part.field else part.text.replace("%", "%%")
    text = f"strftime({time}, {in_text(whole)})"
    if "%Y" in whole:
        text = f"CASE WHEN {holds_or_leaves(f'year({time}) BETWEEN 1000 AND 9999')} THEN {text} END"
    return text


def _from_seconds(node: exp.Expr, scope: Scope) -> Value:
    """Translate FROM_UNIXTIME; the product wraps around in Spark, far beyond years of four digits."""
    number, *pattern = node.expressions
    of = scope.value(number)
    if not of.whole or len(pattern) > 1:
        raise Untranslated(node.sql())
    form = literal(pattern[0]) if pattern else "yyyy-MM-dd HH:mm:ss"
    time = f"make_timestamp({cast(of, 'bigint').sql} * {_SECOND})"
    return Value(once(time, lambda time: _written(time, form)), "string")


def _extracted(node: exp.Expr, scope: Scope) -> Value:
    """Translate EXTRACT; Spark has more parts, and other names of these."""
    of, part = scope.value(node.expression), node.name.upper()
    if part not in (_OF_DATES if of.type == "date" else _OF_TIMES if of.type in TIMES else ()):
        raise Untranslated(node.sql())
    return Value(f"CAST({part.lower()}({of.sql}) AS INTEGER)", "int")


def _since_1970(size: int, *, down: bool = True) -> Rule:
    """Return the rule of the units since 1970 of a time, rounded down or towards zero."""

    def rule(node: exp.Expr, scope: Scope) -> Value:
        [given] = node.expressions if isinstance(node, exp.Anonymous) else [node.this]
        of = scope.value(given)
        if of.type != "timestamp":
            raise Untranslated(of.type)
        if not down:
            return Value(f"(epoch_us({of.sql}) // {size})", "bigint")
        units = once(f"epoch_us({of.sql})", lambda us: f"(({us} - (({us} % {size}) + {size}) % {size}) // {size})")
        return Value(units, "bigint")

    return rule


def _time_of_number(size: int) -> Rule:
    def rule(node: exp.Expr, scope: Scope) -> Value:
        [of] = (scope.value(argument) for argument in node.expressions)
        if not of.whole:
            raise Untranslated(of.type)
        return Value(f"make_timestamp({cast(of, 'bigint').sql} * CAST({size} AS BIGINT))", "timestamp")

    return rule


def _later_date(node: exp.Expr, scope: Scope) -> Value:
    """Translate DATE_ADD, and DATE_SUB, which the parser writes as the addition of a product with -1."""
    by, sign = node.expression, "+"
    if isinstance(by, exp.Mul) and isinstance(by.expression, exp.Neg):
        by, sign = by.this, "-"
    days = scope.value(by)
    if days.type not in ("int", "smallint", "tinyint") or not is_safe(by) or node.args["unit"].name.upper() != "DAY":
        raise Untranslated(node.sql())
    return Value(f"CAST({_date(node.this, scope)} {sign} {cast(days, 'int').sql} AS DATE)", "date")


def _days_between(node: exp.Expr, scope: Scope) -> Value:
    if not is_safe(_inner(node.this)) or not is_safe(_inner(node.expression)):
        raise Untranslated(node.sql())
    last, first = (_date(part, scope) for part in (node.this, node.expression))
    return Value(f"CAST({last} - {first} AS INTEGER)", "int")


def _units_between(node: exp.Expr, scope: Scope) -> Value:
    """Translate TIMESTAMPDIFF in units of fixed length, of which only whole ones count."""
    size = UNITS[node.args["unit"].name.upper()]
    last, first = (scope.value(part) for part in (node.this, node.expression))
    if not last.type == first.type == "timestamp" or not is_safe(node.this) or not is_safe(node.expression):
        raise Untranslated(node.sql())
    return Value(f"((epoch_us({last.sql}) - epoch_us({first.sql})) // {size})", "bigint")


def _to_date(node: exp.Expr, scope: Scope) -> Value:
    given, *pattern = node.expressions
    if pattern:
        return Value(f"CAST({_read(node, scope).sql} AS DATE)", "date")
    of = scope.value(given)
    return Value(time_of(of.sql, "date") if of.type == "string" else _date(given, scope), "date")


def _to_time(node: exp.Expr, scope: Scope) -> Value:
    given, *pattern = node.expressions
    of = scope.value(given)
    if pattern and of.type == "string":
        return _read(node, scope)
    if of.type not in ("string", "timestamp", "date") or pattern:
        raise Untranslated(of.type)
    if of.type == "timestamp":
        return of
    return Value(time_of(of.sql, "timestamp") if of.type == "string" else f"CAST({of.sql} AS TIMESTAMP)", "timestamp")


def _read(node: exp.Expr, scope: Scope) -> Value:
    """Translate a text that is read by a pattern with fields of fixed length; Spark reads what differs from these."""
    given, pattern = node.expressions
    form, fields = "", []
    for part in parts_of(literal(pattern)):
        if not part.field and not part.text:  # an optional part
            raise Untranslated(node.sql())
        if part.field:
            fields.append(part.field)
            form += f"({_READ[part.field]})"
        else:
            form += "".join(f"\\x{{{ord(sign):X}}}" for sign in part.text)
    clock = tuple(field for field in fields if field not in _DATE)
    if {*fields} - {*clock} != {*_DATE} or len({*fields}) < len(fields) or tuple(sorted(clock)) not in _CLOCKS:
        raise Untranslated(node.sql())
    groups = {field: f"\\{n}" for n, field in enumerate(fields, 1)}
    order = "-".join(groups[field] for field in _DATE)
    if clock:
        order += " " + ":".join(groups[field] for field in ("HH", "mm", "ss") if field in groups)

    def read(text: str) -> str:
        known = holds_or_leaves(f"regexp_full_match({text}, {in_text(form)})")
        iso = f"regexp_replace({text}, {in_text(form)}, {in_text(order)})"
        return f"CASE WHEN {known} THEN CAST({iso} AS TIMESTAMP) END"

    return Value(once(text_of(given, scope).sql, read), "timestamp")


FUNCTIONS_OF_TIMES: Final[Mapping[type | str, Rule]] = {
    exp.Hour: _part("hour"),
    exp.Minute: _part("minute"),
    exp.Second: _part("second"),
    exp.Year: _part("year"),
    exp.Month: _part("month"),
    exp.Day: _part("day"),
    exp.Quarter: _part_of_date("quarter({})"),
    exp.DayOfWeek: _part_of_date("dayofweek({}) + 1"),
    exp.DayOfYear: _part_of_date("dayofyear({})"),
    exp.WeekOfYear: _part_of_date("weekofyear({})"),
    "weekday": _part_of_date("isodow({}) - 1"),
    exp.Extract: _extracted,
    "date_format": _formatted,
    "from_unixtime": _from_seconds,
    "unix_timestamp": _since_1970(_SECOND, down=False),
    exp.UnixSeconds: _since_1970(_SECOND),
    exp.UnixMillis: _since_1970(1000),
    "timestamp_seconds": _time_of_number(_SECOND),
    "timestamp_millis": _time_of_number(1000),
    exp.TsOrDsAdd: _later_date,
    exp.DateDiff: _days_between,
    exp.TimestampDiff: _units_between,
    "to_date": _to_date,
    "to_timestamp": _to_time,
}
