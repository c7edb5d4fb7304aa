"""Pipelines with OVER and their oracles: every kind of frame and state, with ties, nulls and disorder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.laws.pipelines import SECOND, Feeds, Law, _streams
from tests.oracle import feed as f
from tests.oracle import over as o
from tests.oracle.aggregates import greatest, least, mean, total
from tests.oracle.group_by import floor
from tests.oracle.merge import merge
from tests.oracle.ordered import group_by_values
from tests.oracle.over import Frame, over
from tests.oracle.select import select
from tests.oracle.tsort import tsort
from tests.oracle.union_all import union_all

Result = tuple[f.Feed, list[f.Refusal]]
Calls = dict[str, tuple[Frame, o.Aggregate]]


def _at(row: f.Row) -> int:
    assert row.at is not None
    return row.at


def _of(make: Callable[[Sequence[Any]], Any], name: str = "v") -> o.Aggregate:
    return lambda rows: make(o.column(rows, name))


def _over(feed: f.Feed, calls: Calls, key: o.Key = lambda _: None) -> f.Feed:
    return over(feed, calls, key, lambda v: {name: v[name] for name in ("n", *calls)})


def _ranges(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    recent = Frame(2 * SECOND, value=_at)
    before = Frame(3 * SECOND, SECOND, _at)
    calls: Calls = {
        "c": (recent, len), "s": (recent, _of(total)), "lo": (recent, _of(least)), "d": (before, len),
        "e": (Frame(0, value=_at), len),
    }  # fmt: skip
    return _over(merge(a), calls, lambda row: row.values["v"]), refused


def _running(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    all_, before = Frame(None), Frame(None, 1)
    calls: Calls = {
        "c": (all_, len), "s": (before, _of(total)), "hi": (all_, _of(greatest)), "av": (all_, _of(mean)),
        "f": (all_, o.nth("v", nulls=False)), "p": (Frame(1, 1), o.nth("n", default=0)),
    }  # fmt: skip
    return _over(merge(a), calls, lambda row: row.values["v"] and row.values["v"] % 2), refused


def _rows(feeds: Feeds) -> Result:
    parts, refused = _streams(feeds, "a", "b")
    few = Frame(2)
    calls: Calls = {
        "c": (few, len), "s": (few, _of(total)), "x": (Frame(3, 2), o.nth("n", 2, last=True)),
        "l": (Frame(3, 1), o.nth("v", last=True, nulls=False, default=-1)),
        "d": (few, lambda rows: len({*o.column(rows, "v", nulls=False)})),
    }  # fmt: skip
    return _over(merge(union_all(*parts)), calls), refused


def _periods(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    kept = merge(select(a, lambda v: None if v["n"] is None else v["n"] % 3 != 0))
    two = floor(2 * SECOND).value
    calls: Calls = {"c": (Frame(None), len), "p": (Frame(1, 1), o.nth("n"))}
    return _over(kept, calls, lambda row: two(_at(row))), refused


def _rounded(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    one = floor(SECOND).value
    frame = Frame(SECOND, value=lambda row: one(_at(row)))
    rank = Frame(None, 1, lambda row: one(_at(row)))
    calls: Calls = {
        "c": (frame, len), "r": (rank, lambda rows: len(rows) + 1),
        "dr": (Frame(None), lambda rows: len({one(_at(row)) for row in rows})),
        "cd": (frame, lambda rows: len({n % 3 for n in o.column(rows, "n", nulls=False)})),
    }  # fmt: skip
    return _over(merge(a), calls, lambda row: row.values["v"]), refused


def _sorted(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    judged = tsort("t", a, lambda v: v["ev"], 2 * SECOND)
    counted = over(merge(judged.feed), {"c": (Frame(SECOND, value=_at), len)})
    again = over(counted, {"m": (Frame(None, 1), _of(greatest, "c"))})
    return select(again, project=lambda v: {"n": v["n"], "c": v["c"], "m": v["m"]}), [*refused, *judged.refused]


def _of_a_maximum(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    made = over(merge(a), {"m": (Frame(None, 1), _of(greatest))})

    def row(key: tuple[bool, Any], _: tuple[Any, ...], rows: Sequence[f.Row]) -> f.Values:
        return {"m": key[1], "all": o.column(rows, "n")}

    return group_by_values(made, lambda v: f.sortable(v["m"]), lambda _: (), row), refused


def _expiring(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    calls: Calls = {"c": (Frame(None), len), "p": (Frame(1, 1), o.nth("n")), "s": (Frame(7, 1), _of(total, "n"))}
    made = over(merge(a), calls, lambda r: r.values["v"], lambda v: {k: v[k] for k in ("n", *calls)}, expires=SECOND)
    return made, refused


OVER = (
    Law("ranges of time a key", ("over", "merge"),
        "SELECT STREAM n, COUNT(*) OVER w AS c, SUM(v) OVER w AS s, MIN(v) OVER w AS lo, COUNT(*) OVER (PARTITION BY v "
        "RANGE BETWEEN INTERVAL '3' SECOND PRECEDING AND INTERVAL '1' SECOND PRECEDING) AS d, "
        "COUNT(*) OVER (PARTITION BY v RANGE CURRENT ROW) AS e "
        "FROM a WINDOW w AS (PARTITION BY v RANGE INTERVAL '2' SECOND PRECEDING)", _ranges),
    Law("running aggregates a key", ("over",),
        "SELECT STREAM n, COUNT(*) OVER w AS c, SUM(v) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS s, "
        "MAX(v) OVER w AS hi, AVG(v) OVER w AS av, FIRST_VALUE(v) IGNORE NULLS OVER w AS f, LAG(n, 1, 0) OVER w AS p "
        "FROM a WINDOW w AS (PARTITION BY MOD(v, 2))", _running),
    Law("numbers of rows over a union", ("over", "union all"),
        "SELECT STREAM n, COUNT(*) OVER w AS c, SUM(v) OVER w AS s, NTH_VALUE(n, 2) FROM LAST OVER (ROWS BETWEEN "
        "3 PRECEDING AND 2 PRECEDING) AS x, LAG(v, 1, -1) IGNORE NULLS OVER (ROWS 3 PRECEDING) AS l, "
        "COUNT(DISTINCT v) OVER w AS d "
        "FROM (SELECT STREAM * FROM a UNION ALL SELECT STREAM * FROM b) AS u WINDOW w AS (ROWS 2 PRECEDING)", _rows),
    Law("running totals that begin anew each period", ("over", "select"),
        "SELECT STREAM n, COUNT(*) OVER w AS c, LAG(n) OVER w AS p FROM a WHERE MOD(n, 3) <> 0 "
        "WINDOW w AS (PARTITION BY STEP(a.ROWTIME BY INTERVAL '2' SECOND))", _periods),
    Law("ranges from a rounded time", ("over",),
        "SELECT STREAM n, COUNT(*) OVER (w RANGE INTERVAL '1' SECOND PRECEDING) AS c, RANK() OVER w AS r, "
        "DENSE_RANK() OVER w AS dr, COUNT(DISTINCT MOD(n, 3)) OVER (w RANGE INTERVAL '1' SECOND PRECEDING) AS cd "
        "FROM a WINDOW w AS (PARTITION BY v ORDER BY FLOOR(a.ROWTIME TO SECOND))", _rounded),
    Law("keys that expire", ("over",),
        "SELECT STREAM n, COUNT(*) OVER w AS c, LAG(n) OVER w AS p, SUM(n) OVER (w ROWS BETWEEN 7 PRECEDING AND "
        "1 PRECEDING) AS s FROM a WINDOW w AS (PARTITION BY v) KEYS EXPIRE AFTER INTERVAL '1' SECOND", _expiring),
    Law("groups of a running maximum", ("over", "group by"),
        "CREATE VIEW t AS SELECT STREAM n, MAX(v) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS m FROM a; "
        "SELECT STREAM m, COLLECT_LIST(n) AS all FROM t GROUP BY m", _of_a_maximum),
    Law("a window over a window over a t-sort", ("over", "t-sort"),
        "CREATE VIEW t AS SELECT STREAM ev AS ROWTIME, n FROM a ORDER BY ev WITHIN INTERVAL '2' SECOND; "
        "CREATE VIEW u AS SELECT STREAM n, COUNT(*) OVER (RANGE INTERVAL '1' SECOND PRECEDING) AS c FROM t; "
        "SELECT STREAM n, c, MAX(c) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS m FROM u", _sorted),
)  # fmt: skip
