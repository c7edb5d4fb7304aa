"""Joins as of a time and their oracles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.laws.join_pipelines import _keys, _numbers, _of
from tests.laws.pipelines import SECOND, Feeds, Law, _column, _streams
from tests.oracle import feed as f
from tests.oracle.as_of import as_of
from tests.oracle.group_by import floor, group_by
from tests.oracle.select import select

Result = tuple[f.Feed, list[f.Refusal]]
TWO = floor(2 * SECOND)


def _latest(
    on: Callable[[f.Values, f.Values], bool | None] = _keys,
    row: Callable[[f.Row, f.Row | None], f.Values] = _numbers,
    *,
    outer: bool = False,
) -> Callable[[Feeds], Result]:
    def oracle(feeds: Feeds) -> Result:
        (a, b), refused = _streams(feeds, "a", "b")
        return as_of(a, b, on, row, outer=outer), refused

    return oracle


def _timed(one: f.Row, other: f.Row | None) -> f.Values:
    return {**_numbers(one, other), "s": None if other is None else (other.at or 0) // SECOND}


def _grouped(feeds: Feeds) -> Result:
    (a, b), refused = _streams(feeds, "a", "b")
    joined = as_of(a, b, _keys, _numbers, outer=True)

    def row(_: tuple[Any, ...], rows: Sequence[f.Row]) -> f.Values:
        found = [n for n in _column(rows, "bn") if n is not None]
        return {"c": len(rows), "k": len(found), "all": found}

    return group_by(joined, [TWO], lambda at, _: (TWO.value(at),), row), refused


def _twice(feeds: Feeds) -> Result:
    (a, b), refused = _streams(feeds, "a", "b")
    first = as_of(a, b, _keys, lambda x, y: {"v": x.values["v"], "an": _of(x, "n"), "bn": _of(y, "n")})
    even = select(b, lambda v: v["n"] % 2 == 0)
    return as_of(first, even, _keys, lambda x, y: {
        "an": _of(x, "an"), "bn": _of(x, "bn"), "cn": _of(y, "n"),
    }, outer=True), refused  # fmt: skip


def _itself(feeds: Feeds) -> Result:
    (a,), refused = _streams(feeds, "a")
    return as_of(a, a, _keys, _numbers), refused


_NUMBERS = "SELECT STREAM a.n AS an, b.n AS bn FROM a"
_AS_OF = "FOR SYSTEM_TIME AS OF a.ROWTIME"

AS_OF = (
    Law("the last row of the key", ("over", "merge", "union all"), f"{_NUMBERS} JOIN b {_AS_OF} ON a.v = b.v",
        _latest()),
    Law("a left join as of a time", ("over", "merge"),
        "SELECT STREAM a.n AS an, b.n AS bn, CAST(unix_seconds(b.ROWTIME) AS INT) AS s FROM a "
        f"LEFT JOIN b {_AS_OF} USING (v)", _latest(row=_timed, outer=True)),
    Law("the last row of all", ("over", "merge"), f"{_NUMBERS} LEFT JOIN b {_AS_OF} ON TRUE",
        _latest(on=lambda _x, _y: True, outer=True)),
    Law("two keys, one of them computed", ("over", "merge"),
        f"{_NUMBERS} JOIN b {_AS_OF} ON b.v = a.v AND CAST(a.n % 2 AS BIGINT) = CAST(b.n % 2 AS INT)",
        _latest(on=lambda x, y: _keys(x, y) and x["n"] % 2 == y["n"] % 2)),
    Law("groups over a join as of a time", ("over", "group by"),
        f"SELECT STREAM COUNT(*) AS c, COUNT(b.n) AS k, COLLECT_LIST(b.n) AS all FROM a LEFT JOIN b {_AS_OF} "
        "ON a.v = b.v GROUP BY STEP(a.ROWTIME BY INTERVAL '2' SECOND)", _grouped),
    Law("two joins as of a time", ("over", "merge"),
        "CREATE VIEW even AS SELECT STREAM n, v FROM b WHERE n % 2 = 0; "
        f"SELECT STREAM a.n AS an, b.n AS bn, c.n AS cn FROM a JOIN b {_AS_OF} ON a.v = b.v "
        f"LEFT JOIN even {_AS_OF} AS c ON c.v = a.v", _twice),
    Law("a stream as of its own rowtime", ("over", "merge"), f"{_NUMBERS} JOIN a {_AS_OF} AS b ON a.v = b.v", _itself),
)  # fmt: skip
