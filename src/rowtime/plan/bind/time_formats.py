"""Literal patterns that Spark refuses when it computes the first row: of dates, times and texts, and regular ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from sqlglot import exp

from rowtime.core.java_zones import is_zone
from rowtime.core.text_patterns import check_format, check_regex
from rowtime.core.time_patterns import PatternFault, parts_of
from rowtime.expr.facts import Fact, Kind
from rowtime.expr.monotonicity import prove
from rowtime.plan.bind.struct_fields import Fault
from rowtime.sql.sizes import MOST, too_large

_WRITE = ("DATE_FORMAT", "FROM_UNIXTIME")
_WRITE_TIMES = ("TO_CHAR", "TO_VARCHAR")  # the pattern of a number is another one
_READ = (
    "TO_DATE", "TRY_TO_DATE", "TO_TIMESTAMP", "TRY_TO_TIMESTAMP", "TO_TIMESTAMP_LTZ", "TO_TIMESTAMP_NTZ",
    "UNIX_TIMESTAMP", "TO_UNIX_TIMESTAMP",
)  # fmt: skip
"""Functions that read a text by a pattern; they do not look at it for a date or time."""


def refused_patterns(bound: exp.Expr, columns: Mapping[str, Fact]) -> Iterator[Fault]:
    """Yield the literal patterns in an expression over these columns that Spark refuses, those of texts too."""
    yield from refused_texts(bound)
    for call in bound.find_all(exp.Anonymous):
        name, (value, pattern, *_) = call.name.upper(), (*call.expressions, None, None)
        if not isinstance(pattern, exp.Literal) or not pattern.is_string:
            continue
        kind = Kind.OTHER if name in _WRITE else prove(value, columns).fact.kind
        reading = name in _READ and kind is Kind.TEXT
        if not (reading or name in _WRITE or (name in _WRITE_TIMES and kind.time)):
            continue
        try:
            parts_of(pattern.name, reading=reading)
        except PatternFault as fault:
            yield Fault(call, f"{name} cannot use the pattern '{pattern.name}': {fault}", fault.hint, "R107")


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
    """Yield the literal names of time zones and charsets in an expression that Spark refuses with the first row."""
    for call in bound.find_all(exp.Anonymous, exp.Encode, exp.Decode):
        name = call.name.upper() if isinstance(call, exp.Anonymous) else call.sql_name()
        given = call.expressions if isinstance(call, exp.Anonymous) else [call.this, call.args.get("charset")]
        for zone in given[_ZONES[name]] if name in _ZONES else ():
            if isinstance(zone, exp.Literal) and zone.is_string and not is_zone(zone.name):
                hint = "Write a region, such as 'Europe/Berlin', or an offset, such as '+01:00'."
                yield Fault(call, f"{name} knows no time zone '{zone.name}'", hint, "R107")
        charset = given[1] if name in ("ENCODE", "DECODE") and len(given) == _WITH_CHARSET else None
        if isinstance(charset, exp.Literal) and charset.is_string and charset.name.upper() not in _CHARSETS:
            hint = f"Spark knows {', '.join(_CHARSETS)}."
            yield Fault(call, f"{name} knows no charset '{charset.name}'", hint, "R107")


_WITH_CHARSET: Final = 2  # arguments; DECODE with more is a choice between values


def refused_texts(bound: exp.Expr) -> Iterator[Fault]:
    """Yield the literal patterns in an expression that Java refuses, and names that Spark does not know."""
    yield from refused_names(bound)
    for large in too_large(bound):
        what = f"{large.name.upper()} would give a text or an array of more than {MOST:,} characters or elements"
        yield Fault(large, what, "Give it a smaller number.", "R107")
    for call in bound.find_all(exp.Anonymous, exp.RegexpLike):
        named = isinstance(call, exp.Anonymous)
        name = call.name.upper() if named else "RLIKE"
        first, second = ([*call.expressions, None, None] if named else [call.this, call.expression])[:2]
        pattern = second if name in _BY_REGEX else first if name in _BY_FORMAT else None
        if not isinstance(pattern, exp.Literal) or not pattern.is_string:
            continue
        try:
            if name in _BY_FORMAT:
                check_format(pattern.name, len(call.expressions) - 1)
            else:
                check_regex(pattern.name)
        except PatternFault as fault:
            yield Fault(call, f"{name} cannot use the pattern '{pattern.name}': {fault}", fault.hint, "R107")
