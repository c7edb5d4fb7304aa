"""Oracle of overlapping windows (semantics 5, 12): the windows of an instant, the rows with them, and their groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.oracle.feed import BEGINNING, END, Bound, Feed, Item, Judged, Refusal, Row, Values, bound_of, sortable
from tests.oracle.group_by import in_stream_order

Window = tuple[int, int]


@dataclass(frozen=True)
class Windows:
    """``[start, start + size)`` for every start that is ``offset`` plus a multiple of ``slide``.

    Windows that ``grow`` begin at multiples of ``size`` and end at multiples of ``slide``.
    """

    size: int
    slide: int
    offset: int = 0
    grow: bool = False

    def of(self, at: int) -> list[Window]:
        """The windows that contain an instant, in the order of their ends."""
        if self.grow:
            start = (at - self.offset) // self.size * self.size + self.offset
            ends = range(start + self.slide, start + self.size + 1, self.slide)
            return [(start, end) for end in ends if at < end]
        first = (at - self.size - self.offset) // self.slide * self.slide + self.offset
        starts = range(first, at + 1, self.slide)
        return [(start, start + self.size) for start in starts if start <= at < start + self.size]

    def next_end(self, at: int) -> int:
        """The first instant after ``at`` at which some window ends."""
        shift = self.offset if self.grow else self.offset + self.size
        return (at - shift) // self.slide * self.slide + self.slide + shift


def rows_with_windows(feed: Feed, windows: Windows) -> Feed:
    """Each row once for each of its windows, with ``s`` and ``e``; rowtimes and bounds do not change."""

    def copies(item: Item) -> list[Item]:
        if isinstance(item, Bound):
            return [item]
        assert item.at is not None
        return [_in_window(item, window) for window in windows.of(item.at)]

    return {writer: [copy for item in items for copy in copies(item)] for writer, items in feed.items()}


def windows_of_a_column(name: str, feed: Feed, windows: Windows, time: Callable[[Values], int | None]) -> Judged:
    """The windows of another time than the rowtime; a row without it is in none, and is refused."""
    kept: dict[str, list[Item]] = {}
    refused = []
    for writer, items in feed.items():
        kept[writer] = []
        for item in items:
            at = time(item.values) if isinstance(item, Row) else None
            if isinstance(item, Bound):
                kept[writer].append(item)
            elif at is None:
                refused.append(Refusal(name, item.values, "NULL_ROWTIME", None, item.at or BEGINNING))
            else:
                kept[writer] += [_in_window(item, window) for window in windows.of(at)]
    return Judged(kept, refused, sum(isinstance(item, Row) for items in feed.values() for item in items))


def _in_window(row: Row, window: Window) -> Row:
    return Row(row.at, {**row.values, "s": window[0], "e": window[1]}, row.arrived, row.keys)


def group_by_window(
    feed: Feed,
    windows: Windows,
    keys: Callable[[Values], tuple[Any, ...]],
    aggregate: Callable[[Window, tuple[Any, ...], Sequence[Row]], Values],
    having: Callable[[Values], bool | None] = lambda _: True,
) -> Feed:
    """One row per window and key when the bound has reached the window's end, which is its rowtime.

    Rows come in the order of ends, keys. The promise is the next end of a window after the bound.
    """
    groups: dict[tuple[Window, tuple[Any, ...]], list[Row]] = {}
    for row in in_stream_order(feed):
        assert row.at is not None
        for window in windows.of(row.at):
            groups.setdefault((window, keys(row.values)), []).append(row)
    bound = bound_of(feed)
    complete = []
    for (window, key), rows in groups.items():
        result = Row(window[1], aggregate(window, key, rows))
        if window[1] <= bound and having(result.values):
            complete.append((window[1], window[0], [sortable(part) for part in key], result))
    complete.sort(key=lambda entry: entry[:3])
    promised = windows.next_end(bound) if BEGINNING < bound < END else bound
    return {"": [*(entry[3] for entry in complete), Bound(promised)]}
