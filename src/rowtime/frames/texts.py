"""Translates functions of texts from Spark SQL to DuckDB, if both give the same values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from sqlglot import exp

from rowtime.frames.computed_parts import is_safe
from rowtime.frames.kinds import array_text
from rowtime.frames.regular_expressions import Regex, regex, replacement
from rowtime.frames.values import Rule, Scope, Value, constant, holds_or_leaves, once
from rowtime.frames.words import Untranslated, in_text

_GROUPS: Final = 9  # of a regular expression, that DuckDB gives
_ODD: Final = {
    "upper": r"\x{DF}\x{149}\x{19B}\x{1F0}\x{264}\x{390}\x{3B0}\x{587}\x{1C80}-\x{1C8F}\x{1E96}-\x{1E9E}"
    r"\x{1F50}-\x{1FFF}\x{A7C0}-\x{A7FF}\x{FB00}-\x{FB17}\x{10D50}-\x{10D8F}\x{16EA0}-\x{16EDF}",
    "lower": r"\x{130}\x{3A3}\x{1C80}-\x{1C8F}\x{A7C0}-\x{A7FF}\x{10D50}-\x{10D8F}\x{16EA0}-\x{16EDF}",
}
"""Characters with another upper or lower case in Spark: several letters, one that depends on others, or new ones."""


def text_of(node: exp.Expr, scope: Scope) -> Value:
    """Translate a text; raises ``Untranslated`` for a value of another type."""
    of = scope.value(node)
    if of.type != "string":
        raise Untranslated(of.type)
    return of


def literal(node: exp.Expr | None) -> str:
    """Return a literal text; raises ``Untranslated`` for another expression, and for a NUL in it."""
    if not isinstance(node, exp.Literal) or not node.is_string or "\0" in node.name:
        raise Untranslated("no literal text")
    return node.name


def _length(node: exp.Expr, scope: Scope) -> Value:
    return Value(f"CAST(length({text_of(node.this, scope).sql}) AS INTEGER)", "int")


def _replaced(node: exp.Expr, scope: Scope) -> Value:
    of, what = text_of(node.this, scope), node.expression
    if not isinstance(what, exp.Literal) or not what.name:
        raise Untranslated(node.sql())
    by = text_of(node.args["replacement"], scope).sql if node.args.get("replacement") else "''"
    return Value(f"replace({of.sql}, {text_of(what, scope).sql}, {by})", "string")


def _like(node: exp.Expr, scope: Scope) -> Value:
    """Translate LIKE with a literal pattern; in Spark a backslash escapes the next character."""
    of, pattern = text_of(node.this, scope), node.expression
    if not isinstance(pattern, exp.Literal) or "\\" in pattern.name:
        raise Untranslated(node.sql())
    word = "NOT LIKE" if node.args.get("negate") else "LIKE"
    return Value(f"({of.sql} {word} {text_of(pattern, scope).sql})", "boolean")


def _mapped(node: exp.Expr, scope: Scope) -> Value:
    """Translate TRANSLATE of ASCII characters, each to one of them."""
    one, other = node.args["from_"], node.args["to"]
    texts = [part.name for part in (one, other) if isinstance(part, exp.Literal) and part.name.isascii()]
    if len(texts) < 2 or not len({*texts[0]}) == len(texts[0]) == len(texts[1]):  # noqa: PLR2004 - both
        raise Untranslated(node.sql())
    sql = ", ".join(text_of(part, scope).sql for part in (node.this, one, other))
    return Value(f"translate({sql})", "string")


def _trimmed(node: exp.Expr, scope: Scope) -> Value:
    """Translate TRIM: Spark removes spaces, and no other blanks."""
    name = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}[node.args.get("position") or "BOTH"]
    return Value(f"{name}({text_of(node.this, scope).sql}, ' ')", "string")


def _tested(name: str) -> Rule:
    def rule(node: exp.Expr, scope: Scope) -> Value:
        return Value(f"{name}({text_of(node.this, scope).sql}, {text_of(node.expression, scope).sql})", "boolean")

    return rule


def _cut(node: exp.Expr, scope: Scope) -> Value:
    """Translate a part of a text, counted from its beginning."""
    of, start = text_of(node.this, scope), constant(node.args["start"])
    length = constant(node.args["length"]) if node.args.get("length") else 2**31 - 1
    if start < 1 or length < 0:
        raise Untranslated(node.sql())
    return Value(f"substring({of.sql}, {start}, {length})", "string")


def _end(name: str) -> Rule:
    """Return the rule of the first or last characters of a text, at most so many."""

    def rule(node: exp.Expr, scope: Scope) -> Value:
        size = constant(node.expression)
        if not 0 <= size < 2**31:
            raise Untranslated(node.sql())
        return Value(f"{name}({text_of(node.this, scope).sql}, {size})", "string")

    return rule


def _padded(node: exp.Expr, scope: Scope) -> Value:
    size, fill = constant(node.expression), node.args.get("fill_pattern")
    by = " " if fill is None else literal(fill)
    if not 0 <= size <= 2**16 or not by:
        raise Untranslated(node.sql())
    name = "lpad" if node.args.get("is_left") else "rpad"
    return Value(f"{name}({text_of(node.this, scope).sql}, {size}, {in_text(by)})", "string")


def _place(node: exp.Expr, scope: Scope) -> Value:
    part = node.args["substr"]
    of, within = text_of(part, scope), text_of(node.this, scope)
    if not is_safe(part) or not is_safe(node.this):  # INSTR and LOCATE compute them in different orders
        raise Untranslated(node.sql())
    return Value(f"CAST(instr({within.sql}, {of.sql}) AS INTEGER)", "int")


def _joined(node: exp.Expr, scope: Scope) -> Value:
    """Translate CONCAT_WS, which skips NULLs."""
    between, *parts = node.expressions
    if not parts or not all(map(is_safe, parts)):
        raise Untranslated(node.sql())
    listed = ", ".join(text_of(part, scope).sql for part in parts)
    return Value(f"concat_ws({in_text(literal(between))}, {listed})", "string")


def _hashed(node: exp.Expr, scope: Scope) -> Value:
    if isinstance(node, exp.SHA2) and constant(node.args["length"]) not in (0, 256):
        raise Untranslated(node.sql())
    name = "sha256" if isinstance(node, exp.SHA2) else "sha1" if isinstance(node, exp.SHA) else "md5"
    return Value(f"{name}({text_of(node.this, scope).sql})", "string")


def _cased(name: str) -> Rule:
    """Return the rule of UPPER or LOWER; texts with a character that has an odd case are Spark's."""

    def rule(node: exp.Expr, scope: Scope) -> Value:
        def cased(text: str) -> str:
            known = f"strlen({text}) = length({text}) OR NOT regexp_matches({text}, '[{_ODD[name]}]')"
            return f"CASE WHEN {holds_or_leaves(known)} THEN {name}({text}) END"

        return Value(once(text_of(node.this, scope).sql, cased), "string")

    return rule


def _split(node: exp.Expr, scope: Scope) -> Value:
    of, by = text_of(node.this, scope), regex(literal(node.expression))
    if by.is_empty or by.anchored or by.ends:
        raise Untranslated(node.sql())
    if by.literal:
        return Value(f"string_split({of.sql}, {in_text(by.literal)})", array_text("string"))
    sql = _where_alike(of, by, lambda text: f"regexp_split_to_array({text}, {by.text})")
    return Value(sql, array_text("string"))


def _split_part(node: exp.Expr, scope: Scope) -> Value:
    of, by, number = text_of(node.this, scope), literal(node.args["delimiter"]), constant(node.args["part_index"])
    if not by or not number or abs(number) >= 2**31:
        raise Untranslated(node.sql())

    def part(text: str) -> str:
        return f"CASE WHEN {text} IS NOT NULL THEN coalesce(string_split({text}, {in_text(by)})[{number}], '') END"

    return Value(once(of.sql, part), "string")


def _where_alike(of: Value, pattern: Regex, call: Callable[[str], str]) -> str:
    """Return a call over a text, for those texts for which both systems match alike."""
    if not pattern.holds_for(of.sql):
        return call(of.sql)
    return once(of.sql, lambda text: f"CASE WHEN {holds_or_leaves(pattern.holds_for(text))} THEN {call(text)} END")


def _matched(node: exp.Expr, scope: Scope) -> Value:
    of, pattern = text_of(node.this, scope), regex(literal(node.expression))
    return Value(_where_alike(of, pattern, lambda text: f"regexp_matches({text}, {pattern.text})"), "boolean")


def _extracted(node: exp.Expr, scope: Scope) -> Value:
    of, pattern, group = text_of(node.this, scope), regex(literal(node.expression)), constant(node.args["group"])
    if not 0 <= group <= min(pattern.groups, _GROUPS) or group in pattern.repeated:
        raise Untranslated(node.sql())
    sql = _where_alike(of, pattern, lambda text: f"regexp_extract({text}, {pattern.text}, {group})")
    return Value(sql, "string")


def _all_replaced(node: exp.Expr, scope: Scope) -> Value:
    """Translate REGEXP_REPLACE; Java and RE2 find different empty matches."""
    of, pattern = text_of(node.this, scope), regex(literal(node.expression))
    if pattern.is_empty:
        raise Untranslated(node.sql())
    by = in_text(replacement(literal(node.args["replacement"]), pattern))
    sql = _where_alike(of, pattern, lambda text: f"regexp_replace({text}, {pattern.text}, {by}, 'g')")
    return Value(sql, "string")


TEXTS: Final[Mapping[type | str, Rule]] = {
    exp.Length: _length,
    exp.Replace: _replaced,
    exp.Like: _like,
    exp.StartsWith: _tested("starts_with"),
    exp.EndsWith: _tested("ends_with"),
    exp.Contains: _tested("contains"),
    exp.Substring: _cut,
    exp.Translate: _mapped,
    exp.Trim: _trimmed,
    exp.Left: _end("left"),
    exp.Right: _end("right"),
    exp.Pad: _padded,
    exp.StrPosition: _place,
    exp.ConcatWs: _joined,
    exp.SHA2: _hashed,
    exp.SHA: _hashed,
    exp.MD5: _hashed,
    exp.Upper: _cased("upper"),
    exp.Lower: _cased("lower"),
    exp.RegexpSplit: _split,
    exp.SplitPart: _split_part,
    exp.RegexpLike: _matched,
    exp.RegexpExtract: _extracted,
    exp.RegexpReplace: _all_replaced,
}
