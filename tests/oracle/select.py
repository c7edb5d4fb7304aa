"""Oracle of filter and projection: the same rowtimes, the same writers (semantics 5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.oracle.feed import Feed, Row, Values


def select(
    feed: Feed,
    where: Callable[[Values], bool | None] = lambda _: True,
    project: Callable[[Values], Values] = lambda v: v,
) -> Feed:
    """A row passes iff the condition is true, not null; its bound passes in any case."""
    return {
        writer: [
            replace(item, values=project(item.values)) if isinstance(item, Row) else item
            for item in items
            if not isinstance(item, Row) or where(item.values)
        ]
        for writer, items in feed.items()
    }
