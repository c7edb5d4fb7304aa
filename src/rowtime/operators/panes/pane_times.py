"""The panes of an instant: [n · period + offset, + duration) for every integer n, negative ones too (semantics 8.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rowtime.core.fields import Micros
from rowtime.core.time import BEGINNING
from rowtime.operators.contract import UpTo
from rowtime.operators.groups.grouping import PartialTypes


@dataclass(frozen=True)
class PaneControl(UpTo, PartialTypes):
    """The scalars of panes; ``bound`` is how far they have fired.

    ``highest`` (µs UTC): the greatest event time. ``raised``: by writer, the last row that raised it by far. ``place``:
    the position of that row in its writer. ``jumps``: by number of a bound from elsewhere, the last item that raised it
    by far. ``lateness``: how far the late rows were below the bound (`Lateness`), as long as the query lives.
    """

    highest: int = BEGINNING
    raised: Mapping[str, Sequence[int]] = field(default_factory=dict)
    place: int | None = None
    jumps: Mapping[str, Sequence[int]] = field(default_factory=dict)
    lateness: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PaneTimes:
    """The length of panes, the distance between their starts, and their offset; all in µs.

    ``offset`` counts from 1970-01-01 UTC and is taken modulo the period.
    """

    duration: Micros
    period: Micros
    offset: Micros = 0

    @property
    def most(self) -> int:
        """Return the greatest number of panes that contain an instant."""
        return max(1, -(-self.duration // self.period))

    def first_end(self, times: np.ndarray) -> np.ndarray:
        """Return the end of the earliest pane that has not ended at each time."""
        ends: np.ndarray = times + self.period - (times - self.offset - self.duration) % self.period
        return ends

    def covers(self, times: np.ndarray) -> np.ndarray:
        """Return whether each time is in a pane; there may be gaps between panes."""
        if self.duration >= self.period:
            return np.ones(len(times), bool)
        covered: np.ndarray = self.first_end(times) - self.duration <= times
        return covered

    def ends_text(self, micros: str) -> str:
        """Return Spark SQL: the end of each pane of an instant (BIGINT µs), one row each."""
        shift = (self.offset + self.duration) % self.period
        first = f"({micros} + {self.period}L - pmod({micros} - {shift}L, {self.period}L))"
        if self.duration <= self.period:
            return first
        last = f"({micros} + {self.duration}L - pmod({micros} - {self.offset % self.period}L, {self.period}L))"
        return f"explode(sequence({first}, {last}, {self.period}L))"


def less(bounds: np.ndarray, age: int) -> np.ndarray:
    """Return the bounds minus the discard age; before the first bound nothing is late."""
    return np.where(bounds > BEGINNING, bounds - age, BEGINNING)
