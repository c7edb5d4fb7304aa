"""Constant patterns that Spark refuses when it computes the first row: of dates, times and texts, and regular ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from sqlglot import exp

from rowtime.core.errors import RowtimeError
from rowtime.core.java_zones import is_zone
from rowtime.core.text_patterns import check_format, check_regex
from rowtime.core.time_patterns import PatternFault, parts_of
from rowtime.expr.facts import Fact, Kind
from rowtime.expr.monotonicity import is_constant, prove
from rowtime.frames.constants import row_of
from rowtime.plan.bind.struct_fields import Fault
from rowtime.sql.generate import to_spark
from rowtime.sql.sizes import MOST, too_large

_WRITE = ("DATE_FORMAT", "FROM_UNIXTIME")
_WRITE_TIMES = ("TO_CHAR", "TO_VARCHAR")  # the pattern of a number is another one
_READ = (
    "TO_DATE", "TRY_TO_DATE", "TO_TIMESTAMP", "TRY_TO_TIMESTAMP", "TO_TIMESTAMP_LTZ", "TO_TIMESTAMP_NTZ",
    "UNIX_TIMESTAMP", "TO_UNIX_TIMESTAMP",
)  # fmt: skip
"""Functions that read a text by a pattern; they do not look at it for a date or time."""


def refused_patterns(bound: exp.Expr, columns: Mapping[str, Fact]) -> Iterator[Fault]:
    """Yield the constant patterns in an expression over these columns that Spark refuses, those of texts too."""
    yield from refused_texts(bound)
    yield from _refused_options(bound)
    for call in bound.find_all(exp.Anonymous):
        name, (value, given, *_) = call.name.upper(), (*call.expressions, None, None)
        if name not in (*_WRITE, *_WRITE_TIMES, *_READ) or (pattern := constant_text(given)) is None:
            continue
        kind = Kind.OTHER if name in _WRITE else prove(value, columns).fact.kind
        reading = name in _READ and kind is Kind.TEXT
        if not (reading or name in _WRITE or (name in _WRITE_TIMES and kind.time)):
            continue
        yield from _refused(call, name, pattern, reading=reading)


def _refused(call: exp.Expr, name: str, pattern: str, *, reading: bool) -> Iterator[Fault]:
    try:
        parts_of(pattern, reading=reading)
    except PatternFault as fault:
        yield Fault(call, f"{name} cannot use the pattern '{pattern}': {fault}", fault.hint, "R107")


_OPTIONS: Final[Mapping[str, str]] = {
    "timestampformat": r"\btimestamp(_ltz)?\b",
    "timestampntzformat": "",
    "dateformat": r"\bdate\b",
}
"""Options that are patterns, and how a schema names the types that Spark cannot read by a wrong one; empty for none."""
_BY_OPTIONS: Final = ("FROM_JSON", "FROM_CSV", "FROM_XML", "TO_JSON", "TO_CSV", "TO_XML")


def _refused_options(bound: exp.Expr) -> Iterator[Fault]:
    """Yield the patterns in options that Spark refuses; to read, it needs those for the types in the schema only."""
    for call in bound.find_all(exp.Anonymous):
        name = call.name.upper()
        if name not in _BY_OPTIONS:
            continue
        reading = name.startswith("FROM_")
        schema = constant_text(call.expressions[1]) or "" if reading and len(call.expressions) > 1 else ""
        for option, pattern in _options(call):
            kind = _OPTIONS.get(option.lower())
            if kind is not None and (not reading or (kind and re.search(kind, schema, re.IGNORECASE))):
                yield from _refused(call, f"{name} with the option {option}", pattern, reading=reading)


def _options(call: exp.Anonymous) -> Iterator[tuple[str, str]]:
    """Yield the constant options in the map that a call has as its last argument."""
    last = call.expressions[-1] if call.expressions else None
    if isinstance(last, exp.Anonymous) and last.name.upper() == "MAP":
        for key, value in zip(last.expressions[::2], last.expressions[1::2], strict=False):
            if (option := constant_text(key)) is not None and (text := constant_text(value)) is not None:
                yield option, text


def constant_text(node: exp.Expr | None) -> str | None:
    """Return the value of an expression without columns that is a text; ``None`` for others.

    ``None`` also for one that only Spark computes.
    """
    if node is None or isinstance(node, exp.Literal):
        return node.name if node is not None and node.is_string else None
    if not is_constant(node) or any(too_large(node)):
        return None
    try:
        row = row_of(f"SELECT {to_spark(node)}")
    except RowtimeError:
        return None
    value = None if row is None else row.column(0)[0].as_py()
    return value if isinstance(value, str) else None


_BY_REGEX = frozenset(
    {"RLIKE", "REGEXP", "REGEXP_LIKE", "REGEXP_REPLACE", "REGEXP_EXTRACT", "REGEXP_EXTRACT_ALL", "REGEXP_COUNT"}
    | {"REGEXP_SUBSTR", "REGEXP_INSTR", "SPLIT"}
)
"""Functions whose second argument is a regular expression."""
_BY_FORMAT = ("FORMAT_STRING", "PRINTF")


_ZONES: Final[Mapping[str, slice]] = {
    "FROM_UTC_TIMESTAMP": slice(1, 2),
    "TO_UTC_TIMESTAMP": slice(1, 2),
    "CONVERT_TIMEZONE": slice(0, -1),
}
"""Functions of time zones, and which of their arguments are zones."""
_CHARSETS: Final = ("US-ASCII", "ISO-8859-1", "UTF-8", "UTF-16BE", "UTF-16LE", "UTF-16", "UTF-32")


def refused_names(bound: exp.Expr) -> Iterator[Fault]:
    """Yield the constant names of time zones and charsets in an expression that Spark refuses with the first row."""
    for call in bound.find_all(exp.Anonymous, exp.Encode, exp.Decode):
        name = call.name.upper() if isinstance(call, exp.Anonymous) else call.sql_name()
        given = call.expressions if isinstance(call, exp.Anonymous) else [call.this, call.args.get("charset")]
        for zone in given[_ZONES[name]] if name in _ZONES else ():
            text = constant_text(zone)
            if text is not None and not is_zone(text):
                hint = "Write a region, such as 'Europe/Berlin', or an offset, such as '+01:00'."
                yield Fault(call, f"{name} knows no time zone '{text}'", hint, "R107")
        charset = constant_text(given[1]) if name in ("ENCODE", "DECODE") and len(given) == _WITH_CHARSET else None
        if charset is not None and charset.upper() not in _CHARSETS:
            hint = f"Spark knows {', '.join(_CHARSETS)}."
            yield Fault(call, f"{name} knows no charset '{charset}'", hint, "R107")


_WITH_CHARSET: Final = 2  # arguments; DECODE with more is a choice between values


def refused_texts(bound: exp.Expr) -> Iterator[Fault]:
    """Yield the constant patterns in an expression that Java refuses, and names that Spark does not know."""
    yield from refused_names(bound)
    for large in too_large(bound):
        what = f"{large.name.upper()} would give a text or an array of more than {MOST:,} characters or elements"
        yield Fault(large, what, "Give it a smaller number.", "R107")
    for call in bound.find_all(exp.Anonymous, exp.RegexpLike):
        named = isinstance(call, exp.Anonymous)
        name = call.name.upper() if named else "RLIKE"
        first, second = ([*call.expressions, None, None] if named else [call.this, call.expression])[:2]
        pattern = constant_text(second if name in _BY_REGEX else first if name in _BY_FORMAT else None)
        if pattern is None:
            continue
        try:
            if name in _BY_FORMAT:
                check_format(pattern, len(call.expressions) - 1)
            else:
                check_regex(pattern)
        except PatternFault as fault:
            yield Fault(call, f"{name} cannot use the pattern '{pattern}': {fault}", fault.hint, "R107")
