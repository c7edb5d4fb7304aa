"""Pipelines of panes and their oracles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.laws.pipelines import SECOND, Feeds, Law, _column, _streams
from tests.oracle import feed as f
from tests.oracle.aggregates import distinct, total
from tests.oracle.join import join
from tests.oracle.merge import merge
from tests.oracle.over import Frame, over
from tests.oracle.panes import Windows, _Group, event_time, given, meet, panes, region, sequence
from tests.oracle.select import select

Result = tuple[f.Feed, list[f.Refusal]]
HALF = SECOND // 2
OVERLAPPING = Windows(2 * SECOND, SECOND, HALF, age=SECOND)
TUMBLING = Windows(SECOND, SECOND, age=2 * SECOND)
LONG = Windows(3 * SECOND, 3 * SECOND, age=2 * SECOND)
LABELS = [{"v": 1, "w": 7}, {"v": 2, "w": 7}, {"v": 2, "w": 8}]
FINE = Windows(HALF, HALF, age=2 * SECOND)
EXACT = Windows(HALF, HALF, age=SECOND)
APART = Windows(SECOND, 2 * SECOND)


def _fires(group: _Group, timing: str) -> f.Values:
    n = _column(group.rows, "n")
    what = {"timing": timing, "i": group.fires, "v": group.key[0], "c": len(n), "s": total(n)}
    return {"start": group.start, "end": group.end, **what}


def _lists(group: _Group, timing: str) -> f.Values:
    n = _column(group.rows, "n")
    return {"end": group.end, "timing": timing, "i": group.fires, "all": n, "d": distinct(_column(group.rows, "v"))}


def _in_order(feeds: Feeds) -> tuple[Sequence[f.Item], list[f.Refusal]]:
    (a,), refused = _streams(feeds, "a")
    return merge(a)[""], refused


def _generated(feeds: Feeds) -> Result:
    items, refused = _in_order(feeds)
    timed, lost = event_time(items, lambda v: v["ev"], "t.event_time", lag=SECOND)
    made, late = panes("query", timed, OVERLAPPING, lambda v: (v["v"],), _fires)
    return made, [*refused, *lost, *late]


def _spaced(feeds: Feeds) -> Result:
    items, refused = _in_order(feeds)
    timed, lost = event_time(items, lambda v: v["ev"], "t.event_time", gap=SECOND)
    made, late = panes("query", timed, TUMBLING, lambda _: (), _lists)
    return made, [*refused, *lost, *late]


def _told(feeds: Feeds) -> Result:
    """Rows with the bound before them; rows with v = 1 are dropped, but have moved the bound."""
    items, refused = _in_order(feeds)
    _, lost = region(items, lambda v: v["ev"], "t.event_time", lag=SECOND)
    bound, out = f.BEGINNING, []
    for item in items:
        if not isinstance(item, f.Row):
            out.append(item)
        elif item.values["ev"] is not None:
            values = {"n": item.values["n"], "b": None if bound == f.BEGINNING else bound}
            out += [replace(item, values=values)] if item.values["v"] not in (None, 1) else []
            bound = max(bound, item.values["ev"] - SECOND)
    return {"": out}, [*refused, *lost]


def _labelled(feeds: Feeds) -> Result:
    """Rows joined with those of a table, under the bounds of all rows."""
    items, refused = _in_order(feeds)
    timed, lost = event_time(items, lambda v: v["ev"], "t.event_time", lag=SECOND)
    joined: list[f.Item] = []
    for item in timed:
        met = [row["w"] for row in LABELS if isinstance(item, f.Row) and row["v"] == item.values["v"]]
        joined += [replace(item, values={**item.values, "v": w}) for w in met] if isinstance(item, f.Row) else [item]
    made, late = panes("query", joined, TUMBLING, lambda v: (v["v"],), _fires)
    return made, [*refused, *lost, *late]


def _fired(feeds: Feeds) -> tuple[f.Feed, list[f.Item], list[f.Refusal]]:
    """The fires of short panes; the same under the ends of their panes, with the bounds that released them."""
    items, refused = _in_order(feeds)
    timed, lost = event_time(items, lambda v: v["ev"], "t.event_time", lag=SECOND)
    passed: list[f.Item] = []
    made, late = panes("h", timed, FINE, lambda v: (v["v"],), _told_of, passed=passed)
    return made, passed, [*refused, *lost, *late]


def _told_of(group: _Group, timing: str) -> f.Values:
    return {"timing": timing, "i": group.fires, "v": group.key[0], "n": total(_column(group.rows, "n"))}


def _of_fires(feeds: Feeds) -> Result:
    """Only the complete fires; their bounds are those of all fires."""
    _, items, refused = _fired(feeds)
    kept = [item for item in items if not isinstance(item, f.Row) or item.values["timing"] == "COMPLETE"]
    made, late = panes("query", kept, TUMBLING, lambda v: (v["v"],), _fires)
    return made, [*refused, *late]


def _latest(feeds: Feeds) -> Result:
    """The latest fire of each group; fires behind the discard age are refused."""

    def newest(group: _Group, timing: str) -> f.Values:
        rows = {row.values["i"]: row.values["n"] for row in group.rows}
        return {"end": group.end, "timing": timing, "v": group.key[0], "n": rows[max(rows)]}

    _, items, refused = _fired(feeds)
    made, late = panes("query", items, EXACT, lambda v: (v["v"],), newest)
    return made, [*refused, *late]


def _bounded(feeds: Feeds) -> Result:
    """Each fire with the bound before it."""
    made, items, refused = _fired(feeds)
    bound, bounds = f.BEGINNING, []
    for item in items:
        if isinstance(item, f.Row):
            bounds.append(None if bound == f.BEGINNING else bound)
        else:
            bound = item.at
    told = [
        replace(row, values={"v": row.values["v"], "b": before})
        for row, before in zip(f.rows_of(made[""]), bounds, strict=True)
    ]
    return {"": [*told, made[""][-1]]}, refused


def _filtered(feeds: Feeds) -> Result:
    items, refused = _in_order(feeds)
    timed, lost = event_time(items, lambda v: v["ev"], "t.event_time")
    kept = select({"": timed}, lambda v: v["v"] != 1)[""]
    made, late = panes("query", kept, TUMBLING, lambda v: (v["v"],), _fires)
    return made, [*refused, *lost, *late]


def _changes(feeds: Feeds) -> Result:
    items, refused = _in_order(feeds)
    timed, lost = event_time(items, lambda v: v["ev"], "t.event_time")
    made, late = panes("query", timed, TUMBLING, lambda v: (v["v"],), _fires, changes=True)
    return made, [*refused, *lost, *late]


def _early(feeds: Feeds) -> Result:
    items, refused = _in_order(feeds)
    timed, lost = event_time(items, lambda v: v["ev"], "t.event_time")
    made, late = panes("query", timed, LONG, lambda v: (v["v"],), _fires, changes=True, every=SECOND)
    return made, [*refused, *lost, *late]


def _gaps(feeds: Feeds) -> Result:
    items, refused = _in_order(feeds)
    timed, lost = event_time(items, lambda v: v["ev"], "t.event_time")
    made, late = panes("query", timed, APART, lambda v: (v["v"],), _fires)
    return made, [*refused, *lost, *late]


def _set(feeds: Feeds) -> Result:
    """The bounds of the stream are those of the event time, so no row is behind them."""
    rows = {w: [i for i in items if isinstance(i, f.Row) or i.at >= f.END] for w, items in feeds["a"].items()}
    (judged,), refused = _streams({"a": rows}, "a")
    refused_n = {refusal.values["n"] for refusal in refused}
    accepted = {
        w: [i for i in items if not isinstance(i, f.Row) or i.values["n"] not in refused_n]
        for w, items in feeds["a"].items()
    }
    assert set(accepted) == set(judged)
    timed, lost = given(sequence(accepted), lambda v: v["ev"], "a.event_time")
    made, late = panes("query", timed, TUMBLING, lambda v: (v["v"],), _fires)
    return made, [*refused, *lost, *late]


def _met(feeds: Feeds) -> Result:
    """Two regions, one of them filtered; then another attribute under their bounds."""
    parts, refused = _streams(feeds, "a", "b")
    merged = [merge(part)[""] for part in parts]
    (one, lost), (other, missing) = (
        region(items, lambda v: v["ev"], f"{name}.event_time", lag)
        for items, name, lag in zip(merged, "xy", (SECOND, 0), strict=True)
    )
    kept = [(at, item) for at, item in one if not (isinstance(item, f.Row) and item.values["v"] == 1)]
    items = [
        replace(item, at=item.at + HALF) if isinstance(item, f.Row) and item.at is not None else item
        for item in meet([kept, other], [f.clock_of(items) for items in merged])
    ]
    made, late = panes("query", items, TUMBLING, lambda v: (v["v"],), _fires)
    return made, [*refused, *lost, *missing, *late]


def _again(feed: f.Feed, refused: list[f.Refusal]) -> Result:
    """An event time that is declared after the event time of r has ended."""
    timed, lost = event_time(feed[""], lambda v: v["ev"], "t.event_time", lag=SECOND)
    made, late = panes("query", timed, TUMBLING, lambda v: (v["v"],), _fires)
    return made, [*refused, *lost, *late]


def _declared_at_r(feed: f.Feed) -> tuple[f.Feed, list[f.Refusal]]:
    """The rest of a stream whose rows have an event time: rows without one are refused at the declaration."""
    without = [f.Refusal("r.event_time", row.values, "NULL_ROWTIME", None, f.BEGINNING)
               for items in feed.values() for row in f.rows_of(items) if row.values["ev"] is None]  # fmt: skip
    return select(feed, lambda v: v["ev"] is not None), without


def _behind_over(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    r, without = _declared_at_r(merge(a))
    calls = {"c": (Frame(2), len)}
    return _again(over(r, calls, lambda row: row.values["v"], lambda v: v), [*refused, *without])


def _behind_a_join(feeds: Feeds) -> Result:
    (a, b), refused = _streams(feeds, "a", "b")

    def same(one: f.Values, other: f.Values) -> bool:
        return one["v"] is not None and one["v"] == other["v"]

    r, without = _declared_at_r(a)
    joined = join(r, b, -SECOND, SECOND, same, lambda x, _: {} if x is None else x.values)
    return _again(joined, [*refused, *without])


def _behind_a_limit(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    r, without = _declared_at_r(merge(a))
    items = r[""]
    rows = f.rows_of(items)[:5]
    return _again({"": [*rows, f.Bound(f.END) if len(rows) == 5 else items[-1]]}, [*refused, *without])


_FACTS = "unix_micros(PANE_START) AS start, unix_micros(PANE_END) AS end, PANE_TIMING AS timing, PANE_INDEX AS i"
_NONE = "MINIMUM GAP INTERVAL '0' SECOND"


def _over(settings: str, rest: str) -> str:
    return f"CREATE VIEW t EVENT TIME (ev, {settings}) AS SELECT STREAM * FROM a; SELECT STREAM {rest}"


def _above(query: str) -> str:
    """A query of a view of short panes."""
    return (
        f"CREATE VIEW t EVENT TIME (ev, LAG INTERVAL '1' SECOND, {_NONE}) AS SELECT STREAM * FROM a; CREATE VIEW h AS "
        "SELECT STREAM PANE_END AS e, PANE_TIMING AS timing, PANE_INDEX AS i, v, SUM(n) AS n FROM t "
        "GROUP BY PANES(ev, DURATION INTERVAL '0.5' SECOND, DISCARD AGE INTERVAL '2' SECOND), v; "
        f"SELECT STREAM {query}"
    )


def _declared(query: str) -> str:
    return (
        f"CREATE VIEW r EVENT TIME (ev) AS SELECT STREAM * FROM a; "
        f"CREATE VIEW t EVENT TIME (ev, LAG INTERVAL '1' SECOND, {_NONE}) AS {query}; "
        f"SELECT STREAM {_FACTS}, v, COUNT(*) AS c, SUM(n) AS s FROM t "
        "GROUP BY PANES(ev, DURATION INTERVAL '1' SECOND, DISCARD AGE INTERVAL '2' SECOND), v"
    )


PANES = (
    Law("panes that overlap", ("event time", "panes"), _over(
        f"LAG INTERVAL '1' SECOND, {_NONE}",
        f"{_FACTS}, v, COUNT(*) AS c, SUM(n) AS s FROM t GROUP BY PANES(ev, DURATION INTERVAL '2' SECOND, "
        "PERIOD INTERVAL '1' SECOND, OFFSET INTERVAL '2.5' SECOND, DISCARD AGE INTERVAL '1' SECOND), v"), _generated),
    Law("panes that keep rows", ("panes",), _over(
        "MINIMUM GAP INTERVAL '1' SECOND",
        "unix_micros(PANE_END) AS end, PANE_TIMING AS timing, PANE_INDEX AS i, COLLECT_LIST(n) AS all, "
        "COUNT(DISTINCT v) AS d FROM t GROUP BY PANES(ev, DURATION INTERVAL '1' SECOND, "
        "DISCARD AGE INTERVAL '2' SECOND)"), _spaced),
    Law("the bound before each row", ("event time", "current bound"), _over(
        f"LAG INTERVAL '1' SECOND, {_NONE}",
        "n, unix_micros(CURRENT_BOUND()) AS b FROM (SELECT STREAM n, v, ev FROM t WHERE v <> 1) AS u"), _told),
    Law("panes behind a join with a table", ("event time", "table join", "panes"),
        f"CREATE TABLE labels (v INT, w INT); CREATE VIEW t EVENT TIME (ev, LAG INTERVAL '1' SECOND, {_NONE}) AS "
        "SELECT STREAM * FROM a; CREATE VIEW j AS SELECT STREAM n, w AS v, ev FROM t JOIN labels AS l ON l.v = t.v; "
        f"SELECT STREAM {_FACTS}, v, COUNT(*) AS c, SUM(n) AS s FROM j "
        "GROUP BY PANES(ev, DURATION INTERVAL '1' SECOND, DISCARD AGE INTERVAL '2' SECOND), v", _labelled,
        tables={"labels": LABELS}),
    Law("panes of complete fires", ("fired bounds", "event time", "panes"), _above(
        f"{_FACTS}, v, COUNT(*) AS c, SUM(n) AS s FROM (SELECT STREAM e, v, n FROM h WHERE timing = 'COMPLETE') AS u "
        "GROUP BY PANES(e, DURATION INTERVAL '1' SECOND, DISCARD AGE INTERVAL '2' SECOND), v"), _of_fires),
    Law("panes of the latest fires", ("fired bounds", "event time", "panes"), _above(
        "unix_micros(PANE_END) AS end, PANE_TIMING AS timing, v, MAX_BY(n, i) AS n FROM h "
        "GROUP BY PANES(e, DURATION INTERVAL '0.5' SECOND, DISCARD AGE INTERVAL '1' SECOND), v"), _latest),
    Law("the bound before each fire", ("fired bounds", "event time", "current bound"), _above(
        "v, unix_micros(CURRENT_BOUND()) AS b FROM h"), _bounded),
    Law("panes over a filter", ("panes",), _over(
        _NONE,
        f"{_FACTS}, v, COUNT(*) AS c, SUM(n) AS s FROM t WHERE v <> 1 GROUP BY v, "
        "PANES(ev, DURATION INTERVAL '1' SECOND, DISCARD AGE INTERVAL '2' SECOND)"), _filtered),
    Law("panes with changes", ("panes",), _over(
        _NONE,
        f"{_FACTS}, v, COUNT(*) AS c, SUM(n) AS s FROM t GROUP BY v, "
        "PANES(ev, DURATION INTERVAL '1' SECOND, DISCARD AGE INTERVAL '2' SECOND) EMIT CHANGES"), _changes),
    Law("panes with early fires", ("panes",), _over(
        _NONE,
        f"{_FACTS}, v, COUNT(*) AS c, SUM(n) AS s FROM t GROUP BY v, PANES(ev, DURATION INTERVAL '3' SECOND, "
        "DISCARD AGE INTERVAL '2' SECOND) EMIT CHANGES EMIT EVERY INTERVAL '1' SECOND"), _early),
    Law("panes apart", ("panes",), _over(
        _NONE,
        f"{_FACTS}, v, COUNT(*) AS c, SUM(n) AS s FROM t "
        "GROUP BY PANES(ev, DURATION INTERVAL '1' SECOND, PERIOD INTERVAL '2' SECOND), v"), _gaps),
    Law("panes where regions meet", ("passed bounds", "event time", "panes"),
        f"CREATE VIEW x EVENT TIME (ev, LAG INTERVAL '1' SECOND, {_NONE}) AS SELECT STREAM n, v, ev FROM a; "
        f"CREATE VIEW y EVENT TIME (ev, {_NONE}) AS SELECT STREAM n, v, ev FROM b; "
        "CREATE VIEW u AS SELECT STREAM n, v, ev FROM x WHERE v <> 1 UNION ALL SELECT STREAM * FROM y; "
        "CREATE VIEW t EVENT TIME (later, MODE INPUT_WATERMARK) "
        "AS SELECT STREAM *, ev + INTERVAL '0.5' SECOND AS later FROM u; "
        f"SELECT STREAM {_FACTS}, v, COUNT(*) AS c, SUM(n) AS s FROM t "
        "GROUP BY PANES(later, DURATION INTERVAL '1' SECOND, DISCARD AGE INTERVAL '2' SECOND), v", _met),
    Law("panes under bounds that are set", ("event time", "panes"),
        f"SELECT STREAM {_FACTS}, v, COUNT(*) AS c, SUM(n) AS s FROM a "
        "GROUP BY PANES(ev, DURATION INTERVAL '1' SECOND, DISCARD AGE INTERVAL '2' SECOND), v",
        _set, clauses=f"EVENT TIME (ev, MODE MANUAL, {_NONE})"),
    Law("panes behind OVER", ("over", "event time", "panes"), _declared(
        "SELECT STREAM n, v, ev, COUNT(*) OVER (PARTITION BY v ROWS 2 PRECEDING) AS c FROM r"), _behind_over),
    Law("panes behind a join", ("join", "event time", "panes"), _declared(
        "SELECT STREAM r.n, r.v, r.ev FROM r OVER (RANGE INTERVAL '1' SECOND PRECEDING) "
        "JOIN b OVER (RANGE INTERVAL '1' SECOND PRECEDING) ON r.v = b.v"), _behind_a_join),
    Law("panes behind a limit", ("limit", "event time", "panes"), _declared(
        "SELECT STREAM n, v, ev FROM r LIMIT 5"), _behind_a_limit),
)  # fmt: skip
