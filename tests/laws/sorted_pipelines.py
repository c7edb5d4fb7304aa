"""ORDER BY over groups, unions and ordered values, and AS ROWTIME in groups that values close."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tests.laws.pipelines import SECOND, Feeds, Law, _streams
from tests.oracle import feed as f
from tests.oracle.group_by import floor, group_by
from tests.oracle.merge import merge
from tests.oracle.ordered import group_by_values, ordered, stamped_groups
from tests.oracle.select import select
from tests.oracle.sort_by import in_order, sort_by, sort_by_values
from tests.oracle.tsort import tsort
from tests.oracle.union_all import union_all

Result = tuple[f.Feed, list[f.Refusal]]
ONE, TWO = floor(SECOND), floor(2 * SECOND)


def _counted(key: tuple[Any, ...], rows: Sequence[f.Row]) -> f.Values:
    return {"v": key[1], "c": len(rows)}


def _groups(
    closer: Any, keys: Callable[[f.Values], tuple[Any, ...]], stamp: Callable[[int], int] | None = None
) -> Callable[[Feeds], Result]:
    def oracle(feeds: Feeds) -> Result:
        (a,), refused = _streams(feeds, "a")
        made = group_by(a, [closer], lambda at, v: (closer.value(at), v["v"]), _counted, stamp=stamp)
        return in_order(made, keys), refused

    return oracle


def _groups_in_a_stamp(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")

    def row(key: tuple[Any, ...], rows: Sequence[f.Row]) -> f.Values:
        return {"v": key[1], "c": len(rows), "m": key[0]}

    made = group_by(a, [ONE], lambda at, v: (ONE.value(at), v["v"]), row, stamp=TWO.value)
    return select(in_order(made, lambda v: (v["m"], -v["c"])), project=lambda v: {"v": v["v"], "c": v["c"]}), refused


def _by_a_promise(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    judged = ordered("query", merge(a), lambda v: v["v"])
    made = sort_by_values(judged.feed, lambda v: v["v"], lambda v: (-(v["n"] % 2),))
    return select(made, project=lambda v: {"n": v["n"], "v": v["v"]}), [*refused, *judged.refused]


def _by_a_column(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    judged = ordered("a.v", merge(a), lambda v: None if v["v"] is None else -v["v"])
    made = sort_by_values(judged.feed, lambda v: -(v["v"] // 2), lambda v: (-v["n"],))
    return select(made, project=lambda v: {"n": v["n"]}), [*refused, *judged.refused]


def _groups_by_a_promise(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    judged = ordered("query", merge(a), lambda v: v["v"])
    rows = f.rows_of(judged.feed[""])

    def row_of(v: f.Values) -> f.Values:
        members = [r for r in rows if r.values["v"] == v["v"] and r.values["n"] % 2 == v["n"] % 2]
        return {"v": v["v"], "o": v["n"] % 2, "c": len(members), "all": [r.values["n"] for r in members]}

    made = sort_by_values(judged.feed, lambda v: v["v"], lambda v: (-row_of(v)["c"], row_of(v)["all"][-1]))
    seen: set[tuple[int, int]] = set()
    once = []
    for item in made[""]:
        key = (item.values["v"], item.values["n"] % 2) if isinstance(item, f.Row) else None
        if key is None or key not in seen:
            once.append(item if not isinstance(item, f.Row) else f.Row(item.at, row_of(item.values)))
            seen.update([key] if key else [])
    return {"": once}, [*refused, *judged.refused]


def _sorted_union(feeds: Feeds) -> Result:
    (a, b), refused = _streams(feeds, "a", "b")
    rows = select(union_all(a, b), project=lambda v: {"n": v["n"], "v": v["v"]})
    return merge(sort_by(rows, TWO, lambda v: (v["v"] is None, v["v"])), keyed=True), refused


def _union_in_time(feeds: Feeds) -> Result:
    (a, b), refused = _streams(feeds, "a", "b")
    judged = tsort("query", merge(union_all(a, b)), lambda v: v["ev"], SECOND, keys=lambda v: (v["v"],))
    kept = select(judged.feed, project=lambda v: {"n": v["n"], "v": v["v"]})
    return merge(kept, keyed=True), [*refused, *judged.refused]


def _first_of_each_step(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    made = merge(sort_by(a, TWO, lambda v: (-(v["n"] % 2),)), keyed=True)
    seen: Counter[tuple[Any, ...]] = Counter()
    out: list[f.Item] = []
    for row in f.rows_of(made[""]):
        key = (row.at, row.values["v"])
        seen[key] += 1
        if seen[key] <= 2:
            out.append(replace(row, values={"n": row.values["n"], "rn": seen[key]}))
    return {"": [*out, f.Bound(f.bound_of(made))]}, refused


def _stamped_values(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    judged = ordered("query", merge(a), lambda v: v["v"])
    rows, bound = f.rows_of(judged.feed[""]), f.bound_of(judged.feed)
    clocks = (TWO.value(bound) if bound > f.BEGINNING else None, rows[-1].values["v"] if rows else None)

    def key(row: f.Row) -> tuple[Any, ...]:
        assert row.at is not None
        return (TWO.value(row.at), row.values["v"])

    made = stamped_groups(judged.feed, key, clocks, lambda key: key[0], _counted)
    if rows or bound >= f.END or bound == f.BEGINNING:
        return made, [*refused, *judged.refused]
    return {"": [f.Bound(TWO.value(bound))]}, [*refused, *judged.refused]


def _stamped_late_values(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    judged = ordered("query", merge(a), lambda v: v["v"])
    late = tsort("query", judged.feed, lambda v: v["ev"], SECOND, last_of_group=lambda at: TWO.end(at) - 1)
    rows, bound = f.rows_of(judged.feed[""]), f.bound_of(late.feed)
    clocks = (TWO.value(bound) if bound > f.BEGINNING else None, rows[-1].values["v"] if rows else None)

    def key(row: f.Row) -> tuple[Any, ...]:
        assert row.at is not None
        return (TWO.value(row.at), row.values["v"])

    made = stamped_groups(late.feed, key, clocks, lambda key: key[0], _counted)
    return merge(made, keyed=True), [*refused, *judged.refused, *late.refused]


def _once(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")

    def row(key: tuple[Any, ...], rows: Sequence[f.Row]) -> f.Values:
        return {"at": key[0], "c": len(rows)}

    made = group_by(a, [ONE], lambda at, v: (ONE.value(at), v["v"]), row)
    seen: list[Any] = []
    for item in in_order(made, lambda v: (v["at"], v["c"]))[""]:
        if item not in seen:
            seen.append(item)
    return {"": seen}, refused


def _at_the_end(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")

    def row(_: Any, keys: tuple[Any, ...], rows: Sequence[f.Row]) -> f.Values:
        return {"v": keys[0], "c": len(rows), "l": rows[-1].values["n"]}

    return group_by_values(merge(a), lambda _: 0, lambda v: (v["v"],), row), refused


def _first(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    made = merge(select(a, project=lambda v: {"n": v["n"]}))[""]
    rows = f.rows_of(made)[:3]
    return {"": [*rows, f.Bound(f.END) if len(rows) == 3 else made[-1]]}, refused


_STEP = "STEP({}ROWTIME BY INTERVAL '{}' SECOND)"
_ONE, _TWO = _STEP.format("a.", 1), _STEP.format("a.", 2)
_TWO_OF_ONE = f"STEP({_ONE} BY INTERVAL '2' SECOND)"

SORTED = (
    Law("groups sorted inside a step", ("group by",),
        f"SELECT STREAM v, COUNT(*) AS c FROM a GROUP BY {_TWO}, v ORDER BY {_TWO}, COUNT(*) DESC",
        _groups(TWO, lambda v: (-v["c"],))),
    Law("groups sorted inside their rowtime", ("group by",),
        f"SELECT STREAM v, COUNT(*) AS c FROM a GROUP BY {_TWO}, v ORDER BY ROWTIME, c, v DESC NULLS FIRST",
        _groups(TWO, lambda v: (v["c"], v["v"] is not None, -(v["v"] or 0)))),
    Law("groups sorted inside a longer step", ("group by",),
        f"SELECT STREAM v, COUNT(*) AS c FROM a GROUP BY {_ONE}, v ORDER BY {_TWO_OF_ONE}, 2 DESC",
        _groups(ONE, lambda v: (-v["c"],), TWO.stamp)),
    Law("groups sorted inside a rowtime of their own", ("group by",),
        f"SELECT STREAM {_TWO_OF_ONE} AS ROWTIME, v, COUNT(*) AS c FROM a GROUP BY {_ONE}, v ORDER BY {_ONE}, c DESC",
        _groups_in_a_stamp),
    Law("rows sorted by a promised value", ("order by",),
        "SELECT STREAM n, v FROM a ORDER BY MONOTONIC(v), MOD(n, 2) DESC", _by_a_promise),
    Law("rows sorted by a column of declared order", ("order by",),
        "SELECT STREAM n FROM a ORDER BY -v DIV 2, n DESC", _by_a_column, "n INT, v INT DESCENDING, ev TIMESTAMP"),
    Law("groups of a promise sorted by their counts", ("order by", "group by"),
        "SELECT STREAM MONOTONIC(v) AS v, MOD(n, 2) AS o, COUNT(*) AS c, COLLECT_LIST(n) AS all FROM a "
        "GROUP BY MONOTONIC(v), MOD(n, 2) ORDER BY MONOTONIC(v), COUNT(*) DESC, LAST(n)", _groups_by_a_promise),
    Law("a sorted union", ("union all", "order by"),
        "SELECT STREAM n, v FROM a UNION ALL SELECT STREAM n, v FROM b "
        f"ORDER BY {_STEP.format('', 2)}, v NULLS LAST", _sorted_union),
    Law("a union sorted by event time", ("union all", "t-sort"),
        "SELECT STREAM ev AS ROWTIME, n, v FROM a UNION ALL SELECT STREAM ev AS ROWTIME, n, v FROM b "
        "ORDER BY ev WITHIN INTERVAL '1' SECOND, v", _union_in_time),
    Law("distinct rows of groups", ("group by",),
        f"SELECT STREAM DISTINCT UNIX_MICROS({_ONE}) AS at, COUNT(*) AS c FROM a GROUP BY {_ONE}, v", _once),
    Law("the first rows of each step", ("order by", "over"),
        f"SELECT STREAM * FROM (SELECT STREAM n, ROW_NUMBER() OVER (PARTITION BY {_TWO}, v ORDER BY MOD(n, 2) DESC) "
        "AS rn FROM a) AS x WHERE rn <= 2", _first_of_each_step),
    Law("groups that only the end closes", ("group by",),
        "SELECT STREAM v, COUNT(*) AS c, LAST(n) AS l FROM a GROUP BY v WITH UNBOUNDED STATE", _at_the_end),
    Law("the first three rows", ("limit", "merge"), "SELECT STREAM n FROM a LIMIT 3", _first),
    Law("groups of a promise with a rowtime of their own", ("group by",),
        f"SELECT STREAM {_TWO} AS ROWTIME, MONOTONIC(v) AS v, COUNT(*) AS c FROM a GROUP BY {_TWO}, MONOTONIC(v)",
        _stamped_values),
    Law("late groups of a promise with a rowtime of their own", ("group by", "t-sort"),
        "SELECT STREAM STEP(ev BY INTERVAL '2' SECOND) AS ROWTIME, MONOTONIC(v) AS v, COUNT(*) AS c FROM a "
        "GROUP BY STEP(ev BY INTERVAL '2' SECOND) WITHIN INTERVAL '1' SECOND, MONOTONIC(v)", _stamped_late_values),
)  # fmt: skip
