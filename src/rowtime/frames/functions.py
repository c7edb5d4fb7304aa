"""Translates functions of times and texts from Spark SQL to DuckDB, if both give the same values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlglot import exp

from rowtime.core.time_patterns import parts_of
from rowtime.frames.kinds import TIMES
from rowtime.frames.values import Rule, Scope, Value, comparable, constant, holds_or_fails, signed
from rowtime.frames.words import Untranslated, in_text

_FIELDS: Final = {"yyyy": "%Y", "y": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
"""The fields of a DATE_FORMAT pattern in DuckDB's notation."""
_OF_DATES: Final = ("YEAR", "QUARTER", "MONTH", "DAY")
_OF_TIMES: Final = (*_OF_DATES, "HOUR", "MINUTE")


def _part(name: str) -> Rule:
    """Return a part of a time, as a number."""

    def rule(node: exp.Expr, scope: Scope) -> Value:
        inner = node.this.this if isinstance(node.this, exp.TsOrDsToDate) else node.this
        of = scope.value(inner)
        if of.type not in TIMES and not (of.type == "date" and inner is not node.this):
            raise Untranslated(of.type)
        return Value(f"CAST({name}({of.sql}) AS INTEGER)", "int")

    return rule


def _formatted(node: exp.Expr, scope: Scope) -> Value:
    """Translate DATE_FORMAT with fields of fixed length; Spark handles all but four-digit years."""
    time, literal = node.expressions
    of = scope.value(time)
    if of.type not in TIMES or not isinstance(literal, exp.Literal) or not literal.name:
        raise Untranslated(node.sql())
    pattern = ""
    for part in parts_of(literal.name):
        quoted_quote = len(part.text) > 1 and "'" in part.text  # Spark counts it as the end of the text
        if part.field not in ("", *_FIELDS) or not (part.field or part.text) or quoted_quote:
            raise Untranslated(node.sql())
        pattern += _FIELDS[part.field] if part.field else part.text.replace("%", "%%")
    text = f"strftime({of.sql}, {in_text(pattern)})"
    if "%Y" in pattern:
        text = f"CASE WHEN {holds_or_fails(f'year({of.sql}) BETWEEN 1000 AND 9999')} THEN {text} END"
    return Value(text, "string")


def _extracted(node: exp.Expr, scope: Scope) -> Value:
    """Translate EXTRACT; Spark has more parts, and other names of these."""
    of, part = scope.value(node.expression), node.name.upper()
    if part not in (_OF_DATES if of.type == "date" else _OF_TIMES if of.type in TIMES else ()):
        raise Untranslated(node.sql())
    return Value(f"CAST({part.lower()}({of.sql}) AS INTEGER)", "int")


def _text(node: exp.Expr, scope: Scope) -> Value:
    of = scope.value(node)
    if of.type != "string":
        raise Untranslated(of.type)
    return of


def _length(node: exp.Expr, scope: Scope) -> Value:
    return Value(f"CAST(length({_text(node.this, scope).sql}) AS INTEGER)", "int")


def _replaced(node: exp.Expr, scope: Scope) -> Value:
    of, what = _text(node.this, scope), node.expression
    if not isinstance(what, exp.Literal) or not what.name:
        raise Untranslated(node.sql())
    by = _text(node.args["replacement"], scope).sql if node.args.get("replacement") else "''"
    return Value(f"replace({of.sql}, {_text(what, scope).sql}, {by})", "string")


def _like(node: exp.Expr, scope: Scope) -> Value:
    """Translate LIKE with a literal pattern; in Spark a backslash escapes the next character."""
    of, pattern = _text(node.this, scope), node.expression
    if not isinstance(pattern, exp.Literal) or "\\" in pattern.name:
        raise Untranslated(node.sql())
    word = "NOT LIKE" if node.args.get("negate") else "LIKE"
    return Value(f"({of.sql} {word} {_text(pattern, scope).sql})", "boolean")


def _mapped(node: exp.Expr, scope: Scope) -> Value:
    """Translate TRANSLATE of ASCII characters, each to one of them."""
    one, other = node.args["from_"], node.args["to"]
    texts = [part.name for part in (one, other) if isinstance(part, exp.Literal) and part.name.isascii()]
    if len(texts) < 2 or not len({*texts[0]}) == len(texts[0]) == len(texts[1]):  # noqa: PLR2004 - both
        raise Untranslated(node.sql())
    sql = ", ".join(_text(part, scope).sql for part in (node.this, one, other))
    return Value(f"translate({sql})", "string")


def _trimmed(node: exp.Expr, scope: Scope) -> Value:
    """Translate TRIM: Spark removes spaces, and no other blanks."""
    name = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}[node.args.get("position") or "BOTH"]
    return Value(f"{name}({_text(node.this, scope).sql}, ' ')", "string")


def _rule_of(name: str) -> Rule:
    def rule(node: exp.Expr, scope: Scope) -> Value:
        return Value(f"{name}({_text(node.this, scope).sql}, {_text(node.expression, scope).sql})", "boolean")

    return rule


def _cut(node: exp.Expr, scope: Scope) -> Value:
    """Translate a part of a text, counted from its beginning."""
    of, start = _text(node.this, scope), constant(node.args["start"])
    length = constant(node.args["length"]) if node.args.get("length") else 2**31 - 1
    if start < 1 or length < 0:
        raise Untranslated(node.sql())
    return Value(f"substring({of.sql}, {start}, {length})", "string")


def _absolute(node: exp.Expr, scope: Scope) -> Value:
    of = signed(scope.value(node.this))
    return Value(f"abs({of.sql})", of.type)


def _to_whole(name: str) -> Rule:
    """Return the next whole number of a DOUBLE; it fails beyond BIGINT."""

    def rule(node: exp.Expr, scope: Scope) -> Value:
        of = scope.value(node.this)
        if of.type not in ("bigint", "double"):
            raise Untranslated(of.type)
        return Value(of.sql if of.whole else f"CAST({name}({of.sql}) AS BIGINT)", "bigint")

    return rule


def _null_if(node: exp.Expr, scope: Scope) -> Value:
    of = scope.value(node.this)
    left, right = comparable([of, scope.value(node.expression)])
    return Value(f"CASE WHEN {left.sql} = {right.sql} THEN NULL ELSE {of.sql} END", of.type)


FUNCTIONS: Final[Mapping[type | str, Rule]] = {
    exp.Hour: _part("hour"),
    exp.Minute: _part("minute"),
    exp.Second: _part("second"),
    exp.Year: _part("year"),
    exp.Month: _part("month"),
    exp.Day: _part("day"),
    exp.Extract: _extracted,
    "date_format": _formatted,
    exp.Length: _length,
    exp.Replace: _replaced,
    exp.Like: _like,
    exp.StartsWith: _rule_of("starts_with"),
    exp.EndsWith: _rule_of("ends_with"),
    exp.Contains: _rule_of("contains"),
    exp.Substring: _cut,
    exp.Translate: _mapped,
    exp.Trim: _trimmed,
    exp.Abs: _absolute,
    exp.Floor: _to_whole("floor"),
    exp.Ceil: _to_whole("ceil"),
    exp.Nullif: _null_if,
}
