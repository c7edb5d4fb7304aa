"""Bounds and clocks: promises that no earlier row will come.

A *clock* is the strongest bound that one writer has shown; ``Clocks`` maps the writers of a stream to their clocks. Of
two bounds, the stronger one holds, so a clock never goes back (law: ``strongest(a, b) >= a``); the clock of a stream is
the least clock of its writers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rowtime.core.time import BEGINNING, END

Clocks = Mapping[str, int]

NOBODY = "\U0010ffff"
"""The writer of a stream without writers; its clock is the greatest of all former writers. It sorts last."""


def strict(at: int) -> int:
    """Return a strict bound as a plain one: the next row is later than ``at`` (semantics 1)."""
    return at if at in (BEGINNING, END) else at + 1


def least(clocks: Iterable[int]) -> int:
    """Return the clock of a merge; a stream without writers has promised nothing."""
    return min(clocks, default=BEGINNING)


def strongest(one: Clocks, other: Clocks) -> dict[str, int]:
    """Combine two promises, writer by writer."""
    merged = dict(one)
    for writer, bound in other.items():
        merged[writer] = max(bound, merged.get(writer, BEGINNING))
    return merged


def frontier(clocks: Clocks) -> tuple[int, str]:
    """Return how far a merge may release rows, as (rowtime, writer), both inclusive.

    Semantics 2.5: a row of writer i at t may leave when the clock of every writer named before i is beyond t and the
    clock of every later writer has reached t. So all rows below the least clock m may leave. At m itself, the rows of
    the writers up to the first one whose clock is m may leave. These rows are a prefix of the merged order, wherever
    ticks are cut.
    """
    if not clocks:
        return (BEGINNING, "")
    lowest = min(clocks.values())
    return (lowest, min(name for name, bound in clocks.items() if bound == lowest))
