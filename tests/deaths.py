"""Drivers that die at a given point of a tick."""

from __future__ import annotations

from collections.abc import Callable


class Died(BaseException):
    """Stands for the death of the driver."""


def dying(at: str) -> Callable[[str], None]:
    """A hook of the engine that raises at a given point."""

    def hook(point: str) -> None:
        if point == at:
            raise Died

    return hook
