"""Guarded streams: with re-sync, with the limit above arrival, and filled by a pump of the same script."""

from __future__ import annotations

from tests.laws.arrival_pipelines import BEYOND_ARRIVAL, LIMIT
from tests.laws.pipelines import SECOND, Feeds, Law, _streams
from tests.oracle import feed as f
from tests.oracle.merge import merge
from tests.oracle.select import select
from tests.oracle.tsort import tsort
from tests.oracle.union_all import union_all

Result = tuple[f.Feed, list[f.Refusal]]
_BEYOND = "EARLY BEYOND INTERVAL '1' SECOND"


def _n(feed: f.Feed) -> f.Feed:
    return merge(select(feed, project=lambda v: {"n": v["n"]}))


def _voted(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a", early=SECOND, resync=2)
    return _n(a), refused


def _by_arrival(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a", ahead=LIMIT)
    return _n(a), refused


def _by_both(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a", early=3, resync=1, ahead=LIMIT + 4)
    return _n(a), refused


def _filled(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a", early=SECOND)
    (b,), others = _streams(feeds, "b")
    # A pump is one writer, whose rows come in the order of the merge; its guard sees only these rows.
    judged = tsort("a.p", merge(b), lambda _: None, early=SECOND, follows=lambda at: at)
    return _n(union_all(a, judged.feed)), [*refused, *others, *judged.refused]


VOTED = Law("a stream that finds back", ("stream",), "SELECT STREAM n FROM a", _voted,
            clauses=f"{_BEYOND} RESYNC AFTER 2 ROWS")  # fmt: skip
FILLED = Law("a guarded stream that a pump fills", ("stream", "t-sort", "merge"),
             "CREATE PUMP p AS INSERT INTO a SELECT STREAM n, v, ev FROM b; SELECT STREAM n FROM a", _filled,
             clauses=_BEYOND)  # fmt: skip
GUARDS_BY_ARRIVAL = (
    Law("a stream that looks at arrival", ("stream",), "SELECT STREAM n FROM a", _by_arrival, clauses=BEYOND_ARRIVAL),
    Law("a stream with all limits", ("stream",), "SELECT STREAM n FROM a", _by_both,
        clauses=f"EARLY BEYOND INTERVAL '0.000003' SECOND RESYNC AFTER 1 ROW {BEYOND_ARRIVAL.replace('003', '007')}"),
)  # fmt: skip
GUARDS = (VOTED, FILLED, *GUARDS_BY_ARRIVAL)
