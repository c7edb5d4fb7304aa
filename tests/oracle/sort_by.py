"""Oracle of ORDER BY m, k… (SPEC 5): a row takes the end of its value of m, and the keys order the value's rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.oracle.feed import BEGINNING, END, Bound, Feed, Item, Row, Values
from tests.oracle.group_by import Rounding


def sort_by(feed: Feed, value: Rounding, keys: Callable[[Values], tuple[Any, ...]]) -> Feed:
    """The rows under the stamps of their values; `merge` with ``keyed`` brings them into order."""

    def moved(item: Item) -> Item:
        if isinstance(item, Bound):
            return item if item.at in (BEGINNING, END) else Bound(value.stamp(item.at))
        assert item.at is not None
        return Row(value.stamp(item.at), item.values, item.arrived, (*keys(item.values), item.at))

    return {writer: [moved(item) for item in items] for writer, items in feed.items()}
