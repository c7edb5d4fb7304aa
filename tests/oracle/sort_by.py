"""Oracle of ORDER BY m, k… (semantics 5): a row gets the end of its value of m; the keys order rows of one value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.oracle.feed import BEGINNING, END, Bound, Feed, Item, Row, Values, bound_of, rows_of, sortable
from tests.oracle.group_by import Rounding
from tests.oracle.merge import merge


def sort_by(feed: Feed, value: Rounding, keys: Callable[[Values], tuple[Any, ...]]) -> Feed:
    """The rows under the stamps of their values; `merge` with ``keyed`` orders them."""

    def moved(item: Item) -> Item:
        if isinstance(item, Bound):
            return item if item.at in (BEGINNING, END) else Bound(value.stamp(item.at))
        assert item.at is not None
        return Row(value.stamp(item.at), item.values, item.arrived, (*keys(item.values), item.at))

    return {writer: [moved(item) for item in items] for writer, items in feed.items()}


def in_order(feed: Feed, keys: Callable[[Values], tuple[Any, ...]]) -> Feed:
    """Rows of equal rowtimes in the order of keys, then in their order before."""
    keyed = {
        writer: [replace(item, keys=keys(item.values)) if isinstance(item, Row) else item for item in items]
        for writer, items in feed.items()
    }
    return merge(keyed, keyed=True)


def with_sorted_ties(feed: Feed, keys: Callable[[Values], tuple[Any, ...]]) -> Feed:
    """One sequence whose rows of equal rowtimes are put in the order of keys, then in their order before."""
    ((writer, items),) = feed.items()
    rows = sorted(rows_of(items), key=lambda row: (row.at, [sortable(key) for key in keys(row.values)]))
    return {writer: [*rows, Bound(bound_of(feed))]}


def sort_by_values(feed: Feed, value: Callable[[Values], Any], keys: Callable[[Values], tuple[Any, ...]]) -> Feed:
    """All rows of a value together: complete when a row of another value has come, or at the end.

    The rows of a value get the rowtime of its last row, and come in the order of the keys. The promise is the bound, or
    the first row of the open value.
    """
    ((_, items),) = feed.items()
    rows, bound = rows_of(items), bound_of(feed)
    values = list(dict.fromkeys(value(row.values) for row in rows))
    out: list[Item] = []
    for found in values if bound >= END else values[:-1]:
        members = [row for row in rows if value(row.values) == found]
        last = max(row.at for row in members if row.at is not None)
        members.sort(key=lambda row: [sortable(key) for key in keys(row.values)])
        out += [replace(row, at=last, keys=()) for row in members]
    since = [row.at for row in rows if values and value(row.values) == values[-1] and row.at is not None]
    return {"": [*out, Bound(END if bound >= END else min([bound, *since]))]}
