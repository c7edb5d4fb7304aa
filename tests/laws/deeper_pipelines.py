"""More pipelines and their oracles: chains of operators, every kind of aggregate, unusual invalid rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from rowtime.testing.transcripts import ScriptItem
from tests.laws.pipelines import SECOND, Feeds, Law, _column, _instant, _streams
from tests.oracle import feed as f
from tests.oracle.aggregates import distinct, greatest, known, least, mean, total
from tests.oracle.group_by import ceil, floor, group_by, shifted
from tests.oracle.guard import judge
from tests.oracle.merge import merge
from tests.oracle.ordered import group_by_values, mark, ordered
from tests.oracle.select import select
from tests.oracle.sort_by import sort_by
from tests.oracle.tsort import tsort
from tests.oracle.union_all import union_all

Result = tuple[f.Feed, list[f.Refusal]]
TWO = floor(2 * SECOND)


def _n(feed: f.Feed) -> f.Feed:
    return select(feed, project=lambda v: {"n": v["n"]})


def _passed(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    return merge(_n(a)), refused


def _promoted(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    judged = tsort("query", a, lambda v: v["ev"])
    return merge(_n(judged.feed)), [*refused, *judged.refused]


def _promoted_from_the_rowtime(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    judged = tsort("query", a, lambda v: v["ev"], follows=lambda at: floor(SECOND).value(at) + SECOND)
    return merge(_n(judged.feed)), [*refused, *judged.refused]


def _filtered_and_sorted(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    kept = select(a, lambda v: None if v["v"] is None else v["v"] > 0)
    judged = tsort("query", kept, lambda v: v["ev"], SECOND, keys=lambda v: (v["v"],))
    return merge(_n(judged.feed), keyed=True), [*refused, *judged.refused]


def _sorted_twice(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    first = tsort("t", a, lambda v: v["ev"], 2 * SECOND)
    second = tsort("query", merge(first.feed), lambda v: None if v["v"] is None else v["ev"] + v["v"] * SECOND, SECOND)
    return merge(_n(second.feed)), [*refused, *first.refused, *second.refused]


def _edges_in_the_order_of_keys(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    judged = tsort("t", a, lambda v: v["ev"], 2 * SECOND, keys=lambda v: (v["v"],))

    def row(_: tuple[Any, ...], rows: Sequence[f.Row]) -> f.Values:
        n = _column(rows, "n")
        return {"f": n[0], "l": n[-1], "all": n}

    return group_by(judged.feed, [TWO], lambda at, _: (TWO.value(at),), row), [*refused, *judged.refused]


def _union_with_keys(feeds: Feeds) -> Result:
    (a, b), refused = _streams(feeds, "a", "b")
    judged = tsort("t", a, lambda v: v["ev"], 2 * SECOND, keys=lambda v: (v["v"],))
    return merge(_n(union_all(merge(judged.feed, keyed=True), b))), [*refused, *judged.refused]


def _union_of_groups(feeds: Feeds) -> Result:
    parts, refused = _streams(feeds, "a", "b")

    def row(key: tuple[Any, ...], rows: Sequence[f.Row]) -> f.Values:
        return {"v": key[1], "c": len(rows)}

    grouped = [group_by(part, [TWO], lambda at, v: (TWO.value(at), v["v"]), row) for part in parts]
    return merge(union_all(*grouped)), refused


def _group_of_groups(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    one = floor(SECOND)
    below = group_by(a, [one], lambda at, v: (one.value(at), v["v"]), lambda key, rows: {"v": key[1], "c": len(rows)})

    def row(_: tuple[Any, ...], rows: Sequence[f.Row]) -> f.Values:
        return {"s": total(_column(rows, "c")), "all": known(_column(rows, "v"))}

    return group_by(below, [TWO], lambda at, _: (TWO.value(at),), row), refused


def _aggregates(*, splits: bool) -> Callable[[Feeds], Result]:
    closer = ceil(SECOND) if splits else shifted(TWO, SECOND // 2)

    def keys(at: int, values: f.Values) -> tuple[Any, ...]:
        return (closer.value(at), None if values["v"] is None else values["v"] % 2)

    def row(key: tuple[Any, ...], rows: Sequence[f.Row]) -> f.Values:
        v = _column(rows, "v")
        made = {
            "g": key[1],
            "c": len(v),
            "k": len(known(v)),
            "s": total(v),
            "lo": least(v),
            "hi": greatest(v),
            "av": mean(v),
            "f": v[0],
            "l": v[-1],
        }
        return made if splits else {**made, "d": distinct(v), "all": known(v)}

    def oracle(feeds: Feeds) -> Result:
        (a,), refused = _streams(feeds, "a")
        return group_by(a, [closer], keys, row), refused

    return oracle


def _two_closers(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    up, down = ceil(SECOND), floor(SECOND)
    made = group_by(a, [up, down], lambda at, _: (up.value(at), down.value(at)), lambda _, rows: {"c": len(rows)})
    return made, refused


def _guarded(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    judged = tsort("query", a, lambda v: v["ev"], SECOND, early=2 * SECOND)
    return merge(_n(judged.feed)), [*refused, *judged.refused]


def _quarantined(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    judged = tsort("query", a, lambda v: v["ev"], SECOND, early=SECOND, resync=2)
    return merge(_n(judged.feed)), [*refused, *judged.refused]


def _guarded_stream(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a", early=SECOND)
    return merge(_n(a)), refused


def _split(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    judged = {}
    for writer, items in a.items():
        rows = f.rows_of(items)
        verdicts = iter(judge([row.values["ev"] for row in rows], SECOND, 2 * SECOND))
        judged[writer] = [
            f.Row(item.at, {"n": item.values["n"], **_verdict(item, *next(verdicts))})
            if isinstance(item, f.Row)
            else item
            for item in items
        ]
    return merge(judged), refused


def _verdict(row: f.Row, result: str, _: int | None, mark: int | None) -> f.Values:
    known = row.values["ev"] is not None
    return {"n": row.values["n"], "result": result if known else "NULL_ROWTIME", "hwm": mark}


def _promised_groups(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    judged = ordered("query", merge(a), lambda v: v["v"])

    def row(value: Any, keys: tuple[Any, ...], rows: Sequence[f.Row]) -> f.Values:
        n = _column(rows, "n")
        return {"g": value, "o": keys[0], "c": len(n), "l": n[-1]}

    made = group_by_values(judged.feed, lambda v: v["v"], lambda v: (v["n"] % 2,), row)
    return made, [*refused, *judged.refused]


def _promised_in_a_view(feeds: Feeds) -> Result:
    (a, b), refused = _streams(feeds, "a", "b")
    kept = select(merge(union_all(a, b)), lambda v: None if v["n"] is None else v["n"] % 3 != 0)
    judged = ordered("t", kept, lambda v: v["v"])

    def row(value: int, _: tuple[Any, ...], rows: Sequence[f.Row]) -> f.Values:
        return {"g": -value, "all": _column(rows, "n")}

    return group_by_values(judged.feed, lambda v: v["v"] // 2, lambda _: (), row), [*refused, *judged.refused]


def _loosely(
    column: str, place: Callable[[Any], Any], shown: Callable[[Any], Any], within: int = 0, rows: int = 0
) -> Callable[[Feeds], Result]:
    """Groups of a column that may go back; ``place`` is the group of a value, ``shown`` the visible value."""

    def oracle(feeds: Feeds) -> Result:
        (a,), refused = _streams(feeds, "a")
        (items,) = merge(a).values()
        came = [row.values[column] for row in f.rows_of(items)]
        judged = ordered(f"a.{column}", {"": items}, lambda v: v[column], within, rows)

        def now() -> Any:
            least = mark(came, within, rows)
            return None if least is None else place(least)

        def row(value: Any, _: tuple[Any, ...], members: Sequence[f.Row]) -> f.Values:
            return {"g": shown(value), "all": _column(members, "n")}

        made = group_by_values(judged.feed, lambda v: place(v[column]), lambda _: (), row, now)
        return merge(made, keyed=True), [*refused, *judged.refused]

    return oracle


def _sorted_inside(feeds: Feeds) -> Result:
    (a, b), refused = _streams(feeds, "a", "b")
    rows = select(union_all(a, b), project=lambda v: {"n": v["n"], "v": v["v"]})
    return merge(sort_by(rows, TWO, lambda v: (v["v"],)), keyed=True), refused


def _stamped(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    made = group_by(a, [TWO], lambda at, _: (TWO.value(at),), lambda _, rows: {"c": len(rows)}, stamp=TWO.value)
    return made, refused


def _distinct(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    made = group_by(a, [TWO], lambda at, v: (TWO.value(at), v["v"]), lambda key, _: {"at": key[0], "v": key[1]})
    return made, refused


def _pumped(feeds: Feeds) -> Result:
    (a, b), refused = _streams(feeds, "a", "b")
    judged = tsort("p", a, lambda v: v["ev"], SECOND)
    return merge(_n(union_all(b, merge(judged.feed)))), [*refused, *judged.refused]


_ALL = (
    "COUNT(*) AS c, COUNT(v) AS k, SUM(v) AS s, MIN(v) AS lo, MAX(v) AS hi, AVG(v) AS av, FIRST(v) AS f, LAST(v) AS l"
)
_KEYED = "CREATE VIEW t AS SELECT STREAM ev AS ROWTIME, n, v FROM a ORDER BY ev WITHIN INTERVAL '2' SECOND, v; "
_BY_TWO = "GROUP BY STEP({}.ROWTIME BY INTERVAL '2' SECOND)"

DEEPER = (
    Law("rows without a rowtime", ("stream",), "SELECT STREAM n FROM a", _passed),
    Law("promotion", ("t-sort",), "SELECT STREAM ev AS ROWTIME, n FROM a", _promoted),
    Law("promotion of what follows the rowtime", ("t-sort",),
        "SELECT STREAM FLOOR(a.ROWTIME TO SECOND) + INTERVAL '1' SECOND AS ROWTIME, n FROM a",
        _promoted_from_the_rowtime),
    Law("a t-sort with a guard", ("t-sort", "merge"),
        "SELECT STREAM ev AS ROWTIME, n FROM a ORDER BY ev WITHIN INTERVAL '1' SECOND "
        "EARLY BEYOND INTERVAL '2' SECOND", _guarded),
    Law("a t-sort that finds back", ("t-sort", "merge"),
        "SELECT STREAM ev AS ROWTIME, n FROM a ORDER BY ev WITHIN INTERVAL '1' SECOND "
        "EARLY BEYOND INTERVAL '1' SECOND RESYNC AFTER 2 ROWS", _quarantined),
    Law("a stream with a guard", ("stream",), "SELECT STREAM n FROM a", _guarded_stream,
        clauses="EARLY BEYOND INTERVAL '1' SECOND"),
    Law("verdicts of the guard", ("table function",),
        "SELECT STREAM n, result, UNIX_MICROS(hwm) AS hwm FROM STREAM(early_late_split(CURSOR("
        "SELECT STREAM * FROM a), 'ev', INTERVAL '1' SECOND, INTERVAL '2' SECOND)) AS s", _split),
    Law("a filter below a keyed t-sort", ("select", "t-sort"),
        "SELECT STREAM ev AS ROWTIME, n FROM a WHERE v > 0 ORDER BY ev WITHIN INTERVAL '1' SECOND, v",
        _filtered_and_sorted),
    Law("a t-sort over a t-sort", ("t-sort", "merge"),
        "CREATE VIEW t AS SELECT STREAM ev AS ROWTIME, n, v, ev FROM a ORDER BY ev WITHIN INTERVAL '2' SECOND; "
        "SELECT STREAM ev + MAKE_DT_INTERVAL(0, 0, 0, v) AS ROWTIME, n FROM t "
        "ORDER BY ev + MAKE_DT_INTERVAL(0, 0, 0, v) WITHIN INTERVAL '1' SECOND", _sorted_twice),
    Law("first and last in the order of keys", ("group by", "t-sort"),
        _KEYED + "SELECT STREAM FIRST(n) AS f, LAST(n) AS l, COLLECT_LIST(n) AS all FROM t " + _BY_TWO.format("t"),
        _edges_in_the_order_of_keys),
    Law("a union with a keyed t-sort", ("union all",),
        _KEYED + "SELECT STREAM n FROM t UNION ALL SELECT STREAM n FROM b", _union_with_keys),
    Law("a union of groups", ("union all", "group by"),
        f"SELECT STREAM v, COUNT(*) AS c FROM a {_BY_TWO.format('a')}, v UNION ALL "
        f"SELECT STREAM v, COUNT(*) AS c FROM b {_BY_TWO.format('b')}, v", _union_of_groups),
    Law("groups of groups", ("group by",),
        "CREATE VIEW g AS SELECT STREAM v, COUNT(*) AS c FROM a GROUP BY STEP(a.ROWTIME BY INTERVAL '1' SECOND), v; "
        "SELECT STREAM SUM(c) AS s, COLLECT_LIST(v) AS all FROM g " + _BY_TWO.format("g"), _group_of_groups),
    Law("aggregates that split, null keys", ("group by",),
        f"SELECT STREAM MOD(v, 2) AS g, {_ALL} FROM a GROUP BY CEIL(a.ROWTIME TO SECOND), MOD(v, 2)",
        _aggregates(splits=True)),
    Law("aggregates that do not split, a shifted key", ("group by",),
        f"SELECT STREAM MOD(v, 2) AS g, {_ALL}, COUNT(DISTINCT v) AS d, COLLECT_LIST(v) AS all FROM a "
        "GROUP BY STEP(a.ROWTIME + INTERVAL '0.5' SECOND BY INTERVAL '2' SECOND), MOD(v, 2)",
        _aggregates(splits=False)),
    Law("two closing keys", ("group by",),
        "SELECT STREAM COUNT(*) AS c FROM a GROUP BY CEIL(a.ROWTIME TO SECOND), FLOOR(a.ROWTIME TO SECOND)",
        _two_closers),
    Law("groups stamped with their beginning", ("group by",),
        "SELECT STREAM STEP(a.ROWTIME BY INTERVAL '2' SECOND) AS ROWTIME, COUNT(*) AS c FROM a " + _BY_TWO.format("a"),
        _stamped),
    Law("groups that a promise closes", ("order check", "group by"),
        "SELECT STREAM MONOTONIC(v) AS g, MOD(n, 2) AS o, COUNT(*) AS c, LAST(n) AS l FROM a "
        "GROUP BY MOD(n, 2), MONOTONIC(v)", _promised_groups),
    Law("groups that a promise in a view closes", ("order check", "group by"),
        "CREATE VIEW u AS SELECT STREAM n, v FROM a UNION ALL SELECT STREAM n, v FROM b; "
        "CREATE VIEW t AS SELECT STREAM n, -(MONOTONIC(v) DIV 2) AS g FROM u WHERE MOD(n, 3) <> 0; "
        "SELECT STREAM g, COLLECT_LIST(n) AS all FROM t GROUP BY g", _promised_in_a_view),
    Law("groups of a column within some rows", ("order check", "group by"),
        "SELECT STREAM v DIV 2 AS g, COLLECT_LIST(n) AS all FROM a GROUP BY v DIV 2",
        _loosely("v", lambda v: v // 2, lambda g: g, rows=2), "n INT, v INT ASCENDING WITHIN 2 ROWS, ev TIMESTAMP"),
    Law("groups of numbers that are judged by rank", ("order check", "group by"),
        "SELECT STREAM CAST(v AS INT) AS g, COLLECT_LIST(n) AS all FROM a GROUP BY v",
        _loosely("v", lambda v: v, lambda g: g, rows=1), "n INT, v DOUBLE ASCENDING WITHIN 1 ROW, ev TIMESTAMP"),
    Law("groups of times within an interval", ("order check", "group by"),
        "SELECT STREAM UNIX_MICROS(g) AS g, all FROM (SELECT STREAM STEP(ev BY INTERVAL '2' SECOND) AS g, "
        "COLLECT_LIST(n) AS all FROM a GROUP BY STEP(ev BY INTERVAL '2' SECOND)) AS t",
        _loosely("ev", lambda at: at // (2 * SECOND), lambda g: g * 2 * SECOND, within=SECOND),
        "n INT, v INT, ev TIMESTAMP ASCENDING WITHIN INTERVAL '1' SECOND"),
    Law("rows sorted inside a step", ("order by", "merge"),
        "CREATE VIEW u AS SELECT STREAM n, v FROM a UNION ALL SELECT STREAM n, v FROM b; "
        "SELECT STREAM * FROM u ORDER BY STEP(u.ROWTIME BY INTERVAL '2' SECOND), v", _sorted_inside),
    Law("distinct by a step", ("group by",),
        "SELECT STREAM DISTINCT UNIX_MICROS(STEP(a.ROWTIME BY INTERVAL '2' SECOND)) AS at, v FROM a", _distinct),
    Law("a stream that a pump fills", ("merge", "union all"),
        "CREATE PUMP p AS INSERT INTO b (n, v, ev) SELECT STREAM ev AS ROWTIME, n, v, ev FROM a "
        "ORDER BY ev WITHIN INTERVAL '1' SECOND; SELECT STREAM n FROM b", _pumped),
)  # fmt: skip

UNTIMED = ("rows without a rowtime", "a stream with a guard")


@st.composite
def close_items(draw: Callable[..., Any], *, untimed: bool = False, fair: bool = False) -> list[ScriptItem]:
    """Items that mostly go forward, with close event times, so that the source refuses few of them.

    ``fair``: both streams have the same number.
    """
    writers = draw(st.sampled_from([("x",), ("x", "y")]))
    one = st.tuples(
        st.sampled_from("ab" if fair else "aab"),
        st.sampled_from(writers),
        st.sampled_from(["row"] * 7 + ["bound", "strict bound"] + (["untimed"] * 3 if untimed else [])),
        st.sampled_from([-1, 0, 0, 1, 1, 2, 3]),
        st.sampled_from([None, -5, -3, -2, -1, 0, 0, 1, 2]),
        st.sampled_from([None, 0, 1, 2, 3]),
    )
    reached: dict[tuple[str, str], int] = {}
    made = []
    for number, (stream, writer, kind, step, event, v) in enumerate(draw(st.lists(one, min_size=5, max_size=12)), 1):
        spoken = (stream, writer) in reached
        now = reached.get((stream, writer), 0) + step
        reached[stream, writer] = max(now, reached.get((stream, writer), 0))
        if "bound" in kind:
            at = (_instant(now) or 0) + (kind == "strict bound")
            made.append(ScriptItem(number, stream, writer, None, at))
            continue
        rowtime = None if kind == "untimed" and spoken else _instant(now)
        values = {"n": number, "v": v, "ev": None if event is None else _instant(now + event), "rowtime": rowtime}
        made.append(ScriptItem(number, stream, writer, values, None))
    if draw(st.integers(0, 3)):
        made += [ScriptItem(len(made) + i, name, "x", None, f.END) for i, name in enumerate("ab", 1)]
    return made
