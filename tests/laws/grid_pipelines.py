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
from tests.oracle.group_by import Rounding, ceil, floor, group_by, in_stream_order, shifted
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


@dataclass(frozen=True)
class Windows:
    """Overlapping windows: every ``slide`` one of ``size``, or CUMULATE's, which begin together."""

    sql: str
    size: int
    slide: int
    grows: bool = False

    def ends(self, at: int) -> list[int]:
        """The ends of the windows that contain an instant, ascending."""
        first, last = at // self.slide * self.slide + self.slide, at + self.size
        if self.grows:
            last = at // self.size * self.size + self.size
        return list(range(first, last + 1, self.slide))


WINDOWS = (
    Windows("HOP({}, INTERVAL '0.5' SECOND, INTERVAL '1' SECOND)", SECOND, HALF),
    Windows("HOP({}, INTERVAL '0.5' SECOND, INTERVAL '1.5' SECOND)", 3 * HALF, HALF),
    Windows("HOP({}, INTERVAL '1' SECOND, INTERVAL '3' SECOND)", 3 * SECOND, SECOND),
    Windows("HOP({}, INTERVAL '1.5' SECOND, INTERVAL '3' SECOND)", 3 * SECOND, 3 * HALF),
    Windows("CUMULATE", 2 * SECOND, HALF, grows=True),
    Windows("CUMULATE", 3 * SECOND, 3 * HALF, grows=True),
)
"""Windows whose ends meet the rowtimes that occur, and miss them."""


def over_grid(below: Rounding, column: Value, value: Value) -> tuple[Rounding, Value]:
    """The groups of ``value(column)`` by the rowtime of the groups ``below``, and the value at a rowtime.

    ``column``: of a group below at any instant of it.
    """

    def next_point(at: int) -> tuple[int, int]:
        point, m = _point(below, column, at)
        return point, value(m)

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
    windows = draw(st.sampled_from((None, *WINDOWS)))
    if windows is not None:
        sql += f"CREATE VIEW g{len(levels)} AS {_windowed(windows, f'g{len(levels) - 1}', by[0])}; "
    sql += f"SELECT STREAM UNIX_MICROS(m) AS m, c FROM g{len(levels) - (windows is None)}"

    def oracle(feeds: Feeds) -> tuple[f.Feed, list[f.Refusal]]:
        parts, refused = _streams(feeds, *("ab" if united else "a"))
        grouped = [_grouped(part, first.of, first.value, lambda v, at: first.value(at), once=False) for part in parts]
        made = union_all(*grouped) if united else grouped[0]
        of, column = first.of, first.value
        for n, level in enumerate(levels[1:], 1):
            made, of, column = _above(made, of, column, level, by[n], once=distinct and n == 1)
        return made if windows is None else _in_windows(made, of, column, windows, by[0]), refused

    return Law("groups of groups", ("group by",), sql, oracle)


def _windowed(windows: Windows, view: str, by: int) -> str:
    moved = f"SELECT STREAM m{_moved(by)} AS m, c FROM {view}"
    if not windows.grows:
        hop = windows.sql.format("s.m")
        end = hop.replace("HOP", "HOP_END")
        return f"SELECT STREAM {end} AS m, SUM(c) AS c FROM ({moved}) AS s GROUP BY {hop}"
    lengths = ", ".join(f"INTERVAL '{length / SECOND}' SECOND" for length in (windows.slide, windows.size))
    table = f"TABLE(CUMULATE(TABLE ({moved}), DESCRIPTOR(m), {lengths}))"
    return f"SELECT STREAM window_end AS m, SUM(c) AS c FROM {table} GROUP BY window_end"


def _in_windows(feed: f.Feed, below: Rounding, column: Value, windows: Windows, by: int) -> f.Feed:
    """Groups by the end of each window that contains ``column + by`` of a row."""

    def stamp(end: int, at: int) -> int:
        """The least upper bound of the rowtimes in a window that contains a row of the rowtime ``at``."""
        if below is EACH:
            return end - by - column(0)
        later, m = _point(below, column, at + 1)
        while m + by < end:
            at = later
            later, m = _point(below, column, at + 1)
        return at

    bound = f.bound_of(feed)
    groups: dict[int, list[f.Row]] = {}
    for row in in_stream_order(feed):
        for end in windows.ends(row.values["m"] + by):
            groups.setdefault(end, []).append(row)
    made = []
    for end, rows in groups.items():
        assert rows[0].at is not None
        at = stamp(end, rows[0].at)
        if at + (below is not EACH) <= bound:
            made.append((at, end, f.Row(at, {"m": end, "c": total(_column(rows, "c"))})))
    promised = bound
    if f.BEGINNING < bound < f.END:
        point, m = (bound, column(bound)) if below is EACH else _point(below, column, bound)
        promised = stamp(windows.ends(m + by)[0], point)
    return {"": [*(entry[2] for entry in sorted(made, key=lambda entry: entry[:2])), f.Bound(promised)]}


def _point(below: Rounding, column: Value, at: int) -> tuple[int, int]:
    """The first rowtime from ``at`` on that the groups below can have, and their column then."""
    instant = at - 1 if below.stamp(at - 1) >= at else at
    return below.stamp(instant), column(instant)


def _above(
    feed: f.Feed, below: Rounding, column: Value, level: Level, by: int, *, once: bool
) -> tuple[f.Feed, Rounding, Value]:
    def of_column(m: int) -> int:
        return level.value(m + by)

    of, upper = over_grid(below, column, of_column)
    if below is EACH:
        of = EACH if level.of is EACH else shifted(level.of, by + column(0))
        upper = _sum(column, by) if of is EACH else of.value
    feed = select(feed, lambda v: v["c"] > 0)
    return _grouped(feed, of, of_column, lambda v, _: of_column(v["m"]), once=once), of, upper


def _sum(column: Value, by: int) -> Value:
    return lambda at: column(at) + by


def _grouped(feed: f.Feed, of: Rounding, _: Value, key: Callable[[f.Values, int], int], *, once: bool) -> f.Feed:
    def row(keys: tuple[Any, ...], rows: Sequence[f.Row]) -> f.Values:
        counts = [1] * len(rows) if "c" not in rows[0].values else _column(rows, "c")
        return {"m": keys[0], "c": 1 if once else total(counts)}

    return group_by(feed, [of], lambda at, v: (key(v, at),), row)
