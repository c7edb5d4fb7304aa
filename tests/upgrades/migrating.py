"""Shared by the tests of ``rowtime migrate``: hours of numbers, and drivers that die during it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import rowtime as rt
from rowtime.state.journal import Journal
from tests.deaths import Died

if TYPE_CHECKING:
    import pytest

STREAM = "CREATE STREAM a (n BIGINT, day DATE);"
EVEN = " WHERE n % 2 = 0"
BEFORE_ENTRY, BEHIND_ENTRY = "before the entry", "behind the entry"
BEFORE_ROWS, BEHIND_ROWS = "before the rows", "behind the rows"


def hours(numbers: Iterable[int], ends: int) -> list[tuple[int, int]]:
    """Number of rows and totals of the hours that have ended at a minute; number n comes in minute n."""
    given = list(numbers)
    found = [[n for n in given if n // 60 == hour] for hour in range(ends // 60)]
    return [(len(one), sum(one)) for one in found]


def end() -> None:
    """Stand for the death of the driver."""
    raise Died


def die_at(
    point: str,
    writes: tuple[type[Any], str],
    patch: pytest.MonkeyPatch,
    times: int = 1,
    die: Callable[[], None] = end,
) -> None:
    """Let the driver die at a point of a migration; ``writes``: the method that writes rows, the last of ``times``."""
    kind, name = writes
    done, real = [], getattr(kind, name)

    def dies(*_: object, **__: object) -> None:
        die()

    def write(*given: Any, **named: Any) -> Any:
        if point == BEFORE_ROWS:
            die()
        found = real(*given, **named)
        done.append(given)
        if len(done) == times:
            die()
        return found

    if point == BEFORE_ENTRY:
        patch.setattr(Journal, "commit", dies)
    elif point == BEHIND_ENTRY:
        patch.setattr(rt.Pipeline, "_engine", dies)
    else:
        patch.setattr(kind, name, write)
