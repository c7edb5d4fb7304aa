"""Oracle of the join of two streams by rowtime and a condition (semantics 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.oracle.feed import BEGINNING, Bound, Feed, Row, Values, bound_of, clock_of, rows_of

Place = tuple[Any, ...]
NOWHERE: Place = (False,)
LATEST = 10**9


def placed(feed: Feed) -> list[tuple[Place, Row]]:
    """The rows in stream order, each with its position: (rowtime, writer, position)."""
    found = [
        ((True, row.at, writer, number), row)
        for writer, items in feed.items()
        for number, row in enumerate(rows_of(items))
    ]
    return sorted(found, key=lambda entry: entry[0])


def join(
    left: Feed,
    right: Feed,
    low: int,
    high: int,
    on: Callable[[Values, Values], bool | None],
    row: Callable[[Row | None, Row | None], Values],
    left_stamp: int | None = None,
    right_stamp: int | None = None,
) -> Feed:
    """Pairs with the difference right - left of rowtimes in [low, high] and a true ``on``, under the later rowtime.

    A row of an outer side (which has a stamp) without a match goes out at its rowtime plus the stamp. The order is
    (time, left row, right row), no row before any row. A row goes out when both clocks are above its time. A pair of an
    inner join whose time only one clock has passed goes out too, when no pair before it can still come.
    """
    lefts, rights = placed(left), placed(right)
    pairs = [
        ((max(_at(one), _at(other)), mine, theirs), one, other)
        for mine, one in lefts
        for theirs, other in rights
        if low <= _at(other) - _at(one) <= high and on(one.values, other.values)
    ]
    met = {id(row) for _, one, other in pairs for row in (one, other)}
    out: list[tuple[Place, Row | None, Row | None]] = list(pairs)
    if left_stamp is not None:
        out += [((_at(r) + left_stamp, place, NOWHERE), r, None) for place, r in lefts if id(r) not in met]
    if right_stamp is not None:
        out += [((_at(r) + right_stamp, NOWHERE, place), None, r) for place, r in rights if id(r) not in met]
    bound = min(bound_of(left), bound_of(right))
    inner = left_stamp is None and right_stamp is None
    first = _first_to_come(left, right, low, high) if inner else ()
    gone = [e for e in out if e[0][0] < bound or (e[0][0] == bound and first is not None and e[0] < first)]
    gone.sort(key=lambda entry: entry[0])
    return {"": [*(Row(place[0], row(one, other)) for place, one, other in gone), Bound(bound)]}


def left_alone(
    left: Feed,
    right: Feed,
    low: int,
    high: int,
    on: Callable[[Values, Values], bool | None],
    stamp: int,
    *,
    matched: bool,
) -> Feed:
    """The rows of the left with a match (or without one), once, at their rowtime plus the stamp, in order."""
    rights = placed(right)

    def met(one: Row) -> bool:
        return any(low <= _at(other) - _at(one) <= high and on(one.values, other.values) for _, other in rights)

    bound = min(bound_of(left), bound_of(right))
    rows = [(_at(one) + stamp, one) for _, one in placed(left) if met(one) == matched]
    return {"": [*(Row(at, one.values) for at, one in rows if at < bound), Bound(bound)]}


def _at(row: Row) -> int:
    assert row.at is not None
    return row.at


def _first_to_come(left: Feed, right: Feed, low: int, high: int) -> Place | None:
    """The least position of a pair at the bound that a later row can still make; ``None``: any."""
    bound = min(bound_of(left), bound_of(right))
    if bound == BEGINNING or bound_of(left) == bound_of(right):
        return None
    return min(_to_come(left, right, low, high, bound), default=(LATEST * bound * bound, NOWHERE, NOWHERE))


def _to_come(left: Feed, right: Feed, low: int, high: int, bound: int) -> Iterator[Place]:
    if bound_of(left) == bound:
        for writer in (w for w, items in left.items() if clock_of(items) == bound):
            yield from (
                (bound, (True, bound, writer, LATEST), place)
                for place, row in placed(right)
                if low <= _at(row) - bound <= high and _at(row) <= bound
            )
        return
    for writer in (w for w, items in right.items() if clock_of(items) == bound):
        yield from (
            (bound, place, (True, bound, writer, LATEST))
            for place, row in placed(left)
            if low <= bound - _at(row) <= high and _at(row) <= bound
        )
