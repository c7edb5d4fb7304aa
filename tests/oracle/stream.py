"""Oracle of a stream: which items of its writers are accepted (semantics 2.2 to 2.4)."""

from __future__ import annotations

from collections.abc import Sequence

from tests.oracle.feed import BEGINNING, END, Bound, Feed, Given, Item, Judged, Leave, Refusal, Return, Row
from tests.oracle.guard import vote


def stream(name: str, feed: Feed, early: int | None = None, resync: int = 0, ahead: int | None = None) -> Judged:
    """Give every row its rowtime; refuse rows below their writer's clock.

    A row raises the clock to its own rowtime. An equal rowtime is accepted; a weaker bound is ignored. A row without a
    rowtime gets its arrival time, raised to the clock, but never to the end, after which every row is refused.

    ``early``: a rowtime that is further above the clock than this is refused and does not raise the clock; but not
    before the writer's first row with a rowtime, which is accepted whatever bounds came before. ``resync``: the first
    such row and each early one waits, with all items after it, until enough later rows are near it, and it counts, or
    enough are not, or the writer ends. Rows without a rowtime vote with their arrival times. ``ahead``: a rowtime that
    is this far or further above the arrival time is refused too.

    A writer that returns starts at the present clock of the stream: its rows below that are late, and out of order if
    they are below its own clock.
    """
    accepted: dict[str, list[Item]] = {}
    refused: list[Refusal] = []
    for writer, items in feed.items():
        clock, started, floor = BEGINNING, False, BEGINNING
        accepted[writer] = []
        for number, item in enumerate(items):
            if isinstance(item, Leave | Return):
                floor = max(floor, item.clocks[name]) if isinstance(item, Return) else floor
                accepted[writer] += [item, *([Bound(floor)] if isinstance(item, Return) else [])]
                continue
            if isinstance(item, Row):
                raised = item.arrived if clock >= END else max(item.arrived, clock, floor)
                at = raised if item.at is None else item.at
                if ahead is not None and item.at is not None and at >= item.arrived + ahead:
                    refused.append(Refusal(name, item.values, "EARLY", at, clock))
                    continue
                if at < clock:
                    refused.append(Refusal(name, item.values, "OUT_OF_ORDER", at, max(clock, floor)))
                    continue
                if at < floor:
                    refused.append(Refusal(name, item.values, "LATE", at, floor))
                    continue
                if early is not None and item.at is not None and (at > clock + early if started else resync):
                    verdict = _voted(items[number:], early, resync) if resync else "EARLY"
                    if verdict is None:
                        break
                    if verdict == "EARLY":
                        refused.append(Refusal(name, item.values, "EARLY", at, clock))
                        continue
                started = started or item.at is not None
                accepted[writer].append(Row(at, item.values, item.arrived))
            elif isinstance(item, Given):
                accepted[writer].append(item)
                continue
            else:
                at = item.at
            clock = max(clock, at)
            accepted[writer].append(Bound(clock))
    rows_in = sum(isinstance(item, Row) for items in feed.values() for item in items)
    return Judged(accepted, refused, rows_in)


def _voted(items: Sequence[Item], early: int, resync: int) -> str | None:
    """The verdict of the rows after the first of some items about it, up to the end of the writer."""
    times: list[int | None] = []
    for item in items:
        if isinstance(item, Bound) and item.at >= END:
            return vote(times, 0, early, resync, ended=True)
        if isinstance(item, Row):
            times.append(item.arrived if item.at is None else item.at)
    return vote(times, 0, early, resync, ended=False)
