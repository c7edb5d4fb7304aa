"""Regular expressions of Java as those of DuckDB (RE2), if both match the same parts of each text.

Both take the leftmost match, and of several there the one that a search with backtracking meets first. They differ in
what some signs mean: each character and class is written out here. What is not listed raises ``Untranslated``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from rowtime.frames.words import Untranslated, in_text

_LINE_ENDS: Final = r"\n\r\x{85}\x{2028}\x{2029}"
_CLASSES: Final = {"d": "0-9", "w": "a-zA-Z0-9_", "s": r" \t\n\x0B\f\r"}  # those of Java
_NOT: Final = {name.upper(): of for name, of in _CLASSES.items()}
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_COUNT: Final = re.compile(r"\{(\d{1,3})(?:(,)(\d{1,3})?)?\}", re.ASCII)
_LONGEST: Final = 300  # characters of a pattern, and
_MOST: Final = 100  # repetitions: RE2 writes each of them out
_LONG: Final = 1000  # bytes of a text in which Java would need a deep stack to repeat a group


@dataclass
class Regex:
    """A regular expression in DuckDB's notation, and what has to hold where it is used."""

    sql: str = ""
    groups: int = 0
    repeated: set[int] = field(default_factory=set)
    """Groups of which Java and RE2 may remember another repetition."""
    is_empty: bool = False
    """It matches the empty text somewhere."""
    anchored: bool = False
    ends: bool = False
    """It has a ``$``, which Java also finds before the line end that ends the text."""
    ascii: bool = False
    """It ignores case: in Java only that of ASCII letters."""
    loops: bool = False
    literal: str | None = ""
    """The text that it stands for, if it is only that."""

    def holds_for(self, text: str) -> str:
        """Return a DuckDB condition for the texts that both match alike; empty if these are all."""
        tests = [
            f"NOT regexp_matches({text}, '[{_LINE_ENDS}]\\z')" if self.ends else "",
            f"strlen({text}) <= {_LONG}" if self.loops else "",
            f"strlen({text}) = length({text})" if self.ascii else "",
        ]
        return " AND ".join(filter(None, tests))

    @property
    def text(self) -> str:
        """Return the pattern as a text of DuckDB."""
        return in_text(self.sql)


@lru_cache(maxsize=1024)
def regex(pattern: str) -> Regex:
    """Translate a pattern of Java; raises ``Untranslated``."""
    return _Reader(pattern).read()


@dataclass
class _Reader:
    """Reads a pattern sign by sign."""

    pattern: str
    at: int = 0
    whole: Regex = field(default_factory=Regex)

    def read(self) -> Regex:
        if len(self.pattern) > _LONGEST or not self.pattern:
            raise self._untranslated()
        if self.pattern.startswith("(?i)"):
            self.at, self.whole.ascii, self.whole.literal = 4, True, None
            if not self.pattern.isascii():
                raise self._untranslated()
        sql, self.whole.is_empty = self._choice()
        if self.at < len(self.pattern):
            raise self._untranslated()
        self.whole.sql = f"(?i){sql}" if self.whole.ascii else sql
        return self.whole

    def _untranslated(self) -> Untranslated:
        return Untranslated(f"the pattern {self.pattern}")

    def _next(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def _taken(self) -> str:
        sign = self._next()
        if not sign:
            raise self._untranslated()
        self.at += 1
        return sign

    def _choice(self) -> tuple[str, bool]:
        """Return alternatives, and whether one of them matches the empty text."""
        parts = [self._sequence()]
        while self._next() == "|":
            self.at, self.whole.literal = self.at + 1, None
            parts.append(self._sequence())
        return "|".join(sql for sql, _ in parts), any(is_empty for _, is_empty in parts)

    def _sequence(self) -> tuple[str, bool]:
        text, is_empty = "", True
        while self._next() not in ("", "|", ")"):
            groups = self.whole.groups
            atom, can_be_empty, can_repeat = self._atom()
            if self._next() in ("*", "+", "?", "{"):
                if can_be_empty or not can_repeat:
                    raise self._untranslated()
                sign, can_be_empty = self._quantifier(groups, is_group=atom.startswith("("))
                atom += sign
            text, is_empty = text + atom, is_empty and can_be_empty
        return text, is_empty

    def _quantifier(self, groups: int, *, is_group: bool) -> tuple[str, bool]:
        """Return the quantifier, and whether it allows no repetition; ``groups``: before what it repeats."""
        self.whole.literal = None
        least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(self._next(), (0, 0))
        sign = self._next()
        if sign == "{":
            match = _COUNT.match(self.pattern, self.at)
            if match is None:
                raise self._untranslated()
            sign, least = match[0], int(match[1])
            most = least if match[2] is None else int(match[3]) if match[3] else None
            if max(least, most or 0) > _MOST or (most is not None and (most < least or not most)):
                raise self._untranslated()
        self.at += len(sign)
        if self._next() == "?":
            self.at, sign = self.at + 1, f"{sign}?"
        if self._next() in ("*", "+", "?", "{"):
            raise self._untranslated()
        if is_group and most != 1:
            self.whole.loops = True
            self.whole.repeated |= {*range(groups + 1, self.whole.groups + 1)}
        return sign, not least

    def _atom(self) -> tuple[str, bool, bool]:
        """Return one part, whether it matches the empty text, and whether it can be repeated."""
        sign = self._taken()
        if sign == "(":
            return self._group()
        if sign in "^$":
            self.whole.literal = None
            self.whole.anchored, self.whole.ends = self.whole.anchored or sign == "^", self.whole.ends or sign == "$"
            return (r"\A" if sign == "^" else r"\z"), True, False
        if sign == ".":
            self.whole.literal = None
            return f"[^{_LINE_ENDS}]", False, True
        if sign == "[":
            self.whole.literal = None
            return self._class(), False, True
        if sign == "\\":
            name = self._taken()
            if name in _CLASSES or name in _NOT:
                self.whole.literal = None
                return f"[{_CLASSES[name]}]" if name in _CLASSES else f"[^{_NOT[name]}]", False, True
            sign = self._character(name)
        elif sign in "*+?{})":
            raise self._untranslated()
        if self.whole.literal is not None:
            self.whole.literal += sign
        return _written(sign), False, True

    def _character(self, name: str) -> str:
        """Return the character behind a backslash."""
        if name in _CONTROLS:
            return _CONTROLS[name]
        if not name.isascii() or name.isalnum():
            raise self._untranslated()
        return name

    def _group(self) -> tuple[str, bool, bool]:
        self.whole.literal = None
        captures = self._next() != "?"
        if not captures and not self.pattern.startswith("?:", self.at):
            raise self._untranslated()
        self.at += 0 if captures else 2
        self.whole.groups += captures
        sql, is_empty = self._choice()
        if self._taken() != ")":
            raise self._untranslated()
        return f"({'' if captures else '?:'}{sql})", is_empty, True

    def _class(self) -> str:
        """Return a list of characters, without lists inside of it."""
        negated = self._next() == "^"
        self.at += negated
        parts: list[str] = []
        while (sign := self._taken()) != "]" or not parts:
            if sign in "[]&^":  # Java has lists in lists, and intersections
                raise self._untranslated()
            if sign == "\\":
                name = self._taken()
                if name in _CLASSES:
                    parts.append(_CLASSES[name])
                    if self._next() == "-":
                        raise self._untranslated()
                    continue
                sign = self._character(name)
            elif sign == "-" and parts and self._next() != "]":
                raise self._untranslated()
            parts.append(self._range(sign))
        return f"[{'^' if negated else ''}{''.join(parts)}]"

    def _range(self, first: str) -> str:
        """Return a character of a list, or those from it to another one."""
        if self._next() != "-" or self.pattern[self.at + 1 : self.at + 2] in ("", "]"):
            return _written(first)
        self.at += 1
        last = self._taken()
        if last == "\\":
            last = self._character(self._taken())
        elif last in "[]&^":
            raise self._untranslated()
        if last < first:
            raise self._untranslated()
        return f"{_written(first)}-{_written(last)}"


def _written(sign: str) -> str:
    """Return a character so that it has no other meaning."""
    return sign if sign.isascii() and sign.isalnum() else f"\\x{{{ord(sign):X}}}"


def replacement(text: str, pattern: Regex) -> str:
    """Return a replacement of Java as one of DuckDB; raises ``Untranslated``."""
    parts, at = [], 0
    while at < len(text):
        sign = text[at]
        at += 1
        if sign == "\\" and at < len(text):
            sign, at = text[at], at + 1
            parts.append(r"\\" if sign == "\\" else sign)
        elif sign == "$" and text[at : at + 1].isdigit() and text[at].isascii():
            number = int(text[at])
            if number > pattern.groups or number in pattern.repeated or pattern.groups > 9:  # noqa: PLR2004 - a digit
                raise Untranslated(text)
            parts.append(f"\\{number}")
            at += 1
        elif sign in "\\$":
            raise Untranslated(text)
        else:
            parts.append(sign)
    return "".join(parts)
