"""Places of tokens and tree nodes in their source text.

The parser works on tokens of the whole file, so every offset is an offset in the file. A node has its place in the
metadata that sqlglot keeps (``start`` and ``end``: offsets of the first and last character; ``line`` and ``col`` of the
last one), on itself or on its descendants.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate

from sqlglot import Token, exp

from rowtime.core.errors import Place, Refused, refuse
from rowtime.sql.filled import as_written

NAMED = "named"  # meta: the name that the user wrote, of an identifier that is known by another


def locate(node: exp.Expr, first: Token, last: Token) -> None:
    """Record on a node that it extends from one token to another.

    ``col`` is the column where the node would end if it were on one line, so that ``col - (end - start)`` is its first
    column, as for every located node.
    """
    node.update_positions(line=first.line, col=first.col + last.end - first.end, start=first.start, end=last.end)


def extend(node: exp.Expr, last: Token) -> None:
    """Extend a located node to a later token."""
    meta = node.meta
    meta["col"], meta["end"] = int(meta["col"]) + last.end - int(meta["end"]), last.end


def unlocated(node: exp.Expr) -> exp.Expr:
    """Return a node that a rule has parsed from a text of its own, without the places in that text."""
    for part in node.walk():
        for key in ("line", "col", "start", "end"):
            part.meta.pop(key, None)
    return node


def as_named(node: exp.Expr) -> exp.Expr:
    """Return a copy in which inputs have the names that the user wrote, not those by which they are known here."""
    copied = node.copy()
    for part in copied.find_all(exp.Identifier):
        if NAMED in part.meta:
            part.replace(exp.to_identifier(part.meta[NAMED]))
    return copied


def position(node: exp.Expr) -> tuple[int, int] | None:
    """Return line and column (from 1) of the first located token in a node; ``None`` if none is located."""
    located = [n.meta for n in node.walk() if n.meta.get("start") is not None]
    if not located:
        return None
    first = min(located, key=lambda meta: int(meta["start"]))
    return int(first["line"]), max(1, int(first["col"]) - int(first["end"]) + int(first["start"]))


def span(node: exp.Expr) -> tuple[int, int] | None:
    """Return the offsets of the first and last located character in a node; ``None`` if there is none."""
    located = [n.meta for n in node.walk() if n.meta.get("start") is not None]
    if not located:
        return None
    return min(int(m["start"]) for m in located), max(int(m["end"]) for m in located)


def place_at(text: str, start: int, end: int | None = None) -> Place:
    """Return the place of the characters ``start`` to ``end`` (inclusive) of a text.

    It is the place in the script as it was written, without the values of variables. It ends with its line; tabs in the
    line become blanks, so that carets fit.
    """
    start = max(0, min(start, len(text)))
    text, start, end = as_written(text, start, start if end is None else end)
    starts, lines = _lines(text)
    number = bisect_right(starts, start) - 1
    line, column = lines[number], start - starts[number] + 1
    length = end - start + 1
    return Place(line=number + 1, column=column, text=line, length=max(1, min(length, len(line) - column + 1)))


@lru_cache(maxsize=2)
def _lines(text: str) -> tuple[list[int], list[str]]:
    """Return where the lines of a text begin, and how they are shown; all places in a long line share one copy."""
    lines = text.split("\n")
    starts = [0, *accumulate(len(line) + 1 for line in lines[:-1])]
    return starts, [line.rstrip("\r").replace("\t", " ") for line in lines]


def place_of(text: str, node: exp.Expr) -> Place:
    """Return the place of a node in the file that it was parsed from.

    A node without any token of its own (one that a rule built) has the place of its nearest located ancestor, or the
    beginning of the text if there is none.
    """
    ancestor: exp.Expr | None = node
    while ancestor is not None:
        extent = span(ancestor)
        if extent is not None:
            return place_at(text, *extent)
        ancestor = ancestor.parent
    return place_at(text, 0)


def refuse_at(text: str, node: exp.Expr, code: str, message: str, hint: str = "") -> Refused:
    """Return a ``Refused`` with one problem at a node of the text, ready to raise."""
    return refuse(code, message, hint, place_of(text, node))
