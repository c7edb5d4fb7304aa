"""Numbers, dates and times that are read from texts: those in their common forms; Spark reads the others, or fails."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from sqlglot import exp

from rowtime.frames.decimals import from_double
from rowtime.frames.kinds import COLLATE, DECIMAL, TIMES, WHOLE, fields_of, sql_type, type_of
from rowtime.frames.values import (
    Rule,
    Scope,
    Value,
    cast,
    constant,
    holds_or_fails,
    holds_or_leaves,
    number,
    once,
    size_of,
)
from rowtime.frames.words import Untranslated, in_text, quoted

YEAR: Final = "(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
"""A year of four digits, as a regular expression."""
_DATE: Final = f"{YEAR}-[0-9]{{2}}-[0-9]{{2}}"
_MINUTE: Final = "(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_SECOND: Final = rf"{_MINUTE}:[0-5][0-9](?:\.[0-9]{{1,6}})?"
_ZONE: Final = "[+-](?:0[0-9]|1[0-4]):[0-5][0-9]"
_BLANKS: Final = r"[\x00-\x20\x7F]*"  # what Spark removes around whole numbers
_WHOLE_NUMBER: Final = rf"\A{_BLANKS}([+-]?[0-9]+){_BLANKS}\z"
_NUMBER: Final = (
    r"\A[\x00-\x20]*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[dDfF]?[\x00-\x20]*\z"  # as in Java
)
_OTHER_NUMBERS: Final = r"(?i)0x|\A[^0-9a-z]*(?:nan|inf|infinity)[^0-9a-z]*[df]?[^0-9a-z]*\z"
_ONLY_DATE: Final = rf"\A({_DATE})(?:[ T](?s:.)*)?\z"
_TIME: Final = rf"\A({_DATE}(?:[ T](?:{_MINUTE}|{_SECOND}))?)\z"
_TIME_IN_UTC: Final = rf"\A({_DATE}(?:[ T](?:{_MINUTE}|{_SECOND}))?|{_DATE}[ T]{_SECOND}Z)\z"
_TIME_IN_ZONE: Final = rf"\A({_DATE}[ T]{_SECOND}{_ZONE})\z"
_FORMS: Final = {"date": _ONLY_DATE, "timestamp_ntz": _TIME, "timestamp": _TIME_IN_UTC}
_MAYBE_TIME: Final = r"\A[\x00-\x20\x7F]*(?:[+-]?[0-9]{4,7}(?:[^0-9]|\z)|T|[0-9]{1,2}:)"
"""How texts begin that may be dates or times for Spark."""
_WORDS: Final = {
    "TRUE": ("t", "true", "y", "yes", "1"),
    "FALSE": ("f", "false", "n", "no", "0"),
}


def _part(text: str, form: str) -> str:
    """Return the part of a text that has a form; an empty text, which is no number or time, if it has another one."""
    return f"regexp_extract({text}, {in_text(form)}, 1)"


def _has(text: str, form: str) -> str:
    return f"regexp_matches({text}, {in_text(form)})"


def number_of(text: str, kind: str, how: str = "CAST") -> str:
    """Return a text as a whole number or DOUBLE; it fails for any other text. Words for numbers are left to Spark.

    With ``TRY_CAST`` as ``how`` any other text is NULL.
    """
    if kind in WHOLE:
        return f"{how}({_part(text, _WHOLE_NUMBER)} AS {WHOLE[kind]})"

    def read(text: str) -> str:
        known = holds_or_leaves(f"NOT {_has(text, _OTHER_NUMBERS)}")
        return f"CASE WHEN {known} THEN {how}({_part(text, _NUMBER)} AS DOUBLE) END"

    return once(text, read)


def time_of(text: str, kind: str) -> str:
    """Return a text as a date or time; it fails for any other text. Times of another form are left to Spark."""

    def read(text: str) -> str:
        forms = [_FORMS[kind]]
        value = f"CAST({_part(text, _FORMS[kind])} AS {'DATE' if kind == 'date' else 'TIMESTAMP'})"
        if kind == "timestamp":
            forms.append(_TIME_IN_ZONE)
            zoned = f"make_timestamp(epoch_us(CAST({_part(text, _TIME_IN_ZONE)} AS TIMESTAMPTZ)))"
            value = f"CASE WHEN {_has(text, f'{_ZONE}$')} THEN {zoned} ELSE {value} END"
        known = holds_or_leaves(" OR ".join([*(_has(text, form) for form in forms), f"NOT {_has(text, _MAYBE_TIME)}"]))
        return f"CASE WHEN {known} THEN {value} END"

    return once(text, read)


def _boolean(text: str) -> str:
    """Return a text as a BOOLEAN; it fails for any other text, and for one with blanks around it."""

    def read(text: str) -> str:
        whens = (
            f"WHEN lower({text}) IN ({', '.join(map(in_text, words))}) THEN {value}" for value, words in _WORDS.items()
        )
        return f"CASE {' '.join(whens)} WHEN {holds_or_fails(f'{text} IS NULL')} THEN NULL END"

    return once(text, read)


def _tried_time(text: str, kind: str) -> str:
    form = _FORMS[kind]

    def read(text: str) -> str:
        plain = f"TRY_CAST({_part(text, form)} AS {'DATE' if kind == 'date' else 'TIMESTAMP'})"
        known = f"WHEN {_has(text, form)} THEN {plain}"
        return f"CASE {known} WHEN {_has(text, _MAYBE_TIME)} THEN {time_of(text, kind)} END"

    return once(text, read)


_CASTS: Final[Mapping[str, tuple[Callable[[str, str], str], Callable[[str, str], str]]]] = {
    **dict.fromkeys((*WHOLE, "double"), (number_of, partial(number_of, how="TRY_CAST"))),
    **dict.fromkeys(("date", "timestamp", "timestamp_ntz"), (time_of, _tried_time)),
}


def from_text(text: str, kind: str, *, tries: bool = False) -> str:
    """Return a text in another type; raises ``Untranslated``. ``tries``: what is no such value is NULL."""
    if kind == "boolean" and not tries:
        return _boolean(text)
    if kind not in _CASTS:
        raise Untranslated(f"a text as {kind}")
    return _CASTS[kind][tries](text, kind)


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
