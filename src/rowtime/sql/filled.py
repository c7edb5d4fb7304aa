"""A script with its variables filled in: this is parsed, and people are shown the text as it was written."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self

from rowtime.core.secrets import VARIABLE, Known
from rowtime.core.starred_sql import starred


class Piece(NamedTuple):
    """The value of one variable: its place in the filled text, and the variable's place in the written text."""

    start: int
    end: int
    written_start: int
    written_end: int


class FilledText(str):
    """A text with its variables filled in.

    ``written``: the text before; ``shown``: the same without literal secrets. Places of problems are places in
    ``shown``, which has the same lines and columns as ``written``.
    """

    __slots__ = ("pieces", "shown", "written")
    written: str
    shown: str
    pieces: Sequence[Piece]

    @classmethod
    def of(cls, written: str, variables: Mapping[str, str], known: Known = lambda _: False) -> Self:
        """Fill in the variables that have a value; quotes in a value do not end a text.

        ``known``: the options whose values are shown.
        """
        parts: list[str] = []
        pieces: list[Piece] = []
        length = last = 0
        for match in VARIABLE.finditer(written):
            if match[1] not in variables:
                continue
            value = variables[match[1]].replace("'", "''")
            before = written[last : match.start()]
            length += len(before)
            pieces.append(Piece(length, length + len(value), *match.span()))
            parts += [before, value]
            length, last = length + len(value), match.end()
        filled = cls("".join([*parts, written[last:]]))
        filled.written, filled.shown, filled.pieces = written, starred(written, known), pieces
        return filled

    def missing(self) -> list[tuple[str, int, int]]:
        """Return the variables without a value: the name, the first offset and the last one."""
        filled = {piece.written_start for piece in self.pieces}
        matches = VARIABLE.finditer(self.written)
        return [(match[1], match.start(), match.end() - 1) for match in matches if match.start() not in filled]

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Return the offsets in ``written`` of the characters ``start`` to ``end`` (inclusive)."""
        return self._at(start, 0), self._at(end, 1)

    def _at(self, offset: int, side: int) -> int:
        number = bisect_right(self.pieces, offset, key=lambda piece: piece.start) - 1
        if number < 0:
            return offset
        piece = self.pieces[number]
        if offset < piece.end:
            return piece.written_end - 1 if side else piece.written_start
        return offset - piece.end + piece.written_end


def as_written(text: str, start: int, end: int) -> tuple[str, int, int]:
    """Return the text to show to people, with the offsets in it; ``end`` is the last character."""
    if isinstance(text, FilledText):
        return text.shown, *text.origin(start, end)
    return text, start, end
