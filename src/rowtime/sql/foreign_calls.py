"""Functions of SQLstream and Flink: equivalents of Spark functions are translated, the others refused with a hint."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from sqlglot import exp

from rowtime.sql.numbers import whole_number

Arguments = Sequence[exp.Expr]

_SAME_LETTERS = re.compile(r"(?:[^A-Za-z']|y{4}|M{2}|d{2}|H{2}|m{2}|s{2}|S{3}|'[^']*')*")
"""Formats that Java's SimpleDateFormat and Spark read alike: letters of fixed width, and quoted text."""


class ForeignCall(NamedTuple):
    """A call that is refused: the reason, and the form to write instead."""

    what: str
    hint: str


def _formatted(name: str, to: str) -> Callable[[Arguments], exp.Expr]:
    """Translate ``F('format', value)`` to Spark's ``G(value, 'format')``."""

    def build(arguments: Arguments) -> exp.Expr:
        match arguments:
            case [exp.Literal(is_string=True) as form, value] if _SAME_LETTERS.fullmatch(form.name):
                return exp.Anonymous(this=to, expressions=[value, form])
            case _:
                return exp.Anonymous(this=name, expressions=list(arguments))

    return build


def _replaced(arguments: Arguments) -> exp.Expr:
    """Translate ``REGEX_REPLACE(text, pattern, other[, start[, 0]])``; 0 means every occurrence."""
    every = len(arguments) < 5 or whole_number(arguments[4]) == 0  # noqa: PLR2004 - text, pattern, other, start, which
    if 3 <= len(arguments) <= 5 and every:  # noqa: PLR2004 - the same
        return exp.Anonymous(this="REGEXP_REPLACE", expressions=list(arguments[:4]))
    return exp.Anonymous(this="REGEX_REPLACE", expressions=list(arguments))


SAME: Mapping[str, Callable[[Arguments], exp.Expr]] = {
    "CHAR_TO_DATE": _formatted("CHAR_TO_DATE", "TO_DATE"),
    "CHAR_TO_TIMESTAMP": _formatted("CHAR_TO_TIMESTAMP", "TO_TIMESTAMP"),
    "DATE_TO_CHAR": _formatted("DATE_TO_CHAR", "DATE_FORMAT"),
    "TIMESTAMP_TO_CHAR": _formatted("TIMESTAMP_TO_CHAR", "DATE_FORMAT"),
    "REGEX_REPLACE": _replaced,
}
"""Translations of calls that Spark has under another name."""

_FORMAT = "Write {}(value, 'format') with a format of Spark, such as 'yyyy-MM-dd HH:mm:ss'."
_OF_MATCHES = "Write it in MEASURES or DEFINE of MATCH_RECOGNIZE"
_FIELDS = "Write REGEXP_EXTRACT(text, 'pattern', 1) for each column."
_FORMS: Mapping[str, str] = {
    "CHAR_TO_DATE": _FORMAT.format("TO_DATE"),
    "CHAR_TO_TIMESTAMP": _FORMAT.format("TO_TIMESTAMP"),
    "DATE_TO_CHAR": _FORMAT.format("DATE_FORMAT"),
    "TIMESTAMP_TO_CHAR": _FORMAT.format("DATE_FORMAT"),
    "REGEX_REPLACE": "Write REGEXP_REPLACE(text, 'pattern', 'other'), which replaces every occurrence.",
    "LATEST_BY_OFFSET": "Write LAST(x), which is the last value in stream order.",
    "EARLIEST_BY_OFFSET": "Write FIRST(x), which is the first value in stream order.",
    "PROCTIME": "Write CURRENT_ROW_TIMESTAMP, the time at which the row arrived.",
    "TUMBLINGWINDOW": "Write TUMBLE(ROWTIME, INTERVAL '5' MINUTE).",
    "HOPPINGWINDOW": "Write HOP(ROWTIME, INTERVAL '1' MINUTE, INTERVAL '5' MINUTE).",
    "SESSIONWINDOW": "Write SESSION(ROWTIME, INTERVAL '5' MINUTE).",
    "PREV": f"{_OF_MATCHES}; elsewhere LAG(price) OVER (ORDER BY ROWTIME).",
    "NEXT": f"{_OF_MATCHES}.",
    "CLASSIFIER": f"{_OF_MATCHES}.",
    "MATCH_NUMBER": f"{_OF_MATCHES}.",
    "MATCH_ROWTIME": "Write LAST(ROWTIME); a row of a match has its ROWTIME without it, too.",
    "TSDIFF": "Write TIMESTAMPDIFF(MILLISECOND, a, b), which counts from a to b.",
    "REGEX_LOG_PARSE": _FIELDS,
    "FAST_REGEX_LOG_PARSE": _FIELDS,
    "SYS_LOG_PARSE": _FIELDS,
    "W3C_LOG_PARSE": _FIELDS,
    "VARIABLE_COLUMN_LOG_PARSE": "Write SPLIT(text, ',')[0] for the first column, and so on.",
    "FIXED_COLUMN_LOG_PARSE": "Write SUBSTRING(text, 1, 10) for the first ten characters, and so on.",
}


def foreign_call(node: exp.Expr) -> ForeignCall | None:
    """Return the refusal of an expression that Spark does not have; ``None`` for any other."""
    name, foreign = node.name.upper(), None
    match node:
        case exp.Anonymous() if form := _FORMS.get(name):
            foreign = ForeignCall(f"{name} is not a function of Spark", form)
        case exp.Anonymous() if name == "COUNT" and not node.expressions:
            foreign = ForeignCall(
                "COUNT() does not say what to count",
                "Write COUNT(*) for all rows, or COUNT(x) for the rows where x is not NULL.",
            )
        case exp.Placeholder() if node.name:
            hint = "Write a variable, ${limit}, and give its value: --set limit=3, or variables={'limit': '3'}."
            foreign = ForeignCall(f":{node.name} is a parameter of Spark's Python API", hint)
        case exp.SimilarTo():
            foreign = ForeignCall(
                "SIMILAR TO is not part of Spark's SQL", "Write RLIKE with a Java regular expression."
            )
        case exp.AtTimeZone():
            foreign = ForeignCall(
                "AT TIME ZONE is not part of Spark's SQL",
                "Write FROM_UTC_TIMESTAMP(t, 'zone') for the local time there.",
            )
        case exp.Substring() if (start := node.args.get("start")) is not None and start.is_string:
            foreign = ForeignCall("SUBSTRING takes no regular expression", "Write REGEXP_SUBSTR(text, 'pattern').")
        case exp.Extract() if name == "EPOCH":
            foreign = ForeignCall("EXTRACT does not support EPOCH", "Write UNIX_SECONDS(t), or UNIX_MICROS(t).")
    return foreign


def word(name: str) -> exp.Expr | None:
    """Return the meaning of a word that no column has as its name; ``None`` for most words."""
    if name.upper() == "UNKNOWN":
        return exp.cast(exp.null(), "BOOLEAN")
    return exp.Localtimestamp() if name.upper() == "LOCALTIMESTAMP" else None
