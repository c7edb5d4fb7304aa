"""Oracle of the merge: rows leave in the order (rowtime, keys, writer, position) (semantics 2.1, 2.5)."""

from __future__ import annotations

from dataclasses import replace

from tests.oracle.feed import Bound, Feed, Row, bound_of, clocks_of, rows_of, sortable


def merge(feed: Feed, *, keyed: bool = False) -> Feed:
    """The rows that the clocks release, in stream order, as one writer's; then the bound.

    A row of writer i at t leaves when every writer named before i has a clock above t, and every other has reached t.
    If further keys order equal times (``keyed``), a row that belongs before it may come until the bound is above t, so
    it waits for that.
    """
    clocks = clocks_of(feed)

    def may_leave(writer: str, row: Row) -> bool:
        assert row.at is not None
        if keyed:
            return all(row.at < clock for clock in clocks.values())
        return all(row.at < clock if other < writer else row.at <= clock for other, clock in clocks.items())

    out = [
        (row.at, [sortable(key) for key in row.keys], writer, position, row)
        for writer, items in feed.items()
        for position, row in enumerate(rows_of(items))
        if may_leave(writer, row)
    ]
    out.sort(key=lambda entry: entry[:4])
    # Merged rows are ordered: for the next operator, position orders equal times, and no key any more.
    return {"": [*(replace(entry[4], keys=()) for entry in out), Bound(bound_of(feed))]}
