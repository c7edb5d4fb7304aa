"""Oracle of the T-sort and of promotion, which is a T-sort within 0 (semantics 5, 7.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.oracle.feed import (
    BEGINNING,
    END,
    Bound,
    Feed,
    Given,
    Item,
    Judged,
    Leave,
    Refusal,
    Return,
    Row,
    Values,
    clock_of,
    rows_of,
)
from tests.oracle.guard import vote


def tsort(
    name: str,
    feed: Feed,
    time: Callable[[Values], int | None],
    within: int = 0,
    keys: Callable[[Values], tuple[Any, ...]] = lambda _: (),
    last_of_group: Callable[[int], int] = lambda at: at,
    early: int | None = None,
    resync: int = 0,
    follows: Callable[[int], int] | None = None,
    ahead: int | None = None,
) -> Judged:
    """Promote ``time`` to rowtime; each writer is judged by its own mark.

    A row is late iff time + within < the mark, which is the greatest time of the earlier rows of its writer. Bounds of
    the old clock say nothing about the new one, except the end. Rows are ahead of the bound, which is mark - within;
    `merge` orders them. A bound of the time itself that is set by hand (`Given`) is that of every writer: times below
    it are late, and it is promised at once.

    ``early``: a row that is further above the mark than this is refused too, and does not raise it. ``resync``: the
    first row and each such row waits, with all items after it, until enough later ones are near it, and it counts, or
    enough are not, or the writer ends. ``ahead``: a row that is this far or further above its arrival time is refused
    too, whatever the mark.

    ``follows``: the time is this function of the old rowtime and ascends with it, so the old bounds are bounds of it
    too (promotion without a sort). ``last_of_group``: GROUP BY … WITHIN judges a row by the last instant of its group.
    """

    def too_far(row: Row, at: int) -> bool:
        return ahead is not None and at >= row.arrived + ahead

    promoted: dict[str, list[Item]] = {}
    refused: list[Refusal] = []
    for writer, items in feed.items():
        mark = floor = BEGINNING
        promoted[writer] = []
        times = [time(row.values) for row in rows_of(items)]
        ended, number = clock_of(items) >= END, -1
        for item in items:
            number += isinstance(item, Row)
            if isinstance(item, Given | Leave | Return):
                floor = max(floor, _from_outside(name, item))
                promoted[writer] += {Given: [Bound(floor)], Leave: [item], Return: [item, Bound(floor)]}[type(item)]
                continue
            if isinstance(item, Bound):
                if item.at >= END:
                    promoted[writer].append(item)
                elif follows is not None:
                    promoted[writer].append(Bound(follows(item.at)))
                continue
            at = time(item.values) if follows is None else follows(item.at)
            if at is None:
                refused.append(Refusal(name, item.values, "NULL_ROWTIME", None, mark))
            elif too_far(item, at) or last_of_group(at) + within < mark or last_of_group(at) < floor:
                reason = "EARLY" if too_far(item, at) else "LATE"
                refused.append(Refusal(name, item.values, reason, at, max(mark, floor)))
            elif early is not None and (at > max(mark, floor) + early if mark > BEGINNING else resync):
                verdict = vote(times, number, early, resync, ended=ended) if resync else "EARLY"
                if verdict is None:
                    break
                if verdict == "EARLY":
                    refused.append(Refusal(name, item.values, "EARLY", at, mark))
                    continue
                mark = at
                promoted[writer] += [Row(at, item.values, keys=keys(item.values)), Bound(mark - within)]
            else:
                mark = max(mark, at)
                promoted[writer] += [Row(at, item.values, keys=keys(item.values)), Bound(mark - within)]
    rows_in = sum(isinstance(item, Row) for items in feed.values() for item in items)
    return Judged(promoted, refused, rows_in)


def _from_outside(name: str, item: Given | Leave | Return) -> int:
    """The floor that an item of another writer sets; BEGINNING for none."""
    if isinstance(item, Given):
        return item.at
    return item.clocks[name] if isinstance(item, Return) else BEGINNING
