"""When a quick way is worth trying that does not work for every tick."""

from __future__ import annotations

from typing import Final

_LONGEST: Final = 64


class Attempts:
    """After a failure, the next ticks are not tried: the more of them the sooner it has failed, at most 64."""

    def __init__(self) -> None:
        self._left = self._pause = self._tried = 0

    def worth(self) -> bool:
        """Return True if this tick is to be tried."""
        if self._left:
            self._left -= 1
            return False
        self._tried += 1
        return True

    def failed(self) -> None:
        """Note that the last attempt failed."""
        self._pause = 1 if self._tried > _LONGEST else min(2 * self._pause + 1, _LONGEST)
        self._left, self._tried = self._pause, 0
