"""The rows of a join's sides: those kept in segments, and those that are needed in this tick only."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from rowtime.core.time import BEGINNING, END
from rowtime.frames.frame import Frame
from rowtime.frames.queries import FEW_ROWS
from rowtime.operators.contract import Operator, passed, quoted
from rowtime.operators.contract.state import Segments


@dataclass(frozen=True)
class SideRows:
    """``segments``, and the rows that are ``new`` and not kept; ``time``: the column of the rowtime."""

    segments: Segments
    time: str
    new: Frame | None = None

    def between(self, low: int, high: int) -> Frame | None:
        """Return the rows with ``low`` <= rowtime < ``high``; ``None`` if there are certainly none."""
        segments = self.segments.overlapping(max(low, BEGINNING) - 1, high - 1)
        new = None if self.new is None else between(self.new, self.time, low, high)
        if not segments:
            return new
        kept = between(self.segments.read(segments), self.time, low, high)
        return kept if new is None else kept.unionByName(new)


def between(rows: Frame, time: str, low: int, high: int) -> Frame:
    """Return rows with ``low`` <= time < ``high``."""
    numbers = f"unix_micros({time})"
    if BEGINNING < low < END:
        rows = rows.where(f"{numbers} >= {passed(low, numbers)}")
    if BEGINNING < high < END:
        rows = rows.where(f"{numbers} < {passed(high, numbers)}")
    return rows


def divided(rows: Frame, time: str, last: int) -> tuple[Frame | None, Frame | None]:
    """Return the rows with times up to ``last`` (µs), and the others; ``None`` where there are none of a kind.

    Few rows that are not computed yet count as later ones: to compute them now would be one more query.
    """
    if rows.known == 0 or (rows.known is None and rows.sized <= FEW_ROWS):
        return None, rows
    ends = pc.fill_null(pc.less_equal(rows.column(time).cast(pa.int64()), last), fill_value=False)
    count = pc.sum(ends).as_py() or 0
    if count in (0, len(ends)):
        return (rows, None) if count else (None, rows)
    return rows.chosen(ends), rows.chosen(pc.invert(ends))


Side = tuple[Operator, Iterable[tuple[str, str]]]
"""An input, and its columns with their new names."""


def beside(rows: Callable[[Operator], Frame], sides: Iterable[Side]) -> Frame:
    """Return an empty Frame with the columns of both sides."""
    parts = (rows(side).selectExpr(*(f"{quoted(old)} AS {quoted(new)}" for old, new in names)) for side, names in sides)
    return reduce(lambda left, right: left.joined(right, "true", "inner"), parts)


def span(length: int) -> str:
    """Return a length of time (µs) as text, with a sign if it is negative."""
    return f"{'-' if length < 0 else ''}{timedelta(microseconds=abs(length))}"
