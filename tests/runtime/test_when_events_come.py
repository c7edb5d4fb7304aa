"""The time at which results of events go out: a window when the bound has reached its end, in every form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rowtime.core.time import to_micros
from rowtime.runtime.session import derive
from rowtime.testing.runner import play
from rowtime.testing.transcripts import ScriptItem, Transcript

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DECLARE = "CREATE STREAM s (at TIMESTAMP, k INT) EVENT SHAPE POINT (at); "
TUMBLE = "GROUP BY TUMBLE(INTERVAL '10' MICROSECOND)"
HOP = "GROUP BY HOP(INTERVAL '5' MICROSECOND, INTERVAL '10' MICROSECOND)"
POINT = "GROUP BY HOP(INTERVAL '5' MICROSECOND, INTERVAL '10' MICROSECOND, 'point at end')"
COUNTS = "SELECT STREAM COUNT(*) AS n FROM s "
ITEMS = [
    ScriptItem(1, "s", "x", {"at": 1, "k": 0}, None),
    ScriptItem(2, "s", "x", None, 9),
    ScriptItem(3, "s", "x", None, 10),
    ScriptItem(4, "s", "x", {"at": 12, "k": 0}, None),
    ScriptItem(5, "s", "x", None, 20),
]


def slow(*case: object) -> object:
    return pytest.param(*case, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (COUNTS + TUMBLE, [(3, 10), (5, 20)]),
        slow(COUNTS + HOP, [(2, 5), (3, 10), (5, 15), (5, 20)]),
        slow(COUNTS + TUMBLE + " EMIT EDGES", [(3, 0), (3, 10), (5, 10), (5, 20)]),
        slow(COUNTS + TUMBLE + " EMIT INTERVALS FULLY ORDERED", [(3, 0), (5, 10)]),
        slow(COUNTS + TUMBLE + " EMIT POINTS", [(3, 0), (5, 10)]),
        slow(COUNTS + HOP + " EMIT POINTS", [(2, -5), (3, 0), (5, 5), (5, 10)]),
        slow(COUNTS + POINT, [(2, 5), (3, 10), (5, 15), (5, 20)]),
        slow(f"CREATE VIEW w AS {COUNTS}{TUMBLE}; SELECT STREAM n + 1 AS m FROM w WHERE n > 0", [(3, 10), (5, 20)]),
        slow(f"CREATE VIEW w AS {COUNTS}{TUMBLE}; SELECT STREAM n FROM w UNION ALL SELECT STREAM n FROM w",
         [(3, 10), (3, 10), (5, 20), (5, 20)]),
        slow(f"CREATE VIEW w AS {COUNTS}{HOP}; SELECT STREAM SUM(n) AS m FROM w " + TUMBLE, [(2, 0), (5, 10)]),
    ],
)  # fmt: skip
def test_a_window_was_emitted_one_window_late(spark: SparkSession, sql: str, expected: list[tuple[int, int]]) -> None:
    found = play(
        derive(spark),
        Transcript("windows", "windows", DECLARE + sql, tuple(ITEMS), (), "exact", frozenset()),
        [2, 3, 5],
    )
    assert [(found.ends[tick], to_micros(row["rowtime"])) for tick, row in found.rows] == expected
    for tick, row in found.rows:
        assert tick == 0 or to_micros(row["rowtime"]) >= found.clocks[tick - 1]
