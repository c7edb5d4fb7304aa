"""Oracle of UNION ALL: all inputs together, ordered by input number, then writer (semantics 5)."""

from __future__ import annotations

from tests.oracle.feed import NOBODY, Bound, Feed, bound_of, has_left


def union_all(*feeds: Feed) -> Feed:
    """The writers of all inputs, with names whose order is (input, writer).

    An input without writers counts as a writer that has promised nothing.
    """
    return {
        f"{number:04d}/{writer}": items for number, feed in enumerate(feeds) for writer, items in _of_one(feed).items()
    }


def _of_one(feed: Feed) -> Feed:
    """An input whose writers have all left still promises their last clocks, under the name of no writer."""
    if not feed:
        return {"": ()}
    if all(map(has_left, feed.values())):
        return {**feed, NOBODY: [Bound(bound_of(feed))]}
    return feed
