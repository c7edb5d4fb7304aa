"""Lone rows: rows that raise the mark by far, and whose time no later row confirms.

A row that is early by mistake makes the rows after it late. After a pause, the rows that follow confirm the time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from rowtime.core.time import BEGINNING, MINUTE

if TYPE_CHECKING:
    from numpy.typing import NDArray

FOLLOWERS: Final = 20
_ENOUGH: Final = 3
_OF_A_RUN, _OF_ALL = 32, 256


@dataclass
class Leap:
    """A row at ``position`` that raised the mark from ``before`` to ``after`` (µs); ``near`` of its ``followers``.

    A follower, one of the next 20 rows, is near if it is above the middle between the two marks.
    """

    position: int
    before: int
    after: int
    followers: int = 0
    near: int = 0

    @property
    def length(self) -> int:
        """Return how far the mark was raised (µs)."""
        return self.after - self.before

    @property
    def is_lone(self) -> bool:
        """Return True if there are at least three followers, and most are not near."""
        return self.followers >= _ENOUGH and self.near * 2 <= self.followers


@dataclass
class LoneRows:
    """The longest leaps of a stretch, of a minute and more."""

    leaps: list[Leap] = field(default_factory=list)
    _pending: list[Leap] = field(default_factory=list)

    def take(self, positions: NDArray[np.int64], times: NDArray[np.int64], before: NDArray[np.int64]) -> None:
        """Take rows in order, with the mark before each."""
        for leap in self._pending:
            _follow(leap, times[: FOLLOWERS - leap.followers])
        far = np.flatnonzero((before > BEGINNING) & (times - MINUTE >= before))
        if len(far) > _OF_A_RUN:
            far = np.sort(far[np.argsort(times[far] - before[far], kind="stable")[-_OF_A_RUN:]])
        for at in far.tolist():
            leap = Leap(int(positions[at]), int(before[at]), int(times[at]))
            _follow(leap, times[at + 1 : at + 1 + FOLLOWERS])
            self.leaps.append(leap)
        self._pending = [leap for leap in self.leaps[-FOLLOWERS:] if leap.followers < FOLLOWERS]
        if len(self.leaps) > 2 * _OF_ALL:
            self._keep()

    def close(self) -> None:
        """Keep the longest ones."""
        self._pending = []
        self._keep()

    def _keep(self) -> None:
        pending = {id(leap) for leap in self._pending}
        ranked = sorted(self.leaps, key=lambda leap: (id(leap) in pending, leap.length), reverse=True)[:_OF_ALL]
        self.leaps = sorted(ranked, key=lambda leap: leap.position)

    @property
    def lone(self) -> list[Leap]:
        """Return the leaps of lone rows."""
        return [leap for leap in self.leaps if leap.is_lone]


def _follow(leap: Leap, times: NDArray[np.int64]) -> None:
    leap.followers += len(times)
    leap.near += int((times >= leap.before + leap.length // 2).sum())
