"""Oracle of GROUP BY on a stream (semantics 5): one row per group, when no further row of it can come.

``ends`` and the rounding functions below compute the group of an instant. The whole input is divided into groups, and
those whose end the bound has reached go out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.oracle.feed import BEGINNING, END, Bound, Feed, Row, Values, bound_of, rows_of, sortable


@dataclass(frozen=True)
class Rounding:
    """A monotonic function of the rowtime: its value at an instant, and the group of that value.

    ``end``: the first instant past the group; ``stamp``: the least upper bound of its instants.
    """

    value: Callable[[int], int]
    end: Callable[[int], int]
    stamp: Callable[[int], int]


def floor(width: int) -> Rounding:
    """FLOOR(t TO unit) and STEP(t BY width): [g, g + width), mathematical floor from 1970."""

    def end(at: int) -> int:
        return at // width * width + width

    return Rounding(lambda at: at // width * width, end, end)


def ceil(width: int) -> Rounding:
    """CEIL(t TO unit): (g - width, g]; the group holds its own edge, so it ends a µs later."""

    def value(at: int) -> int:
        return -(-at // width) * width

    return Rounding(value, lambda at: value(at) + 1, value)


def shifted(rounding: Rounding, by: int) -> Rounding:
    """f(t + by): its values are f's, its groups come ``by`` earlier."""
    return Rounding(
        lambda at: rounding.value(at + by),
        lambda at: rounding.end(at + by) - by,
        lambda at: rounding.stamp(at + by) - by,
    )


def group_by(
    feed: Feed,
    closers: Sequence[Rounding],
    keys: Callable[[int, Values], tuple[Any, ...]],
    aggregate: Callable[[tuple[Any, ...], Sequence[Row]], Values],
    having: Callable[[Values], bool | None] = lambda _: True,
    stamp: Callable[[int], int] | None = None,
) -> Feed:
    """Groups of ``keys(rowtime, values)``, complete when the bound reaches the earliest closer's end.

    ``aggregate(keys, rows)`` makes the result row from the rows in stream order. The row has the end of its group as
    rowtime, or ``stamp`` of any instant in it; rows come in the order of ends, stamps, keys. The promise is the stamp
    of the group that holds the bound.
    """

    def end_of(at: int) -> int:
        return min(closer.end(at) for closer in closers)

    def stamp_of(at: int) -> int:
        return stamp(at) if stamp else min(closer.stamp(at) for closer in closers)

    bound = bound_of(feed)
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in in_stream_order(feed):
        assert row.at is not None
        groups.setdefault(keys(row.at, row.values), []).append(row)

    complete = []
    for key, rows in groups.items():
        some = rows[0].at
        assert some is not None
        if end_of(some) <= bound:
            result = Row(stamp_of(some), aggregate(key, rows))
            if having(result.values):
                complete.append((end_of(some), result.at, [sortable(part) for part in key], result))
    complete.sort(key=lambda entry: entry[:3])
    promised = stamp_of(bound) if BEGINNING < bound < END else bound
    return {"": [*(entry[3] for entry in complete), Bound(promised)]}


def in_stream_order(feed: Feed) -> list[Row]:
    """All rows in the order (rowtime, keys, writer, position), whether they can go out yet or not."""
    found = [
        (row.at, [sortable(key) for key in row.keys], writer, position, row)
        for writer, items in feed.items()
        for position, row in enumerate(rows_of(items))
    ]
    return [entry[4] for entry in sorted(found, key=lambda entry: entry[:4])]
