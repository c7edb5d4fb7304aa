"""Groups of events show the least of equal texts with a collation, by its bytes, whichever came first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

from rowtime.core.time import END
from rowtime.runtime.session import derive
from rowtime.testing.runner import play
from rowtime.testing.transcripts import ScriptItem, Transcript
from tests.laws.pipelines import ORIGIN, SECOND

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GROUPS = {
    "window": "SELECT STREAM k, COUNT(*) AS c FROM e GROUP BY TUMBLE(INTERVAL '10' SECOND), k EMIT INTERVALS (a, b)",
    "extremes": "SELECT STREAM MIN(k) AS k, COUNT(*) AS c FROM e GROUP BY TUMBLE(INTERVAL '10' SECOND) "
    "EMIT INTERVALS (a, b)",
    "counted": "SELECT STREAM k, COUNT(*) AS c FROM e GROUP BY SNAPSHOT(), k EMIT INTERVALS (a, b)",
    "sets": "SELECT STREAM k, MAX(v) AS c FROM e GROUP BY SNAPSHOT(), k EMIT INTERVALS (a, b)",
    "starts": "SELECT STREAM k, COUNT(*) AS c FROM e GROUP BY COUNT_WINDOW(2), k EMIT INTERVALS (a, b)",
}
CHANGES = "SELECT STREAM k, MAX(v) AS c FROM e GROUP BY SNAPSHOT(), k EMIT CHANGES"
Event = tuple[str, int, int, int]
EVENTS: list[Event] = [("b", 1, 0, 6), ("B", 2, 0, 6), ("a", 4, 1, 4), ("A", 8, 2, 5), ("b", 1, 6, 8), ("a", 1, 7, 9)]


def rows_of(spark: SparkSession, events: list[Event], query: str, cut: list[int]) -> list[Mapping[str, Any]]:
    """What a query gives."""
    sql = "CREATE STREAM s (k STRING, v INT, since TIMESTAMP, until TIMESTAMP) EVENT SHAPE INTERVAL (since, until);"
    sql += "CREATE VIEW e AS SELECT STREAM COLLATE(k, 'UTF8_LCASE') AS k, v FROM s;"
    made = [
        ScriptItem(n, "s", "x", {"k": k, "v": v, **{name: ORIGIN + at * SECOND for name, at in times}}, None)
        for n, (k, v, since, until) in enumerate(events, 1)
        for times in [(("since", since), ("until", until))]
    ]
    made.append(ScriptItem(len(made) + 1, "s", "x", None, END))
    given = Transcript("collated", "collated", sql + query, tuple(made), (), "exact", frozenset(), {"s": ["x"]}, {})
    return [row for _, row in play(spark, given, [*cut, len(made)]).rows]


def shown(spark: SparkSession, events: list[Event], cut: list[int]) -> dict[str, list[str]]:
    """The keys that each query shows."""
    sql = "".join(f"CREATE VIEW v_{name} AS {query};" for name, query in GROUPS.items())
    sql += " UNION ALL ".join(f"SELECT STREAM '{name}' AS q, k, c, a, b FROM v_{name}" for name in GROUPS)
    rows = rows_of(spark, events, sql, cut)
    return {name: [f"{row['k']}{row['c']}" for row in rows if row["q"] == name] for name in GROUPS}


@pytest.mark.slow
def test_groups_of_events_showed_any_of_equal_collated_texts(spark: SparkSession) -> None:
    session = derive(spark)
    once = shown(session, EVENTS, [])
    assert sorted(once["window"]) == ["A3", "B3"]
    assert once["extremes"] == ["A6"]
    assert sorted(once["counted"]) == ["A2", "B1", "B2", "a1", "a1", "a1"]  # of events that begin or end there
    assert sorted(once["sets"]) == ["A8", "A8", "B2", "a1", "a4", "b1"]
    other = [EVENTS[n] for n in (1, 0, 2, 3, 4, 5)]
    swapped = shown(session, other, [3, 5])
    assert {name: sorted(rows) for name, rows in swapped.items()} == {name: sorted(rows) for name, rows in once.items()}
    changes = rows_of(session, EVENTS, CHANGES, [])
    assert [row["k"] for row in changes if row["change"] == "insert"][:2] == ["b", "B"]
    assert rows_of(session, EVENTS, CHANGES, [1, 3]) == changes
