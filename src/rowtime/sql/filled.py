"""A script whose variables have values: what is parsed, beside what was written, which is what people are shown."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self

from rowtime.core.secrets import VARIABLE, starred


class Piece(NamedTuple):
    """The value of one variable: where it stands, and where the variable is in what was written."""

    start: int
    end: int
    written_start: int
    written_end: int


class FilledText(str):
    """The text with values. ``written``: as people wrote it; ``shown``: that without the secrets written out in it.

    Places of problems are those in ``shown``, which has the lines and columns of ``written``.
    """

    __slots__ = ("pieces", "shown", "written")
    written: str
    shown: str
    pieces: Sequence[Piece]

    @classmethod
    def of(cls, written: str, variables: Mapping[str, str]) -> Self:
        """Put in the values of the variables that have one; quotes in them do not end a text."""
        parts: list[str] = []
        pieces: list[Piece] = []
        length = last = 0
        for found in VARIABLE.finditer(written):
            if found[1] not in variables:
                continue
            value = variables[found[1]].replace("'", "''")
            before = written[last : found.start()]
            length += len(before)
            pieces.append(Piece(length, length + len(value), *found.span()))
            parts += [before, value]
            length, last = length + len(value), found.end()
        made = cls("".join([*parts, written[last:]]))
        made.written, made.shown, made.pieces = written, starred(written), pieces
        return made

    def missing(self) -> list[tuple[str, int, int]]:
        """The variables that have no value: their names, and where they are written, the last offset too."""
        known = {piece.written_start for piece in self.pieces}
        found = VARIABLE.finditer(self.written)
        return [(one[1], one.start(), one.end() - 1) for one in found if one.start() not in known]

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """The offsets in ``written`` of the characters from ``start`` to ``end``, which is the last of them."""
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
    """What people are shown of a text, with the offsets there; ``end`` is the last character."""
    if isinstance(text, FilledText):
        return text.shown, *text.origin(start, end)
    return text, start, end
