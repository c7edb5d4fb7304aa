"""Pipelines of windows and their oracles: hopping, growing, with gaps, as groups and as table functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.laws.pipelines import HALF, SECOND, Feeds, Law, _column, _streams
from tests.oracle import feed as f
from tests.oracle.aggregates import distinct, greatest, total
from tests.oracle.group_by import Rounding, group_by
from tests.oracle.hop import Window, Windows, group_by_window, rows_with_windows, windows_of_a_column
from tests.oracle.merge import merge
from tests.oracle.select import select
from tests.oracle.tsort import tsort
from tests.oracle.union_all import union_all

Result = tuple[f.Feed, list[f.Refusal]]
THREE_BY_ONE = Windows(3 * SECOND, SECOND)
ODD = Windows(2 * SECOND + HALF, SECOND, HALF)
GROWING = Windows(3 * SECOND, SECOND, HALF, grow=True)
GAPS = Windows(SECOND, 3 * SECOND)
TWO = Windows(2 * SECOND, 2 * SECOND, HALF)


def _edges(values: f.Values) -> f.Values:
    return {"n": values["n"], "s": values["s"], "e": values["e"]}


def _rows(windows: Windows) -> Any:
    def oracle(feeds: Feeds) -> Result:
        (a,), refused = _streams(feeds, "a")
        return merge(select(rows_with_windows(a, windows), project=_edges)), refused

    return oracle


def _of_a_column(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    judged = windows_of_a_column("query", a, ODD, lambda v: v["ev"])
    return merge(select(judged.feed, project=_edges)), [*refused, *judged.refused]


def _grouped(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")

    def row(window: Window, key: tuple[Any, ...], rows: Sequence[f.Row]) -> f.Values:
        n = _column(rows, "n")
        return {"s": window[0], "v": key[0], "c": len(n), "t": total(n), "f": n[0], "l": n[-1]}

    made = group_by_window(a, THREE_BY_ONE, lambda v: (v["v"],), row, having=lambda v: v["c"] > 1)
    return made, refused


def _kept_rows(windows: Windows) -> Any:
    def oracle(feeds: Feeds) -> Result:
        parts, refused = _streams(feeds, "a", "b")

        def row(window: Window, _: tuple[Any, ...], rows: Sequence[f.Row]) -> f.Values:
            return {"s": window[0], "e": window[1], "d": distinct(_column(rows, "v")), "all": _column(rows, "n")}

        return group_by_window(union_all(*parts), windows, lambda _: (), row), refused

    return oracle


def _counts(windows: Windows, feed: f.Feed) -> f.Feed:
    def row(window: Window, key: tuple[Any, ...], rows: Sequence[f.Row]) -> f.Values:
        return {"s": window[0], "e": window[1], "v": key[0], "c": len(rows)}

    return group_by_window(feed, windows, lambda v: (v["v"],), row)


def _cascade(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    judged = tsort("t", a, lambda v: v["ev"], SECOND)
    counts = _counts(THREE_BY_ONE, judged.feed)

    def row(key: tuple[Any, ...], rows: Sequence[f.Row]) -> f.Values:
        return {"e": key[0], "m": greatest(_column(rows, "c"))}

    instant = Rounding(lambda at: at, lambda at: at + 1, lambda at: at)
    return group_by(counts, [instant], lambda at, _: (at,), row), [*refused, *judged.refused]


def _of_a_table(windows: Windows) -> Any:
    def oracle(feeds: Feeds) -> Result:
        (a,), refused = _streams(feeds, "a")
        return _counts(windows, a), refused

    return oracle


def _sql(seconds: float) -> str:
    return f"INTERVAL '{seconds:g}' SECOND"


_EDGES = "UNIX_MICROS(window_start) AS s, UNIX_MICROS(window_end) AS e"
_HOP = f"a.ROWTIME, {_sql(1)}, {_sql(3)}"
_BY_WINDOW = f"SELECT STREAM {_EDGES}, v, COUNT(*) AS c FROM TABLE({{}}) AS w GROUP BY window_start, window_end, v"
_BOTH = "CREATE VIEW u AS SELECT STREAM n, v FROM a UNION ALL SELECT STREAM n, v FROM b; "

WINDOWS = (
    Law("rows of hopping windows", ("windows",),
        f"SELECT STREAM n, {_EDGES} FROM TABLE(HOP(TABLE a, DESCRIPTOR(ROWTIME), {_sql(1)}, {_sql(2.5)}, {_sql(0.5)}))",
        _rows(ODD)),
    Law("rows of growing windows", ("windows",),
        f"SELECT STREAM n, {_EDGES} FROM CUMULATE(TABLE a, DESCRIPTOR(ROWTIME), {_sql(1)}, {_sql(3)}, {_sql(0.5)})",
        _rows(GROWING)),
    Law("rows of windows with gaps", ("windows",),
        f"SELECT STREAM n, {_EDGES} FROM TABLE(HOP(TABLE a, DESCRIPTOR(ROWTIME), {_sql(3)}, {_sql(1)}))", _rows(GAPS)),
    Law("windows of a column that may be null", ("windows",),
        f"SELECT STREAM n, {_EDGES} FROM TABLE(HOP(TABLE a, DESCRIPTOR(ev), {_sql(1)}, {_sql(2.5)}, {_sql(0.5)}))",
        _of_a_column),
    Law("groups of hopping windows", ("windows", "group by"),
        f"SELECT STREAM UNIX_MICROS(HOP_START({_HOP})) AS s, v, COUNT(*) AS c, SUM(n) AS t, FIRST(n) AS f, "
        f"LAST(n) AS l FROM a GROUP BY HOP({_HOP}), v HAVING COUNT(*) > 1", _grouped),
    Law("groups of hopping windows that keep rows", ("windows", "group by"),
        _BOTH + f"SELECT STREAM UNIX_MICROS(HOP_START(u.ROWTIME, {_sql(1)}, {_sql(2.5)}, {_sql(0.5)})) AS s, "
        f"UNIX_MICROS(HOP_END(u.ROWTIME, {_sql(1)}, {_sql(2.5)}, {_sql(0.5)})) AS e, COUNT(DISTINCT v) AS d, "
        f"COLLECT_LIST(n) AS all FROM u GROUP BY HOP(u.ROWTIME, {_sql(1)}, {_sql(2.5)}, {_sql(0.5)})", _kept_rows(ODD)),
    Law("groups of tables of hopping windows, and groups of them", ("windows", "group by"),
        f"CREATE VIEW t AS SELECT STREAM ev AS ROWTIME, n, v FROM a ORDER BY ev WITHIN {_sql(1)}; CREATE VIEW g AS "
        f"SELECT STREAM window_start, window_end, v, COUNT(*) AS c FROM TABLE(HOP(TABLE t, DESCRIPTOR(ROWTIME), "
        f"{_sql(1)}, {_sql(3)})) GROUP BY window_start, window_end, v; "
        "SELECT STREAM UNIX_MICROS(window_end) AS e, MAX(c) AS m FROM g GROUP BY window_start, window_end", _cascade),
    Law("groups of tables of growing windows", ("windows", "group by"),
        _BY_WINDOW.format(f"CUMULATE(TABLE a, DESCRIPTOR(ROWTIME), {_sql(1)}, {_sql(3)}, {_sql(0.5)})"),
        _of_a_table(GROWING)),
    Law("groups of tables of windows with gaps", ("windows", "group by"),
        _BY_WINDOW.format(f"HOP(TABLE a, DESCRIPTOR(ROWTIME), {_sql(3)}, {_sql(1)})"), _of_a_table(GAPS)),
    Law("groups of tables of tumbling windows", ("windows", "group by"),
        _BY_WINDOW.format(f"TUMBLE(TABLE a, DESCRIPTOR(ROWTIME), {_sql(2)}, {_sql(0.5)})"), _of_a_table(TWO)),
)  # fmt: skip
