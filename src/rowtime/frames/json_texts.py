"""Translates functions of JSON texts from Spark SQL to DuckDB: of plain texts, to which both give the same values.

A plain text is valid JSON without characters that are written as numbers. Spark reads others: also what is no JSON, of
which it takes the part before the fault.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from sqlglot import exp

from rowtime.frames.kinds import WHOLE, fields_of, struct_text
from rowtime.frames.texts import literal, text_of
from rowtime.frames.values import Rule, Scope, Value, holds_or_leaves, once
from rowtime.frames.words import Untranslated, in_text, quoted

_PATH: Final = re.compile(r"\$(?:\.[A-Za-z_]\w*)+", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_DEEPEST: Final = 500  # brackets of a text: Spark reads at most 1,000 in each other
_NUMBER: Final = (
    r"\A(?:0|-?[1-9][0-9]{0,17}|-?[1-9][0-9]{0,6}\.(?:0|[0-9]{0,6}[1-9])|-?0\.0{0,2}[1-9](?:[0-9]{0,9}[1-9])?)\z"
)
"""Numbers that Java writes in the same way."""
_ODD: Final = r"\\|[0-9][.eE]|-0|[0-9]{19}|[\x{10000}-\x{10FFFF}]"
"""What Spark or DuckDB would write in another way inside of an array or object."""
_LAX: Final = r"(?i),\s*[}\]]|[:,\[]\s*[+-]?(?:nan|inf)"
"""What is no JSON, but DuckDB reads it."""
_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}  # the backslash first
_CORRUPT: Final = "_corrupt_record"
_INTEGERS: Final = ("BIGINT", "UBIGINT")


def _plain(text: str) -> str:
    """Return a condition for the texts that both read in the same way."""
    brackets = f"strlen({text}) - strlen(translate({text}, '[{{', '')) < {_DEEPEST}"
    return f"json_valid({text}) AND NOT contains({text}, '\\u') AND NOT regexp_matches({text}, '{_LAX}') AND {brackets}"


def _once_in(text: str, names: Sequence[str]) -> str:
    """Return a condition for texts in which each name comes once at most."""
    keys = [in_text(f'"{name}"') for name in names]
    return " AND ".join(f"strlen({text}) - strlen(replace({text}, {key}, '')) <= strlen({key})" for key in keys)


def _object_at(node: exp.Expr, scope: Scope) -> Value:
    """Translate GET_JSON_OBJECT with a path of names; of equal names Spark takes the first one with a value."""
    given, place = node.expressions
    path = literal(place)
    if not _PATH.fullmatch(path):
        raise Untranslated(node.sql())

    def part(text: str) -> str:
        at_path = once(f"CAST(json_extract({text}, {in_text(path)}) AS VARCHAR)", lambda part: value(text, part))
        return f"CASE WHEN {holds_or_leaves(_plain(text))} THEN {at_path} END"

    def value(text: str, part: str) -> str:
        known = holds_or_leaves(_once_in(text, path.split(".")[1:]))
        number = holds_or_leaves(f"regexp_matches({part}, '{_NUMBER}')")
        whole = holds_or_leaves(f"NOT regexp_matches({part}, '{_ODD}')")
        return (
            f"CASE WHEN {part} IS NULL OR {part} = 'null' THEN CASE WHEN {known} THEN NULL END"
            f""" WHEN {part}[1] = '"' THEN json_extract_string({text}, {in_text(path)})"""
            f" WHEN {part} IN ('true', 'false') THEN {part}"
            f" WHEN {part}[1] IN ('[', '{{') THEN CASE WHEN {whole} THEN {part} END"
            f" WHEN {number} THEN {part} END"
        )

    return Value(once(text_of(given, scope).sql, part), "string")


def _read(node: exp.Expr, scope: Scope) -> Value:
    """Translate FROM_JSON of objects with numbers, texts and booleans of the declared types."""
    schema = literal(node.expression)
    kinds = fields_of(f"STRUCT<{schema}>")
    if not kinds or ":" in schema or not all(map(_NAME.fullmatch, kinds)) or _CORRUPT in kinds:
        raise Untranslated(node.sql())

    def struct(text: str) -> str:
        readable = f"json_type({text}) = 'OBJECT' AND {_once_in(text, [*kinds])}"
        known = f"CASE WHEN {_plain(text)} THEN {readable} WHEN {text} IS NOT NULL THEN false END"
        fields = ", ".join(f"{quoted(name)} := {_field(text, name, kind)}" for name, kind in kinds.items())
        return f"CASE WHEN {holds_or_leaves(known)} THEN struct_pack({fields}) END"

    return Value(once(text_of(node.this, scope).sql, struct), struct_text(kinds))


def _field(text: str, name: str, kind: str) -> str:
    """Return a field of an object; it fails for a value of another type."""
    place = in_text(f"$.{name}")
    types = {"string": ("VARCHAR",), "double": (*_INTEGERS, "DOUBLE"), "boolean": ("BOOLEAN",)}
    if kind not in types and kind not in WHOLE:
        raise Untranslated(kind)
    listed = ", ".join(map(in_text, types.get(kind, _INTEGERS)))
    of_kind = holds_or_leaves(f"json_type({text}, {place}) IN ({listed})")
    part = f"json_extract_string({text}, {place})"
    sql = part if kind == "string" else f"CAST({part} AS {WHOLE.get(kind, kind.upper())})"
    none = f"json_type({text}, {place}) IS NULL OR json_type({text}, {place}) = 'NULL'"
    return f"CASE WHEN {none} THEN NULL WHEN {of_kind} THEN {sql} END"


def _as_text(node: exp.Expr, scope: Scope) -> Value:
    """Translate TO_JSON of structs, which leaves out fields that are NULL."""
    of = scope.value(node.this)
    return Value(once(of.sql, lambda struct: _object(struct, of.type)), "string")


def _object(struct: str, kind: str) -> str:
    fields = fields_of(kind)
    if not fields or not all(map(_NAME.fullmatch, fields)):
        raise Untranslated(kind)
    parts = []
    for name, of in fields.items():
        part = f"struct_extract({struct}, {in_text(name)})"
        key = in_text(f'"{name}":')
        parts.append(f"CASE WHEN {part} IS NOT NULL THEN {key} || {_written(part, of)} END")
    return f"CASE WHEN {struct} IS NOT NULL THEN '{{' || concat_ws(',', {', '.join(parts)}) || '}}' END"


def _written(part: str, kind: str) -> str:
    """Return a value as JSON; texts with control characters are Spark's."""
    if kind in WHOLE or kind == "boolean":
        return f"CAST({part} AS VARCHAR)"
    if kind != "string":
        return _object(part, kind)
    escaped = part
    for sign, by in _ESCAPES.items():
        escaped = f"replace({escaped}, chr({ord(sign)}), {in_text(by)})"
    known = holds_or_leaves(f"NOT regexp_matches({part}, '[\\x00-\\x08\\x0B-\\x0C\\x0E-\\x1F]')")
    return f"""CASE WHEN {known} THEN '"' || {escaped} || '"' END"""


JSON: Final[Mapping[type | str, Rule]] = {
    "get_json_object": _object_at,
    exp.FromJson: _read,
    exp.JSONFormat: _as_text,
}
