"""Translates CAST and TRY_CAST from Spark SQL to DuckDB, if both give the same values."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from typing import Final

from sqlglot import exp

from rowtime.frames.decimals import from_double
from rowtime.frames.kinds import COLLATE, DECIMAL, TIMES, WHOLE, fields_of, sql_type, type_of
from rowtime.frames.text_casts import from_text
from rowtime.frames.values import Rule, Scope, Value, cast, constant, number, size_of
from rowtime.frames.words import Untranslated, in_text, quoted

_INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d:\d\d(\.\d{1,6})?)?", re.ASCII)


def _cast(node: exp.Expr, scope: Scope) -> Value:
    kind = type_of(node.args["to"])
    if " collate " in kind:
        raise Untranslated(kind)
    if isinstance(node.this, exp.Literal) and node.this.is_string and kind in ("date", *TIMES):
        return _instant(node.this.name, kind)
    if isinstance(node.this, exp.Literal) and not node.this.is_string and kind in WHOLE:
        return number(constant(node.this), kind)
    of = scope.carried(node.this)
    if kind == "string" and of.type.lower().startswith(f"string{COLLATE}"):
        return Value(of.sql, kind)
    of = scope.value(node.this)
    if kind.startswith("STRUCT") and of.type != "void":
        return _renamed_struct(of, kind)
    tries = bool(node.args.get("safe"))
    if isinstance(node.this, exp.Literal) and node.this.is_string and not tries and kind != "string":
        raise Untranslated(node.sql())  # Spark refuses one that is no such value before the first row
    if tries and of.type != "string" and not (of.whole and kind in WHOLE):
        raise Untranslated(node.sql())
    sql = None if of.type in (kind, "void") else _converted(of, kind, tries=tries)
    return cast(of, kind) if sql is None else Value(sql, kind)


def _converted(of: Value, kind: str, *, tries: bool) -> str | None:
    """Return a value in a type in which it may be another one, or text; ``None`` for any other type."""
    if of.type == "string":
        return from_text(of.sql, kind, tries=tries)
    if tries:
        return f"TRY_CAST({of.sql} AS {WHOLE[kind]})"
    exact = DECIMAL.fullmatch(of.type) is not None
    if of.type == "double" and DECIMAL.fullmatch(kind):
        return from_double(of.sql, kind)
    if kind in ("int", "bigint") and (of.type == "double" or exact):
        return f"CAST(trunc({of.sql}) AS {WHOLE[kind]})"
    digits = DECIMAL.fullmatch(kind) and (of.whole or exact) and size_of(of.type)[1] <= size_of(kind)[1]
    same_day = (kind == "date" and of.type in TIMES) or (of.type == "date" and kind in TIMES)
    if digits or same_day or (of.whole and kind == "string"):
        return f"CAST({of.sql} AS {sql_type(kind)})"
    return None


def _instant(text: str, kind: str) -> Value:
    """Translate a literal date or time; Spark reads further forms."""
    if not _INSTANT.fullmatch(text):
        raise Untranslated(text)
    at = dt.datetime.fromisoformat(text)
    if kind != "date":
        micros = (at - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)  # noqa: DTZ001 - both are in UTC
        return Value(f"make_timestamp(CAST({micros} AS BIGINT))", kind)
    if len(text) > len("2026-01-01"):
        raise Untranslated(text)
    return Value(f"CAST('{text}' AS DATE)", kind)


def _renamed_struct(of: Value, kind: str) -> Value:
    """Return a struct with other field names."""
    mine, wanted = fields_of(of.type), fields_of(kind)
    if not mine or list(mine.values()) != list(wanted.values()):
        raise Untranslated(f"{of.type} as {kind}")
    parts = (
        f"{quoted(new)} := struct_extract({of.sql}, {in_text(old)})" for old, new in zip(mine, wanted, strict=True)
    )
    return Value(f"CASE WHEN {of.sql} IS NOT NULL THEN struct_pack({', '.join(parts)}) END", kind)


CASTS: Final[Mapping[type | str, Rule]] = {exp.Cast: _cast, exp.TryCast: _cast}
