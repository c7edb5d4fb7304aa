"""When panes fired, and because of which rows: the bounds of event times in a traced run.

A row contributed to a fire if it came up to the item that caused the bound of the fire, and was not behind the discard
age when it came (semantics 8.3).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from rowtime.core.time import BEGINNING, shift
from rowtime.kernels.timeline import LAST, Timeline


class FireTimes:
    """The bounds of each event time, by the tick and the position of the items that caused them."""

    def __init__(self) -> None:
        self._lines: dict[str, list[tuple[int, Timeline]]] = defaultdict(list)

    def add(self, event: str, tick: int, line: Timeline) -> None:
        """Record what the bound of an event time did in a tick."""
        self._lines[event].append((tick, line))

    def cut(self, event: str, fire: int) -> tuple[int, int]:
        """Return tick and position of the item that first caused a bound of ``fire`` (µs) or more."""
        for tick, line in self._lines[event]:
            at = int(np.searchsorted(line.values, fire))
            if at < len(line.values):
                return tick, int(line.positions[at])
        return self._lines[event][-1][0] if self._lines[event] else 0, LAST

    def refused(self, event: str, age: int, places: Sequence[tuple[int, int]], times: Sequence[int]) -> list[bool]:
        """Return whether rows at some places (tick, position) with these event times (µs) were too late for panes."""
        lines = dict(self._lines[event])
        verdicts = []
        for (tick, position), time in zip(places, times, strict=True):
            bound = int(lines[tick].at(np.array([position]))[0]) if tick in lines else BEGINNING
            verdicts.append(time < shift(bound, -age))
        return verdicts
