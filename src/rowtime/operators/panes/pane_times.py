"""The panes of an instant: [n · period + offset, + duration) for every whole n, negative ones too (semantics 8.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rowtime.core.fields import Micros
from rowtime.core.time import BEGINNING
from rowtime.operators.contract import UpTo
from rowtime.operators.groups.grouping import PartialTypes


@dataclass(frozen=True)
class PaneControl(UpTo, PartialTypes):
    """What panes keep beside ``bound``, up to where they have fired.

    ``highest`` (µs UTC): the greatest event time.
    ``raised``: by writer, the row that raised it last by far.
    ``place``: where that row was in what its writer sent.
    ``jumps``: by number of a bound that comes from elsewhere, the item that raised it last by far.
    """

    highest: int = BEGINNING
    raised: Mapping[str, Sequence[int]] = field(default_factory=dict)
    place: int | None = None
    jumps: Mapping[str, Sequence[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class PaneTimes:
    """How long panes are, how far apart they begin, and from where they are counted; all in µs.

    ``offset`` counts from 1970-01-01 UTC and is taken modulo the period.
    """

    duration: Micros
    period: Micros
    offset: Micros = 0

    @property
    def most(self) -> int:
        """How many panes an instant has at most."""
        return max(1, -(-self.duration // self.period))

    def first_end(self, times: np.ndarray) -> np.ndarray:
        """The end of the earliest pane that has not ended at each time."""
        found: np.ndarray = times + self.period - (times - self.offset - self.duration) % self.period
        return found

    def covers(self, times: np.ndarray) -> np.ndarray:
        """Whether each time lies in a pane; between panes there may be gaps."""
        found: np.ndarray = self.first_end(times) - self.duration <= times
        return found

    def ends_text(self, micros: str) -> str:
        """Spark SQL: the end of each pane of an instant (BIGINT µs), one row each."""
        shift = (self.offset + self.duration) % self.period
        first = f"({micros} + {self.period}L - pmod({micros} - {shift}L, {self.period}L))"
        if self.duration <= self.period:
            return first
        last = f"({micros} + {self.duration}L - pmod({micros} - {self.offset % self.period}L, {self.period}L))"
        return f"explode(sequence({first}, {last}, {self.period}L))"


def less(bounds: np.ndarray, age: int) -> np.ndarray:
    """The bounds less the discard age; before the first bound nothing is late."""
    return np.where(bounds > BEGINNING, bounds - age, BEGINNING)
