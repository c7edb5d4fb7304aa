"""The rows of a join's sides: those kept in segments, and those of the tick at their source."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from rowtime.core.time import BEGINNING, END
from rowtime.frames.local import is_local, joined
from rowtime.operators.contract import DataFrame, Operator, micros, passed, quoted
from rowtime.operators.contract.state import LARGE, Segments, rows_in


@dataclass(frozen=True)
class SideRows:
    """``segments`` without the files ``copied`` from the rows that are ``new``; ``time``: the column of the rowtime."""

    segments: Segments
    time: str
    new: DataFrame | None = None
    copied: frozenset[str] = frozenset()

    def between(self, low: int, high: int) -> DataFrame | None:
        """Return the rows with ``low`` <= rowtime < ``high``; ``None`` if there are certainly none."""
        segments = [
            s for s in self.segments.overlapping(max(low, BEGINNING) - 1, high - 1) if s.path not in self.copied
        ]
        new = None if self.new is None else between(self.new, self.time, low, high, large=True)
        if not segments:
            return new
        large = rows_in(segments) > LARGE
        kept = between(self.segments.read(segments), self.time, low, high, large=large)
        return kept if new is None else kept.unionByName(new)


def between(rows: DataFrame, time: str, low: int, high: int, *, large: bool) -> DataFrame:
    """Return rows with ``low`` <= time < ``high``; ``large``: in a form by which files skip row groups."""
    numbers = f"unix_micros({time})"
    by_group = large and not is_local(rows)
    column, edge = (time, micros) if by_group else (numbers, lambda at: passed(at, numbers))
    if BEGINNING < low < END:
        rows = rows.where(f"{column} >= {edge(low)}")
    if BEGINNING < high < END:
        rows = rows.where(f"{column} < {edge(high)}")
    return rows


def latest(rows: DataFrame, time: str) -> int | None:
    """Return the greatest time (µs) of rows that the driver has; ``None`` if it has to compute them, or for no rows."""
    if not is_local(rows) or not rows.known:
        return None
    greatest: int | None = pc.max(rows.column(time).cast(pa.int64())).as_py()
    return greatest


Side = tuple[Operator, Iterable[tuple[str, str]]]
"""An input, and its columns with their new names."""


def beside(rows: Callable[[Operator], DataFrame], sides: Iterable[Side]) -> DataFrame:
    """Return an empty DataFrame with the columns of both sides."""
    parts = (rows(side).selectExpr(*(f"{quoted(old)} AS {quoted(new)}" for old, new in names)) for side, names in sides)
    return reduce(lambda left, right: joined(left, right, "true", "inner"), parts)
