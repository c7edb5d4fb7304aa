"""Pipelines of sessions and their oracles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.laws.pipelines import HALF, SECOND, Feeds, Law, _column, _streams
from tests.oracle import feed as f
from tests.oracle.aggregates import distinct, greatest, total
from tests.oracle.group_by import Rounding, floor, group_by
from tests.oracle.merge import merge
from tests.oracle.select import select
from tests.oracle.session import session_group, session_rows, staggered
from tests.oracle.sort_by import in_order, sort_by, with_sorted_ties
from tests.oracle.tsort import tsort
from tests.oracle.union_all import union_all

Result = tuple[f.Feed, list[f.Refusal]]
GAP = SECOND + HALF


def _partials(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")

    def row(start: int, end: int, key: tuple[Any, ...], rows: Sequence[f.Row]) -> f.Values:
        n = _column(rows, "n")
        return {"v": key[0], "s": start, "e": end, "c": len(n), "t": total(n), "f": n[0], "l": n[-1]}

    return session_group(a, lambda _, v: (v["v"],), GAP, row), refused


def _kept_rows(feeds: Feeds) -> Result:
    parts, refused = _streams(feeds, "a", "b")

    def row(start: int, _: int, key: tuple[Any, ...], rows: Sequence[f.Row]) -> f.Values:
        return {"k": key[0], "s": start, "d": distinct(_column(rows, "v")), "all": _column(rows, "n")}

    made = session_group(union_all(*parts), lambda _, v: (v["n"] % 2,), GAP, row, having=lambda v: len(v["all"]) > 1)
    return made, refused


def _without_keys(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    judged = tsort("t", a, lambda v: v["ev"], SECOND)
    two = floor(2 * SECOND)

    def counted(start: int, _end: int, _: tuple[Any, ...], rows: Sequence[f.Row]) -> f.Values:
        return {"s": start, "c": len(rows)}

    below = session_group(judged.feed, lambda _at, _v: (), GAP, counted)

    def row(_: tuple[Any, ...], rows: Sequence[f.Row]) -> f.Values:
        return {"m": greatest(_column(rows, "c")), "f": rows[0].values["s"]}

    return group_by(below, [two], lambda at, _: (two.value(at),), row), [*refused, *judged.refused]


def _edged(values: f.Values) -> f.Values:
    return {"n": values["n"], "s": values["s"], "e": values["e"]}


def _table(feeds: Feeds) -> Result:
    (a, b), refused = _streams(feeds, "a", "b")
    return select(session_rows(union_all(a, b), lambda _, v: (v["v"],), GAP), project=_edged), refused


def _grouped_table(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    rows = session_rows(a, lambda _, v: (v["v"],), GAP)
    instant = Rounding(lambda at: at, lambda at: at + 1, lambda at: at)

    def row(key: tuple[Any, ...], rows: Sequence[f.Row]) -> f.Values:
        return {"s": key[0], "v": key[2], "all": _column(rows, "n")}

    return group_by(rows, [instant], lambda at, v: (v["s"], at, v["v"]), row), refused


def _staggered(feeds: Feeds) -> Result:
    (a, b), refused = _streams(feeds, "a", "b")

    def row(key: tuple[Any, ...], rows: Sequence[f.Row]) -> f.Values:
        return {"h": key[0], "v": key[1], "c": len(rows), "f": rows[0].values["n"]}

    half = floor(2 * SECOND)
    merged = merge(union_all(a, b))
    return staggered(merged, lambda at, v: (half.value(at), v["v"]), GAP, row), refused


def _halves(start: int, end: int, key: tuple[Any, ...], rows: Sequence[f.Row]) -> f.Values:
    return {"v": key[0], "s": start, "e": end, "c": len(rows)}


def _sorted_sessions(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    made = session_group(a, lambda _, v: (v["v"],), GAP, _halves)
    return with_sorted_ties(made, lambda v: (-v["c"], -v["s"])), refused


def _sorted_in_steps(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    made = session_group(a, lambda _, v: (v["v"],), GAP, _halves)
    two = floor(2 * SECOND)
    return merge(sort_by(made, two, lambda v: (-v["c"], v["v"] is None, -(v["v"] or 0))), keyed=True), refused


def _sorted_in_a_stamp(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    made = session_group(a, lambda _, v: (v["v"],), GAP, _halves)
    two = floor(2 * SECOND)
    moved = [replace(item, at=two.value(item.at)) if f.BEGINNING < item.at < f.END else item for item in made[""]]
    return in_order({"": moved}, lambda v: (v["c"],)), refused


def _distinct(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    made = session_group(a, lambda _, v: (v["v"],), GAP, lambda _s, end, _k, rows: {"e": end, "c": len(rows)})
    once = list(dict.fromkeys((row.at, row.values["c"]) for row in f.rows_of(made[""])))
    rows = {"": [*(f.Row(at, {"e": at, "c": c}) for at, c in once), f.Bound(f.bound_of(made))]}
    return with_sorted_ties(rows, lambda v: (v["e"], v["c"])), refused


def _sorted_windows(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")

    def row(key: tuple[Any, ...], rows: Sequence[f.Row]) -> f.Values:
        return {"v": key[0], "c": len(rows)}

    return with_sorted_ties(staggered(merge(a), lambda _, v: (v["v"],), GAP, row), lambda v: (-v["c"],)), refused


_GAP = "INTERVAL '1.5' SECOND"
_END = f"SESSION_END(a.ROWTIME, {_GAP})"
_EDGES = f"UNIX_MICROS(SESSION_START({{0}}.ROWTIME, {_GAP})) AS s, UNIX_MICROS(SESSION_END({{0}}.ROWTIME, {_GAP})) AS e"
_ALL = f"v, {_EDGES.format('a')}, COUNT(*) AS c FROM a GROUP BY v, SESSION(a.ROWTIME, {_GAP})"

SESSIONS = (
    Law("sessions with partial results", ("session",),
        f"SELECT STREAM v, {_EDGES.format('a')}, COUNT(*) AS c, SUM(n) AS t, FIRST(n) AS f, LAST(n) AS l FROM a "
        f"GROUP BY v, SESSION(a.ROWTIME, {_GAP})", _partials),
    Law("sessions that keep rows", ("session", "union all"),
        "CREATE VIEW u AS SELECT STREAM n, v FROM a UNION ALL SELECT STREAM n, v FROM b; "
        f"SELECT STREAM MOD(n, 2) AS k, UNIX_MICROS(SESSION_START(u.ROWTIME, {_GAP})) AS s, COUNT(DISTINCT v) AS d, "
        f"COLLECT_LIST(n) AS all FROM u GROUP BY SESSION(u.ROWTIME, {_GAP}), MOD(n, 2) HAVING COUNT(*) > 1",
        _kept_rows),
    Law("groups of sessions without keys", ("session", "group by"),
        "CREATE VIEW t AS SELECT STREAM ev AS ROWTIME, n, v FROM a ORDER BY ev WITHIN INTERVAL '1' SECOND; "
        f"CREATE VIEW g AS SELECT STREAM SESSION_START(t.ROWTIME, {_GAP}) AS s, SESSION_END(t.ROWTIME, {_GAP}) AS e, "
        f"COUNT(*) AS c FROM t GROUP BY SESSION(t.ROWTIME, {_GAP}); "
        "SELECT STREAM MAX(c) AS m, UNIX_MICROS(FIRST(s)) AS f FROM g GROUP BY STEP(e BY INTERVAL '2' SECOND)",
        _without_keys),
    Law("rows of sessions", ("session rows",),
        "CREATE VIEW u AS SELECT STREAM n, v FROM a UNION ALL SELECT STREAM n, v FROM b; "
        "SELECT STREAM n, UNIX_MICROS(window_start) AS s, UNIX_MICROS(window_end) AS e "
        f"FROM TABLE(SESSION(TABLE u PARTITION BY v, DESCRIPTOR(ROWTIME), {_GAP}))", _table),
    Law("groups of rows of sessions", ("session rows", "group by"),
        "SELECT STREAM UNIX_MICROS(window_start) AS s, v, COLLECT_LIST(n) AS all "
        f"FROM TABLE(SESSION(TABLE a, DESCRIPTOR(ROWTIME), DESCRIPTOR(v), {_GAP})) AS w "
        "GROUP BY window_start, window_end, v", _grouped_table),
    Law("staggered windows", ("stagger", "group by"),
        "CREATE VIEW u AS SELECT STREAM n, v FROM a UNION ALL SELECT STREAM n, v FROM b; "
        "SELECT STREAM UNIX_MICROS(STEP(u.ROWTIME BY INTERVAL '2' SECOND)) AS h, v, COUNT(*) AS c, FIRST(n) AS f "
        f"FROM u WINDOWED BY STAGGER (PARTITION BY STEP(u.ROWTIME BY INTERVAL '2' SECOND), v RANGE {_GAP})",
        _staggered),
    Law("sessions sorted inside their rowtime", ("session",),
        f"SELECT STREAM {_ALL} ORDER BY ROWTIME, c DESC, s DESC", _sorted_sessions),
    Law("sessions sorted inside a step of their ends", ("session", "order by"),
        f"SELECT STREAM {_ALL} ORDER BY STEP({_END} BY INTERVAL '2' SECOND), c DESC, v DESC NULLS LAST",
        _sorted_in_steps),
    Law("sessions sorted inside a rowtime of their own", ("session",),
        f"SELECT STREAM STEP({_END} BY INTERVAL '2' SECOND) AS ROWTIME, {_ALL} ORDER BY ROWTIME, c",
        _sorted_in_a_stamp),
    Law("distinct rows of sessions", ("session", "group by"),
        f"SELECT STREAM DISTINCT UNIX_MICROS({_END}) AS e, COUNT(*) AS c FROM a "
        f"GROUP BY v, SESSION(a.ROWTIME, {_GAP})", _distinct),
    Law("staggered windows sorted inside their rowtime", ("stagger", "group by"),
        f"SELECT STREAM v, COUNT(*) AS c FROM a WINDOWED BY STAGGER (PARTITION BY v RANGE {_GAP}) "
        "ORDER BY ROWTIME, c DESC", _sorted_windows),
)  # fmt: skip
