"""Literal patterns of texts, regular expressions and formats, that Java refuses when Spark computes the first row."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from rowtime.core.text_patterns import check_format, check_regex
from rowtime.core.time_patterns import PatternFault
from rowtime.plan.bind.struct_fields import Fault

_BY_REGEX = frozenset(
    {"RLIKE", "REGEXP", "REGEXP_LIKE", "REGEXP_REPLACE", "REGEXP_EXTRACT", "REGEXP_EXTRACT_ALL", "REGEXP_COUNT"}
    | {"REGEXP_SUBSTR", "REGEXP_INSTR", "SPLIT"}
)
"""Functions whose second argument is a regular expression."""
_BY_FORMAT = ("FORMAT_STRING", "PRINTF")


def refused_texts(bound: exp.Expr) -> Iterator[Fault]:
    """Yield the literal patterns in an expression that Java refuses."""
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
