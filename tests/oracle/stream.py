"""Oracle of a stream: what its writers may say (semantics 2.2 to 2.4)."""

from __future__ import annotations

from collections.abc import Sequence

from tests.oracle.feed import BEGINNING, END, Bound, Feed, Given, Item, Judged, Leave, Refusal, Return, Row
from tests.oracle.guard import vote


def stream(name: str, feed: Feed, early: int | None = None, resync: int = 0, ahead: int | None = None) -> Judged:
    """Give every row its rowtime; refuse what lies below its writer's clock.

    A row raises the clock to its own rowtime, equal is accepted, a weaker bound is ignored.
    Without a rowtime of its own a row has its arrival time, raised to the clock;
    none is raised to the end, behind which every row is refused.

    ``early``: a rowtime that a writer gave further above the clock is refused and does not
    raise it; not before the writer's first such row, which is accepted, whatever bounds came.
    ``resync``: the first such row and each early one waits, with everything behind it, until so
    many later rows lie near it, and it counts, or so many do not, or the writer ends. Those that
    nobody gave a rowtime vote with their arrival times.
    A writer that comes back starts where the stream stands then: what it sends below that is late, and out of order
    below what it has shown itself.

    ``ahead``: so is a rowtime that lies this far or further above the arrival time.
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
    """What the rows behind the first of some items say of it, up to the end of the writer."""
    times: list[int | None] = []
    for item in items:
        if isinstance(item, Bound) and item.at >= END:
            return vote(times, 0, early, resync, ended=True)
        if isinstance(item, Row):
            times.append(item.arrived if item.at is None else item.at)
    return vote(times, 0, early, resync, ended=False)
