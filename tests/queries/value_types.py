"""Values of every type, and queries over a column of any of them, each with an equal batch query of Spark.

View ``a`` over stream ``input`` has a number ``n`` that counts its rows, a small number ``g``, its rowtime again as
``at``, and a column of each type, whose name needs quotes. Times lie before 1582, numbers are NaN, infinite or zeros of
both signs.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any, Final

Texts = tuple[str, str]
UTC: Final = dt.UTC
BEGIN: Final = dt.datetime(2024, 1, 1, 10, tzinfo=UTC)
INFINITY: Final = "CAST('Infinity' AS DOUBLE)"  # only NaN is greater
LARGE: Final = Decimal("9" * 28 + "." + "9" * 10)


@dataclass(frozen=True)
class Type:
    """A type by its text, the name of its column, its values, and the operations that it supports.

    ``key``: values can be keys; ``least``: they have an order for MIN and MAX, also in windows. ``made``: the
    expression that computes them from the column, which streams store as another type. ``middle``: a constant between
    values. ``listed``: COLLECT_LIST accepts them.
    """

    text: str
    name: str
    values: tuple[Any, ...]
    key: bool = True
    least: bool = True
    made: str = ""
    kept: str = ""
    middle: str = ""
    listed: bool = True

    @property
    def column(self) -> str:
        """The name in quotes."""
        return "`" + self.name.replace("`", "``") + "`"


TYPES: Final[Mapping[str, Type]] = {
    "binary": Type("BINARY", "b c", (b"", b"\0", b"\0\0", b"\xff", None)),
    "map": Type(
        "MAP<STRING, DOUBLE>", "m.k", ({}, {"a": 1.0}, {"a": math.nan, "b": None}, None),
        key=False, least=False, listed=False,
    ),
    "struct": Type(
        "STRUCT<x: DOUBLE, `y z`: ARRAY<STRUCT<n: INT>>>", "se`lect",
        ({"x": 0.0, "y z": []}, {"x": -0.0, "y z": []}, {"x": math.nan, "y z": [{"n": 1}, None]},
         {"x": None, "y z": None}, None),
        least=False,
    ),
    "array": Type(
        "ARRAY<ARRAY<STRING>>", "from", ([], [[]], [["a", None]], [["a"], [None]], [None], None), least=False
    ),
    "decimal": Type(
        "DECIMAL(38, 10)", "ünï", (LARGE, LARGE.copy_negate(), Decimal(0), Decimal("1e-10"), None), middle="0"
    ),
    "char": Type("CHAR(3)", "9c", ("abc", "ABC", "äöü", None)),
    "varchar": Type("VARCHAR(5)", "v-c", ("", "a", "a ", "ä", None), middle="'a'"),
    "span": Type(
        "INTERVAL DAY TO SECOND", "in", (0, -86_395_000_000, 777_600_000_001, None),
        made="`in` * INTERVAL '0.000001' SECOND", kept="BIGINT",
    ),
    "local": Type(
        "TIMESTAMP_NTZ", "lo cal",
        (dt.datetime(1, 1, 1), dt.datetime(1582, 10, 10), dt.datetime(2024, 3, 31, 2, 30), None),  # noqa: DTZ001
    ),
    "time": Type(
        "TIMESTAMP", "ti/me",
        (dt.datetime(1, 1, 1, tzinfo=UTC), dt.datetime(1582, 10, 10, tzinfo=UTC),
         dt.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), None),
        middle="TIMESTAMP '1582-10-05 00:00:00'",
    ),
    "date": Type(
        "DATE", "da.te", (dt.date(1, 1, 1), dt.date(1582, 10, 4), dt.date(1900, 1, 1), None),
        middle="DATE '1582-10-10'",
    ),
    "double": Type("DOUBLE", "d", (math.nan, 0.0, -0.0, math.inf, -math.inf, 5e-324, None), middle=INFINITY),
    "float": Type("FLOAT", "f", (math.nan, 0.0, -0.0, math.inf, -1.5, None), middle=INFINITY),
    "tiny": Type("TINYINT", "ti", (-128, 127, 0, None), middle="0"),
    "flag": Type("BOOLEAN", "fl", (True, False, None)),
}  # fmt: skip

COLUMNS: Final = ", ".join(
    ["n INT", "g INT", "at TIMESTAMP", *(f"{t.column} {t.kept or t.text}" for t in TYPES.values())]
)
MADE: Final = ", ".join(["n", "g", "at", *(f"{t.made or t.column} AS {t.column}" for t in TYPES.values())])
MINUTE: Final = "date_trunc('MINUTE', a.ROWTIME)"


def rows_of(chance: Random, count: int) -> list[dict[str, Any]]:
    """Rows some seconds apart; each value of each type comes soon."""
    at, rows = BEGIN, []
    for n in range(count):
        at += dt.timedelta(seconds=chance.choice((1, 7, 19)), microseconds=chance.randint(0, 999))
        values = {kind.name: kind.values[chance.randrange(len(kind.values))] for kind in TYPES.values()}
        rows.append({"rowtime": at, "n": n, "g": n % 2, "at": at, **values})
    return rows


def passed(c: str) -> Texts:
    text = f"SELECT STREAM n, {c} FROM a WHERE {c} IS NOT NULL OR n > 5"
    return text, text


def logged(c: str) -> Texts:
    """Through the log of another stream, which stores the columns of the input."""
    return f"SELECT STREAM n, {c} FROM copy", f"SELECT n, {c} FROM input"


def filtered(c: str) -> Texts:
    """By file statistics of their columns."""
    middle = next(kind.middle for kind in TYPES.values() if kind.column == c)
    text = f"SELECT STREAM n, {c} FROM a WHERE {c} > {middle}"
    return text, text


def united(c: str) -> Texts:
    text = f"SELECT STREAM {c}, n FROM a WHERE g = 0 UNION ALL SELECT STREAM {c}, n FROM a WHERE n < 9"
    return text, text


def sorted_rows(c: str) -> Texts:
    batch = f"SELECT n, {c} FROM a"
    return f"SELECT STREAM at AS ROWTIME, n, {c} FROM a ORDER BY at WITHIN INTERVAL '1' MINUTE", batch


def picked(c: str) -> Texts:
    first, last = f"FIRST({c})", f"LAST({c}) IGNORE NULLS"
    text = f"SELECT STREAM {MINUTE} AS m, MAX_BY({c}, n) AS x, {{}} AS y, {{}} AS z FROM a GROUP BY {MINUTE}"
    present = f"MAX_BY({c}, n) FILTER (WHERE {c} IS NOT NULL)"
    return text.format(first, last), text.format(f"MIN_BY({c}, n)", present)


def gathered(c: str) -> Texts:
    text = f"SELECT STREAM {MINUTE} AS m, g, {{}} AS x FROM a GROUP BY {MINUTE}, g"
    ordered = f"TRANSFORM(ARRAY_SORT(COLLECT_LIST(STRUCT(n, {c})) FILTER (WHERE {c} IS NOT NULL)), e -> e.{c})"
    return text.format(f"COLLECT_LIST({c})"), text.format(ordered)


def in_sessions(c: str) -> Texts:
    """Rows and partial results that are stored while a session lasts."""
    text = "SELECT {} AS s, MAX_BY({}, n) AS x, {} AS y FROM a GROUP BY {}"
    window, gap = "SESSION_START(a.ROWTIME, {0})", "INTERVAL '15' SECOND"
    ordered = f"TRANSFORM(ARRAY_SORT(COLLECT_LIST(STRUCT(n, {c})) FILTER (WHERE {c} IS NOT NULL)), e -> e.{c})"
    streaming = text.format(window.format(gap), c, f"COLLECT_LIST({c})", f"SESSION(a.ROWTIME, {gap})")
    batch = text.format("session_window.start", c, ordered, "session_window(ROWTIME, '15 seconds')")
    return streaming.replace("SELECT", "SELECT STREAM", 1), batch


def before(c: str) -> Texts:
    frame = "OVER (PARTITION BY g ORDER BY ROWTIME ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)"
    lag = f"LAG({c}, 3) OVER (ORDER BY ROWTIME)"
    text = f"SELECT STREAM n, {lag} AS x, FIRST_VALUE({c}) {frame} AS y, COUNT({c}) {frame} AS z FROM a"
    return text, text


def grouped(c: str) -> Texts:
    text = f"SELECT STREAM {MINUTE} AS m, {c}, COUNT(*) AS x, SUM(n) AS y FROM a GROUP BY {MINUTE}, {c}"
    return text, text


def distinct(c: str) -> Texts:
    text = f"SELECT STREAM DISTINCT {MINUTE} AS m, {c} FROM a"
    return text, text


def counted(c: str) -> Texts:
    text = f"SELECT STREAM {MINUTE} AS m, COUNT(DISTINCT {c}) AS x FROM a GROUP BY {MINUTE}"
    return text, text


def partitioned(c: str) -> Texts:
    frames = ("ROWS UNBOUNDED PRECEDING", "RANGE BETWEEN INTERVAL '30' SECOND PRECEDING AND CURRENT ROW")
    calls = [f"SUM(n) OVER (PARTITION BY {c} ORDER BY ROWTIME {frame}) AS x{i}" for i, frame in enumerate(frames)]
    text = f"SELECT STREAM n, {', '.join(calls)} FROM a"
    return text, text


def joined(c: str) -> Texts:
    near = "r.ROWTIME BETWEEN l.ROWTIME AND l.ROWTIME + INTERVAL '20' SECOND"
    text = f"SELECT STREAM l.n, r.n AS m, r.{c} FROM a AS l LEFT JOIN a AS r ON l.{c} = r.{c} AND l.n < r.n AND {near}"
    return text, text


def extremes(c: str) -> Texts:
    text = f"SELECT STREAM {MINUTE} AS m, MIN({c}) AS x, MAX({c}) AS y FROM a GROUP BY {MINUTE}"
    return text, text


def extremes_before(c: str) -> Texts:
    frames = ("ROWS UNBOUNDED PRECEDING", "ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING")
    calls = [f"{name}({c}) OVER (ORDER BY ROWTIME {frame})" for frame in frames for name in ("MIN", "MAX")]
    text = f"SELECT STREAM n, {', '.join(f'{call} AS x{i}' for i, call in enumerate(calls))} FROM a"
    return text, text


ANY: Final[tuple[Callable[[str], Texts], ...]] = (
    passed, logged, united, sorted_rows, picked, before,
)  # fmt: skip
LISTS: Final[tuple[Callable[[str], Texts], ...]] = (gathered, in_sessions)
KEYS: Final[tuple[Callable[[str], Texts], ...]] = (grouped, distinct, counted, partitioned, joined)
ORDERED: Final[tuple[Callable[[str], Texts], ...]] = (extremes, extremes_before)


def kinds_of(kind: Type) -> tuple[Callable[[str], Texts], ...]:
    """The possible queries over a column of a type."""
    beyond = (filtered,) if kind.middle else ()
    lists = LISTS if kind.listed else ()
    return (*ANY, *lists, *(KEYS if kind.key else ()), *(ORDERED if kind.least else ()), *beyond)
