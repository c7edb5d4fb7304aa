"""The types of the oracle: items, feeds, refusals. Plain values, written to be read, not to be fast.

A *feed* is a stream as its writers write it: for each writer the items in its order. An item is a row or a bound.
Inside the oracle a row promises nothing by itself: code that lets a row promise its own rowtime adds a bound after it.
Times are µs UTC; BEGINNING and END stand for the infinities.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

BEGINNING, END = -(2**62), 2**62
NOBODY = "\U0010ffff"
FIRST_INSTANT, LAST_INSTANT = -62_135_596_800_000_000, 253_402_300_799_999_999

Values = Mapping[str, Any]


@dataclass(frozen=True)
class Row:
    """A row at ``at``; ``arrived`` is the time at which the source recorded it, ``keys`` order equal times."""

    at: int | None
    values: Values
    arrived: int = BEGINNING
    keys: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Bound:
    """A promise: no later row of this writer lies below ``at``."""

    at: int


@dataclass(frozen=True)
class Leave:
    """The writer leaves, or is set aside; this is its last item, unless it returns."""


@dataclass(frozen=True)
class Return:
    """The writer returns, at the present clock of each gate (by name); rows below it are late."""

    clocks: Mapping[str, int]


@dataclass(frozen=True)
class Given:
    """A bound (µs) of the next event time above, set by hand on its operator between two items."""

    at: int


Item = Row | Bound | Given | Leave | Return
Feed = Mapping[str, Sequence[Item]]


@dataclass(frozen=True)
class Refusal:
    """A row that a gate refused: the reason, the time, and the clock or mark that refused it."""

    gate: str
    values: Values
    reason: str
    time: int | None
    by: int


@dataclass(frozen=True)
class Judged:
    """The rows that a gate accepts, and those that it refuses."""

    feed: Feed
    refused: Sequence[Refusal]
    rows_in: int


def rows_of(items: Sequence[Item]) -> list[Row]:
    """The rows among some items."""
    return [item for item in items if isinstance(item, Row)]


def clock_of(items: Sequence[Item]) -> int:
    """Semantics 2.2: a writer's clock is the strongest bound that it has shown."""
    return max((item.at for item in items if isinstance(item, Bound)), default=BEGINNING)


def has_left(items: Sequence[Item]) -> bool:
    """True if the writer of these items has left and not returned."""
    acts = [item for item in items if isinstance(item, Leave | Return)]
    return bool(acts) and isinstance(acts[-1], Leave)


def clocks_of(feed: Feed) -> Mapping[str, int]:
    """Semantics 2.6: the clocks of the present writers; if there are none, the greatest shown clock.

    The latter is under a name after all others.
    """
    clocks = {writer: clock_of(items) for writer, items in feed.items()}
    present = {writer: clock for writer, clock in clocks.items() if not has_left(feed[writer])}
    return present or ({NOBODY: max(clocks.values())} if clocks else {})


def bound_of(feed: Feed) -> int:
    """Semantics 2.5: the clock of several writers is the least of theirs; without writers there is no promise."""
    return min(clocks_of(feed).values(), default=BEGINNING)


def sortable(value: Any) -> tuple[bool, Any]:
    """A value as Spark sorts it: null first."""
    return (value is not None, value)
