"""Literal patterns of dates and times that Spark refuses when it computes the first row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from rowtime.core.time_patterns import PatternFault, parts_of
from rowtime.expr.facts import Fact, Kind
from rowtime.expr.monotonicity import prove
from rowtime.plan.bind.struct_fields import Fault
from rowtime.plan.bind.text_formats import refused_texts

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
