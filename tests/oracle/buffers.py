"""Oracles of buffering operators: a delay by rowtime, and a gate that permits open (semantics 8.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.oracle.feed import END, Bound, Feed, Item, Refusal, Row, Values, clock_of, rows_of


def delay(feed: Feed, by: int) -> Feed:
    """The rows, each ``by`` later; bounds are not changed."""
    return {
        writer: [
            Row(item.at + by, item.values) if isinstance(item, Row) and item.at is not None else item for item in items
        ]
        for writer, items in feed.items()
    }


def gate(
    name: str, rows: Sequence[Item], permits: Sequence[Item], count: Callable[[Values], int | None] = lambda _: 1
) -> tuple[Feed, list[Refusal]]:
    """The k-th row with the k-th permit, under the later time; rows without a permit in the end are refused.

    The last bound is the later of the earliest times that the next row and the next permit can have.
    """
    times = [row.at or 0 for row in rows_of(permits) for _ in range(max(0, count(row.values) or 0))]
    waiting = [row for row in rows_of(rows) if row.at is not None]
    out: list[Item] = []
    while waiting and times:
        row = waiting.pop(0)
        out.append(Row(max(row.at or 0, times.pop(0)), row.values))
    no_more = clock_of(permits) >= END and not times
    refused = [Refusal(name, row.values, "NO_PERMIT", row.at, END) for row in waiting] if no_more else []
    row_at = waiting[0].at if waiting and not no_more else clock_of(rows)
    permit_at = times[0] if times else clock_of(permits)
    return {"": [*out, Bound(max(row_at or 0, permit_at) if row_at is not None else permit_at)]}, refused
