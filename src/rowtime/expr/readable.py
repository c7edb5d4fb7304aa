"""Expressions as users would write them: columns that the engine adds are shown by their meaning."""

from __future__ import annotations

import re

from sqlglot import exp

from rowtime.sql.generate import to_rowtime

_COLUMNS = {
    "t": "ROWTIME", "before": "ROWTIME", "a": "CURRENT_ROW_TIMESTAMP",
    "w": "writer", "p": "position", "r": "earlier ROWTIME",
    "lt": "left ROWTIME", "lw": "left writer", "lp": "left position",
    "rt": "right ROWTIME", "rw": "right writer", "rp": "right position",
    "n": "end of group", "h": "end of window", "u": "fire", "c": "change", "i": "row number",
    "m": "value", "v": "value", "e": "end", "x": "edge",
    "l_start": "left start", "l_end": "left end", "r_start": "right start", "r_end": "right end",
    "lifetime_start": "LIFETIME_START", "lifetime_end": "LIFETIME_END",
    "change": "change", "start": "start", "stop": "end", "new_stop": "new end",
    "since": "new start", "until": "new end", "bound": "CURRENT_BOUND()",
    "is_left": "is left", "row": "row", "latest": "latest",
}  # fmt: skip
_NUMBERED = {
    "k": "key", "a": "aggregate", "o": "sort key", "h": "window", "v": "value", "i": "row number", "r": "right value",
    "w": "right value",
}  # fmt: skip
_PLAIN = re.compile(r"`(\w+)`")
_OURS = re.compile(r"\b__([a-z_]+?)(\d*)\b")
_MARK = re.compile(r"`?__m:([^`\s]+)`?")


def readable(node: exp.Expr) -> str:
    """Return the text of an expression, without unnecessary quotes."""
    return in_words(to_rowtime(node))


def in_words(text: str) -> str:
    """Return a text with plain names unquoted, and without names that only the engine knows."""
    return _OURS.sub(_meaning, _MARK.sub(r"bound of \1", _PLAIN.sub(r"\1", text)))


def _meaning(match: re.Match[str]) -> str:
    name, number = match.groups()
    if number and name in _NUMBERED:
        return f"{_NUMBERED[name]} {int(number) + 1}"
    return "inner column" if number else _COLUMNS.get(name, "inner column")
