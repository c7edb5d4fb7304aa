"""Chains the clocks of stretches: facts about all rows of each key, as if one process had read them in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from rowtime.profiling.clocks import UNCOUNTED, Clock, KeyFacts, marks_before
from rowtime.profiling.counts import Durations


class UnsettledError(Exception):
    """Rows that a task has counted are below a mark of earlier rows: they have to be read again, in order."""


@dataclass
class Chain:
    """The clock of all rows so far; ``places`` of the keys by their names."""

    clock: Clock = field(default_factory=lambda: Clock(free=0, few=0))
    places: dict[str, int] = field(default_factory=dict)

    @property
    def facts(self) -> KeyFacts:
        """Return the facts by key."""
        return self.clock.facts

    def late(self, name: str) -> Durations:
        """Return how late the late rows of a key are."""
        at = self.places[name]
        return Durations(self.facts.late[at], int(self.facts.latest[at]))

    def add(self, names: Sequence[str], part: Clock) -> None:
        """Add the next stretch; ``names``: those of its keys. Raises ``UnsettledError``."""
        keys = np.array([self.places.setdefault(name, len(self.places)) for name in names], np.int32)
        self.facts.grow(len(self.places))
        self._check(keys, part)
        for times, judged, of in part.open:
            places = np.full(len(times), keys[0], np.int32) if of is None else keys[of]
            self._judge(times, judged, places)
        self._merge(keys, part)

    def _check(self, keys: np.ndarray, part: Clock) -> None:
        first = part.facts.first[: len(keys)]
        if ((first != UNCOUNTED) & (self.facts.marks[keys] > first)).any():
            raise UnsettledError

    def _judge(self, times: np.ndarray, judged: np.ndarray, keys: np.ndarray) -> None:
        self.clock.count(times, judged, keys, marks_before(times, keys, self.facts.marks))

    def _merge(self, keys: np.ndarray, part: Clock) -> None:
        mine, many = self.facts, len(keys)
        mine.marks[keys] = np.maximum(mine.marks[keys], part.facts.marks[:many])
        mine.lowest[keys] = np.minimum(mine.lowest[keys], part.facts.lowest[:many])
        mine.highest[keys] = np.maximum(mine.highest[keys], part.facts.highest[:many])
        mine.latest[keys] = np.maximum(mine.latest[keys], part.facts.latest[:many])
        mine.leap[keys] = np.maximum(mine.leap[keys], part.facts.leap[:many])
        mine.seen[keys] += part.facts.seen[:many]
        mine.late[keys] += part.facts.late[:many]
        self.clock.late.merge(part.late)
        self.clock.hours.merge(part.hours)
        self.clock.leaps.merge(part.leaps)


def chained(parts: Iterable[tuple[Sequence[str], Clock]]) -> Chain:
    """Return the chain of stretches, with the names of their keys, in order. Raises ``UnsettledError``."""
    chain = Chain()
    for names, part in parts:
        chain.add(names, part)
    return chain
