"""Bounds and clocks: promises that no earlier row will come.

A *clock* is the strongest bound that one writer has shown; ``Clocks`` maps the writers of
a stream to theirs. Two bounds combine to the stronger one, so a clock never goes back
(law: ``strongest(a, b) >= a``); the clock of a stream is the least of its writers'.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rowtime.core.time import BEGINNING, END

Clocks = Mapping[str, int]

NOBODY = "\U0010ffff"
"""Stands for a stream without writers; its clock is the greatest that any had shown. Named last, it holds no ties."""


def strict(at: int) -> int:
    """A strict bound as a plain one: the next row is later than ``at`` (semantics 1)."""
    return at if at in (BEGINNING, END) else at + 1


def least(clocks: Iterable[int]) -> int:
    """The clock of a merge; a stream without writers has promised nothing."""
    return min(clocks, default=BEGINNING)


def strongest(one: Clocks, other: Clocks) -> dict[str, int]:
    """Both promises together, writer by writer."""
    merged = dict(one)
    for writer, bound in other.items():
        merged[writer] = max(bound, merged.get(writer, BEGINNING))
    return merged


def frontier(clocks: Clocks) -> tuple[int, str]:
    """Up to where a merge may release rows, as (rowtime, writer), both inclusive.

    Semantics 2.5: a row of writer i at t leaves when every writer named before i has a clock beyond t and every later
    one has reached it. So everything below the least clock m leaves, and at m itself the rows of the writers up to the
    first whose clock is m. The rows that may leave are a prefix of the merged order, whatever the cut.
    """
    if not clocks:
        return (BEGINNING, "")
    lowest = min(clocks.values())
    return (lowest, min(name for name, bound in clocks.items() if bound == lowest))
