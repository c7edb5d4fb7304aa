"""Random groups of groups, and an oracle that finds the rowtimes which a group can hold by listing them.

A column of groups is a function of their rowtime, and only the ends of groups occur as rowtimes. The stamp of a group
over such a column is the greatest of the rowtimes below that belong to it; the oracle walks from one to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.laws.pipelines import HALF, SECOND, Feeds, Law, _column, _streams
from tests.oracle import feed as f
from tests.oracle.aggregates import total
from tests.oracle.group_by import Rounding, ceil, floor, group_by, shifted
from tests.oracle.select import select
from tests.oracle.union_all import union_all

Value = Callable[[int], int]


@dataclass(frozen=True)
class Level:
    """A grouping expression over ``{}``, and its groups over a continuous time."""

    sql: str
    of: Rounding

    @property
    def value(self) -> Value:
        """The value of the expression."""
        return self.of.value


EACH = Rounding(lambda at: at, lambda at: at + 1, lambda at: at)
"""A group for each rowtime: their rowtimes are a continuous time, as those of a stream."""

LEVELS = (
    Level("STEP({} BY INTERVAL '1' SECOND)", floor(SECOND)),
    Level("FLOOR({} TO SECOND)", floor(SECOND)),
    Level("STEP({} BY INTERVAL '0.5' SECOND)", floor(HALF)),
    Level("STEP({} BY INTERVAL '2' SECOND)", floor(2 * SECOND)),
    Level("TUMBLE({}, INTERVAL '3' SECOND)", floor(3 * SECOND)),
    Level("STEP({} BY INTERVAL '1.5' SECOND)", floor(3 * HALF)),
    Level("STEP({} + INTERVAL '0.5' SECOND BY INTERVAL '1' SECOND)", shifted(floor(SECOND), HALF)),
    Level("DATE_TRUNC('MINUTE', {})", floor(60 * SECOND)),
    Level("CEIL({} TO SECOND)", ceil(SECOND)),
    Level("{}", EACH),
)
"""Expressions whose jumps meet and miss each other."""
SPELLINGS = (
    *LEVELS[:2],
    Level("DATE_TRUNC('SECOND', {})", floor(SECOND)),
    Level("STEP({} BY INTERVAL '1000' MILLISECOND)", floor(SECOND)),
)
"""Expressions that are equal."""


def over_grid(below: Rounding, column: Value, value: Value) -> tuple[Rounding, Value]:
    """The groups of ``value(column)`` by the rowtime of the groups ``below``, and the value at a rowtime.

    ``column``: of a group below at any instant of it.
    """

    def next_point(at: int) -> tuple[int, int]:
        instant = at - 1 if below.stamp(at - 1) >= at else at
        return below.stamp(instant), value(column(instant))

    def last(at: int) -> int:
        point, mine = next_point(at)
        while True:
            later, others = next_point(point + 1)
            if others != mine:
                return point
            point = later

    of = Rounding(lambda at: next_point(at)[1], lambda at: last(at) + 1, last)
    return of, of.value


def _moved(by: int) -> str:
    return f" + INTERVAL '{by / SECOND}' SECOND" if by else ""


@st.composite
def pipelines(draw: Callable[..., Any]) -> Law:
    """Two or three levels of groups, with a shifted column, a union of equal ones or a filter between them."""
    united, distinct = draw(st.booleans()), draw(st.booleans())
    first = draw(st.sampled_from(SPELLINGS if united and draw(st.booleans()) else LEVELS))
    levels: Sequence[Level] = [first, *(draw(st.sampled_from(LEVELS)) for _ in range(draw(st.integers(1, 2))))]
    by = [draw(st.sampled_from((0, 0, HALF, SECOND))) for _ in levels]
    other = draw(st.sampled_from(SPELLINGS)) if first in SPELLINGS else first
    views = []
    for name, level in zip("ab" if united else "a", (first, other), strict=False):
        key = level.sql.format(f"{name}.ROWTIME")
        views.append(f"SELECT STREAM {key} AS m, COUNT(*) AS c FROM {name} GROUP BY {key}")
    sql = f"CREATE VIEW g0 AS {' UNION ALL '.join(views)}; "
    for n, level in enumerate(levels[1:], 1):
        moved = f"SELECT STREAM m{_moved(by[n])} AS m, c FROM g{n - 1} WHERE c > 0"
        key, counted = level.sql.format("s.m"), "1" if distinct and n == 1 else "SUM(c)"
        once = f"SELECT STREAM DISTINCT {key} AS m, 1 AS c FROM ({moved}) AS s"
        grouped = f"SELECT STREAM {key} AS m, {counted} AS c FROM ({moved}) AS s GROUP BY {key}"
        sql += f"CREATE VIEW g{n} AS {once if counted == '1' else grouped}; "
    sql += f"SELECT STREAM UNIX_MICROS(m) AS m, c FROM g{len(levels) - 1}"

    def oracle(feeds: Feeds) -> tuple[f.Feed, list[f.Refusal]]:
        parts, refused = _streams(feeds, *("ab" if united else "a"))
        grouped = [_grouped(part, first.of, first.value, lambda v, at: first.value(at), once=False) for part in parts]
        made = union_all(*grouped) if united else grouped[0]
        of, column = first.of, first.value
        for n, level in enumerate(levels[1:], 1):
            made, of, column = _above(made, of, column, level, by[n], once=distinct and n == 1)
        return made, refused

    return Law("groups of groups", ("group by",), sql, oracle)


def _above(
    feed: f.Feed, below: Rounding, column: Value, level: Level, by: int, *, once: bool
) -> tuple[f.Feed, Rounding, Value]:
    def of_column(m: int) -> int:
        return level.value(m + by)

    of, upper = over_grid(below, column, of_column)
    if below is EACH:
        of = level.of if level.of is EACH and not by else shifted(level.of, by)
        upper = of.value
    feed = select(feed, lambda v: v["c"] > 0)
    return _grouped(feed, of, of_column, lambda v, _: of_column(v["m"]), once=once), of, upper


def _grouped(feed: f.Feed, of: Rounding, _: Value, key: Callable[[f.Values, int], int], *, once: bool) -> f.Feed:
    def row(keys: tuple[Any, ...], rows: Sequence[f.Row]) -> f.Values:
        counts = [1] * len(rows) if "c" not in rows[0].values else _column(rows, "c")
        return {"m": keys[0], "c": 1 if once else total(counts)}

    return group_by(feed, [of], lambda at, v: (key(v, at),), row)
