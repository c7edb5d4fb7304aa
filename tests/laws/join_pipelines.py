"""Joins and their oracles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.laws.pipelines import SECOND, Feeds, Law, _column, _streams
from tests.oracle import feed as f
from tests.oracle.group_by import floor, group_by
from tests.oracle.join import join, left_alone
from tests.oracle.merge import merge
from tests.oracle.select import select

Result = tuple[f.Feed, list[f.Refusal]]
TWO = floor(2 * SECOND)
HALF_SECOND = SECOND // 2
EVER = 10**18  # µs, greater than the distance of any two times


def _keys(one: f.Values, other: f.Values) -> bool:
    return one["v"] is not None and one["v"] == other["v"]


def _of(row: f.Row | None, name: str) -> Any:
    return None if row is None else row.values[name]


def _numbers(one: f.Row | None, other: f.Row | None) -> f.Values:
    return {"an": _of(one, "n"), "bn": _of(other, "n")}


def _pairs(
    low: int,
    high: int,
    stamps: tuple[int | None, int | None] = (None, None),
    on: Callable[[f.Values, f.Values], bool | None] = _keys,
) -> Callable[[Feeds], Result]:
    def oracle(feeds: Feeds) -> Result:
        (a, b), refused = _streams(feeds, "a", "b")
        return join(a, b, low, high, on, _numbers, *stamps), refused

    return oracle


def _alone(low: int, high: int, stamp: int, *, matched: bool) -> Callable[[Feeds], Result]:
    def oracle(feeds: Feeds) -> Result:
        (a, b), refused = _streams(feeds, "a", "b")
        made = left_alone(a, b, low, high, _keys, stamp, matched=matched)
        return select(made, project=lambda v: {"n": v["n"]}), refused

    return oracle


def _itself(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    kept = select(a, lambda v: None if v["v"] is None else v["v"] > 0)
    return join(kept, a, -SECOND, 0, lambda x, y: x["n"] > y["n"], _numbers), refused


def _grouped(feeds: Feeds) -> Result:
    (a, b), refused = _streams(feeds, "a", "b")
    joined = join(a, b, -SECOND, SECOND, _keys, _numbers, SECOND)
    counted = select(joined, project=lambda v: {**v, "hit": v["bn"] is not None})

    def row(_: tuple[Any, ...], rows: Sequence[f.Row]) -> f.Values:
        return {"c": len(rows), "k": sum(_column(rows, "hit")), "all": _column(rows, "an")}

    return group_by(counted, [TWO], lambda at, _: (TWO.value(at),), row), refused


def _of_groups(feeds: Feeds) -> Result:
    parts, refused = _streams(feeds, "a", "b")
    grouped = [
        merge(
            group_by(
                part, [floor(SECOND)], lambda at, v: (floor(SECOND).value(at), v["v"]),
                lambda key, rows: {"v": key[1], "c": len(rows)},
            ),
            keyed=True,
        )
        for part in parts
    ]  # fmt: skip
    return join(*grouped, 0, 0, _keys, lambda x, y: {"ac": _of(x, "c"), "bc": _of(y, "c")}, 0, 0), refused


def _three(feeds: Feeds) -> Result:
    (a, b), refused = _streams(feeds, "a", "b")
    pair = join(a, b, -SECOND, SECOND, _keys, lambda x, y: {"a": x, "b": y})

    def inside(one: f.Values, last: f.Values) -> bool:
        late = one["a"].at + SECOND >= last["at"] and one["b"].at + SECOND >= last["at"]
        return late and one["a"].values["v"] == last["v"]

    timed = {
        w: [f.Row(i.at, {**i.values, "at": i.at}) if isinstance(i, f.Row) else i for i in items]
        for w, items in b.items()
    }
    made = join(pair, timed, 0, SECOND, inside, lambda x, y: {
        "an": _of(_of(x, "a"), "n"), "bn": _of(_of(x, "b"), "n"), "cn": _of(y, "n"),
    })  # fmt: skip
    return made, refused


LABELS = [{"v": 1, "w": "one"}, {"v": 2, "w": "two"}, {"v": 1, "w": "uno"}, {"v": None, "w": "none"}]


def _labelled(feeds: Feeds) -> Result:
    """Each row with the rows of the table, in the table's order; a row without a match alone."""
    (a,), refused = _streams(feeds, "a")

    def labels(values: f.Values) -> list[Any]:
        return [row["w"] for row in LABELS if values["v"] is not None and row["v"] == values["v"]] or [None]

    def expanded(item: f.Item) -> list[f.Item]:
        if not isinstance(item, f.Row):
            return [item]
        return [f.Row(item.at, {"n": item.values["n"], "w": w}) for w in labels(item.values)]

    return merge({writer: [one for item in items for one in expanded(item)] for writer, items in a.items()}), refused


def _where(keeps: Callable[[f.Values], bool]) -> Callable[[Feeds], Result]:
    def oracle(feeds: Feeds) -> Result:
        (a,), refused = _streams(feeds, "a")
        return merge(select(a, keeps, lambda v: {"n": v["n"]})), refused

    return oracle


def _counted(feeds: Feeds) -> Result:
    """Each row with the number of table rows with its v, if its n is above the least v of the table."""
    (a,), refused = _streams(feeds, "a")

    def shown(values: f.Values) -> f.Values:
        return {"n": values["n"], "c": sum(values["v"] is not None and row["v"] == values["v"] for row in LABELS)}

    return merge(select(a, lambda v: v["n"] > 1, shown)), refused


_LABELS = "CREATE TABLE labels (v INT, w STRING); "
_NUMBERS = "SELECT STREAM a.n AS an, b.n AS bn FROM "
_SECOND = "OVER (RANGE INTERVAL '1' SECOND PRECEDING)"
_HALF = "OVER (RANGE INTERVAL '0.5' SECOND PRECEDING)"

JOINS = (
    Law("windows on both sides", ("join", "merge"), f"{_NUMBERS} a {_SECOND} JOIN b {_HALF} ON a.v = b.v",
        _pairs(-HALF_SECOND, SECOND)),
    Law("a window on the left alone", ("join",), f"{_NUMBERS} a {_SECOND} JOIN b USING (v)", _pairs(0, SECOND)),
    Law("a left join of windows", ("join",), f"{_NUMBERS} a {_SECOND} LEFT JOIN b {_HALF} ON a.v = b.v",
        _pairs(-HALF_SECOND, SECOND, (SECOND, None))),
    Law("a full join with a further condition", ("join",),
        f"{_NUMBERS} a {_SECOND} FULL JOIN b {_SECOND} ON a.v = b.v AND a.n < b.n",
        _pairs(-SECOND, SECOND, (SECOND, SECOND), lambda x, y: _keys(x, y) and x["n"] < y["n"])),
    Law("an interval into the past", ("join",),
        f"{_NUMBERS} a JOIN b ON a.v = b.v AND b.ROWTIME BETWEEN a.ROWTIME - INTERVAL '2' SECOND AND "
        "a.ROWTIME - INTERVAL '0.5' SECOND", _pairs(-2 * SECOND, -HALF_SECOND)),
    Law("a left join of an interval", ("join",),
        f"{_NUMBERS} a LEFT JOIN b ON a.v = b.v AND a.ROWTIME + INTERVAL '2' SECOND > b.ROWTIME "
        "AND b.ROWTIME - a.ROWTIME >= INTERVAL '0.5' SECOND",
        _pairs(HALF_SECOND, 2 * SECOND - 1, (2 * SECOND - 1, None))),
    Law("a join that nothing limits from above", ("join",),
        f"{_NUMBERS} a JOIN b ON a.v = b.v AND b.ROWTIME > a.ROWTIME WITH UNBOUNDED STATE", _pairs(1, EVER)),
    Law("a left join with all that was", ("join",),
        f"{_NUMBERS} a LEFT JOIN b OVER (RANGE UNBOUNDED PRECEDING) ON a.v = b.v WITH UNBOUNDED STATE",
        _pairs(-EVER, 0, (0, None))),
    Law("a semi join of an interval", ("join",),
        "SELECT STREAM n FROM a LEFT SEMI JOIN b ON a.v = b.v AND b.ROWTIME BETWEEN a.ROWTIME - INTERVAL '0.5' SECOND "
        "AND a.ROWTIME + INTERVAL '1' SECOND", _alone(-HALF_SECOND, SECOND, SECOND, matched=True)),
    Law("an anti join of windows", ("join",), f"SELECT STREAM n FROM a {_SECOND} ANTI JOIN b {_HALF} ON a.v = b.v",
        _alone(-HALF_SECOND, SECOND, SECOND, matched=False)),
    Law("a right join of equal rowtimes", ("join",), f"{_NUMBERS} a RIGHT JOIN b ON a.v = b.v",
        _pairs(0, 0, (None, 0))),
    Law("a stream joined with itself", ("join",),
        "CREATE VIEW p AS SELECT STREAM n, v FROM a WHERE v > 0; SELECT STREAM p.n AS an, q.n AS bn FROM p, a AS q "
        "WHERE q.ROWTIME >= p.ROWTIME - INTERVAL '1' SECOND AND q.ROWTIME <= p.ROWTIME AND p.n > q.n", _itself),
    Law("groups over a join", ("join", "group by"),
        "SELECT STREAM COUNT(*) AS c, COUNT(b.n) AS k, COLLECT_LIST(a.n) AS all FROM "
        f"a {_SECOND} LEFT JOIN b {_SECOND} ON a.v = b.v GROUP BY STEP(ROWTIME BY INTERVAL '2' SECOND)", _grouped),
    Law("a join of groups", ("join", "group by"),
        "CREATE VIEW x AS SELECT STREAM v, COUNT(*) AS c FROM a GROUP BY FLOOR(a.ROWTIME TO SECOND), v; "
        "CREATE VIEW y AS SELECT STREAM v, COUNT(*) AS c FROM b GROUP BY FLOOR(b.ROWTIME TO SECOND), v; "
        "SELECT STREAM x.c AS ac, y.c AS bc FROM x FULL JOIN y ON x.v = y.v", _of_groups),
    Law("a stream with a table", ("table", "table join", "merge"),
        "CREATE TABLE labels (v INT, w STRING); SELECT STREAM n, w FROM a LEFT JOIN labels USING (v)", _labelled,
        tables={"labels": LABELS}),
    Law("a table that each tick reads again", ("versions of a table", "table join", "merge"),
        "CREATE TABLE labels (v INT, w STRING) REFRESH EVERY INTERVAL '0.000001' SECOND; "
        "SELECT STREAM n, w FROM a LEFT JOIN labels FOR SYSTEM_TIME AS OF a.ROWTIME USING (v)", _labelled,
        tables={"labels": LABELS}),
    Law("a semi join with a table", ("table", "table join"),
        f"{_LABELS}SELECT STREAM n FROM a LEFT SEMI JOIN labels USING (v)", _where(lambda v: v["v"] in (1, 2)),
        tables={"labels": LABELS}),
    Law("an anti join with a table", ("table", "table join"),
        f"{_LABELS}SELECT STREAM n FROM a LEFT ANTI JOIN labels ON a.v = labels.v AND labels.w = 'two'",
        _where(lambda v: v["v"] != 2), tables={"labels": LABELS}),
    Law("values in one query over a table and not in another", ("table", "table query", "table join"),
        f"{_LABELS}SELECT STREAM n FROM a WHERE v IN (SELECT v FROM labels WHERE w <> 'uno') "
        "AND v NOT IN (SELECT v FROM labels WHERE w = 'two')", _where(lambda v: v["v"] == 1),
        tables={"labels": LABELS}),
    Law("values in a table that another sub-query narrows", ("table", "query of tables", "table query", "table join"),
        f"{_LABELS}SELECT STREAM n FROM a WHERE v IN (SELECT v FROM labels WHERE w NOT IN "
        "(SELECT MAX(w) FROM labels GROUP BY v HAVING COUNT(*) = 1))", _where(lambda v: v["v"] == 1),
        tables={"labels": LABELS}),
    Law("a value that is in no row of a table with a NULL", ("table", "table query", "table join"),
        f"{_LABELS}SELECT STREAM n FROM a WHERE v NOT IN (SELECT v FROM labels WHERE w IN ('two', 'none'))",
        _where(lambda _: False), tables={"labels": LABELS}),
    Law("a value that a table has for each row", ("table", "table query", "table join", "merge"),
        f"{_LABELS}SELECT STREAM n, (SELECT COUNT(*) FROM labels WHERE labels.v = a.v) AS c FROM a "
        "WHERE n > (SELECT MIN(v) FROM labels)", _counted, tables={"labels": LABELS}),
    Law("three inputs", ("join", "merge"),
        f"SELECT STREAM a.n AS an, b.n AS bn, c.n AS cn FROM a {_SECOND} JOIN b {_SECOND} ON a.v = b.v "
        "JOIN b AS c ON c.v = a.v", _three),
)  # fmt: skip
