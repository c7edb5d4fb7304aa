"""Literal patterns of texts that Java refuses: regular expressions, and formats such as ``%d``.

Spark reads them when it computes the first row, outside of what can be tried for a row; so `rowtime check` reads them.
Only what is certainly wrong is refused here.
"""

from __future__ import annotations

import re
from typing import Final

from rowtime.core.time_patterns import PatternFault

_FORMAT: Final = re.compile(
    r"%(?P<index>\d+\$|<)?(?P<flags>[-#+ 0,(]*)(?P<width>\d+)?(?:\.(?P<precision>\d+))?(?P<kind>[tT]?[a-zA-Z%]|)"
)
_WIDTH: Final = 7  # digits (`sql.sizes`)
_KINDS: Final = frozenset("bBhHsScCdoxXeEfgGaA%n")


def check_regex(pattern: str) -> None:
    """Raise ``PatternFault`` for a regular expression that Java cannot compile."""
    if re.search(r"\(\?[a-z]*x", pattern):  # it may have comments
        return
    at, groups, after = 0, 0, False  # after: something that can be repeated stands before
    while at < len(pattern):
        sign = pattern[at]
        if sign == "\\":
            at = _escaped(pattern, at)
            after = True
            continue
        if sign == "[":
            at, after = _class(pattern, at), True
            continue
        if sign == "(":
            groups, after = groups + 1, False
            begins = re.match(r"\((?:\?[:=!>]?)?", pattern[at:])
            at += begins.end() - 1 if begins else 0
        elif sign == ")":
            groups, after = groups - 1, True
            if groups < 0:
                raise PatternFault("a ) has no ( before it", r"Write \\) for the sign itself.")
        elif sign in "*+?" and not after:
            raise PatternFault(f"{sign} has nothing before it to repeat", rf"Write \\{sign} for the sign itself.")
        else:
            after = sign != "|"
        at += 1
    if groups:
        raise PatternFault("a ( is not closed", r"Close it, or write \\( for the sign itself.")


def _escaped(pattern: str, at: int) -> int:
    """Return the place behind a sign with a backslash."""
    if at + 1 == len(pattern):
        raise PatternFault("it ends with a single backslash", r"In a text of SQL, write \\\\ for the sign itself.")
    if pattern.startswith(r"\Q", at):
        end = pattern.find(r"\E", at)
        return len(pattern) if end < 0 else end + 2
    return at + 2


def _class(pattern: str, at: int) -> int:
    """Return the place behind a list of characters, which may contain others."""
    depth, first = 0, at
    while at < len(pattern):
        if pattern[at] == "\\":
            at = _escaped(pattern, at)
            continue
        if pattern[at] == "[":
            depth += 1
            at += 2 if pattern.startswith("[^", at) else 1
            at += pattern.startswith("]", at)  # the first one is a character
            continue
        depth -= pattern[at] == "]"
        at += 1
        if not depth:
            return at
    raise PatternFault(f"the [ at {first + 1} is not closed", r"Close it, or write \\[ for the sign itself.")


def check_format(pattern: str, values: int) -> None:
    """Raise ``PatternFault`` for a format of `java.util.Formatter` that cannot write so many values."""
    at, ordinary, last = 0, 0, 0
    while (at := pattern.find("%", at)) >= 0:
        match = _FORMAT.match(pattern, at)
        kind = match["kind"] if match else ""
        if match is None or not (kind in _KINDS or (kind[:1] in ("t", "T") and len(kind) > 1)):
            raise PatternFault(
                f"{pattern[at : at + 2]} is no conversion", "Write %s, %d or %f; %% for the sign itself."
            )
        if max(len(match[part] or "") for part in ("width", "precision")) > _WIDTH:
            raise PatternFault(f"{match[0]} is too wide", "Give it a smaller number.")
        if kind not in ("%", "n"):
            index = match["index"]
            ordinary += index is None
            last = last if index == "<" else int(index[:-1]) if index else ordinary
            if not 0 < last <= values:
                raise PatternFault(f"{match[0]} has no value: there are {values}", "Give a value for each conversion.")
        at = match.end()
