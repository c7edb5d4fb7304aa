"""Patterns of dates and times, such as ``yyyy-MM-dd HH:mm``, as Spark reads them since 3.0.

Spark refuses some letters itself and passes the rest to Java's `DateTimeFormatter`, which limits how often a letter may
be repeated. Spark finds out when it computes the first row, and then the run ends; so `rowtime check` reads them too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

_WEEKS: Final = "YWwuec"
"""Letters that depend on the first day of the week, which Spark refuses."""
_REFUSED: Final = "ABnNp"
_REFUSED_WHEN_READING: Final = "EFqQ"
_MOST: Final[Mapping[str, int]] = {
    "G": 4, "y": 6, "M": 4, "L": 4, "d": 2, "D": 3, "E": 4, "Q": 4, "q": 4, "F": 1, "a": 1, "H": 2, "h": 2, "K": 2,
    "k": 2, "m": 2, "s": 2, "S": 9, "V": 2, "z": 4, "O": 4, "X": 5, "x": 5, "Z": 5, "v": 4, "g": 19,
}  # fmt: skip
"""The letters that Java and Spark know, and how often each may stand in a row."""
_ONLY: Final[Mapping[str, tuple[int, ...]]] = {"V": (2,), "O": (1, 4), "v": (1, 4)}
_PART: Final = re.compile(r"(?P<field>([A-Za-z])\2*)|'(?P<text>(?:[^']|'')*)'|(?P<sign>.)", re.DOTALL)


class PatternFault(ValueError):
    """Spark refuses a pattern; the message says why, ``hint`` what to write."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.hint = hint


@dataclass(frozen=True)
class Part:
    """A run of one letter (``field``), or text that stands for itself; a sign such as ``[`` has neither."""

    field: str = ""
    text: str = ""


@lru_cache(maxsize=1024)
def parts_of(pattern: str, *, reading: bool = False) -> tuple[Part, ...]:
    """Return the parts of a pattern; raises ``PatternFault`` for one that Spark refuses.

    ``reading``: the pattern reads texts (TO_TIMESTAMP); otherwise it writes them (DATE_FORMAT).
    """
    _check_letters("".join(pattern.split("'")[::2]), reading=reading)
    if reading and "S" in pattern and pattern.count("'") % 2:
        return ()  # for fractions of any length, Spark splits the pattern itself, and closes quotes
    parts, depth = [], 0
    for match in _PART.finditer(pattern):
        field, text, sign = match["field"], match["text"], match["sign"]
        if field is not None:
            _check_field(field)
        elif sign == "'":
            raise PatternFault("a quote ' is not closed", "Close it; for the sign itself, write it twice.")
        elif sign in ("{", "}", "#"):
            raise PatternFault(f"{sign} is reserved", f"Put it in quotes: '{sign}'.")
        depth += (sign == "[") - (sign == "]")
        if depth < 0:
            raise PatternFault("] has no [ before it", "Put it in quotes: ']'.")
        literal = sign if sign not in ("[", "]") else ""
        parts.append(Part(field or "", literal or "" if text is None else text.replace("''", "'") or "'"))
    return tuple(parts)


def _check_letters(bare: str, *, reading: bool) -> None:
    """Refuse letters that Spark refuses, outside of quotes as it counts them: a quote in quotes ends them too."""
    for letter in bare:
        if letter in _WEEKS:
            hint = "Write yyyy for the year." if letter == "Y" else "Use EXTRACT, for example EXTRACT(WEEK FROM t)."
            raise PatternFault(f"Spark has no week-based fields: {letter}", hint)
        if letter in _REFUSED or (reading and letter in _REFUSED_WHEN_READING):
            raise PatternFault(f"Spark does not support the letter {letter}{' when it reads' * reading}", _QUOTE)


_QUOTE: Final = "Put text in quotes, each written twice in SQL: 'yyyy-MM-dd''T''HH:mm:ss'."


def _check_field(field: str) -> None:
    letter, count = field[0], len(field)
    if letter not in _MOST:
        raise PatternFault(f"{letter} is not a field of dates and times", _QUOTE)
    fits = _ONLY.get(letter, range(1, _MOST[letter] + 1))
    if count not in fits:
        most = max(fits)
        raise PatternFault(f"{field} has the wrong number of letters", f"Write {letter * most}, for example.")
