"""IN, EXISTS and their opposites compute the condition for every pair, also if another pair is a match already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from rowtime.core.time import END
from rowtime.runtime.session import derive
from rowtime.testing.runner import play
from rowtime.testing.transcripts import ScriptItem, Transcript
from tests.laws.pipelines import ORIGIN, SECOND
from tests.laws.test_failing_laws import refused_of, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.runtime.executors.tasks import Tasks

DECLARE: Final = "CREATE STREAM a (id INT, n INT); CREATE STREAM b (id INT, n INT); CREATE TABLE t (id INT, n INT);"
NEAR: Final = "b.ROWTIME BETWEEN a.ROWTIME - INTERVAL '2' SECOND AND a.ROWTIME + INTERVAL '2' SECOND"
QUERIES: Final = {
    "not in": f"WHERE 10 DIV n NOT IN (SELECT STREAM 10 DIV n FROM b WHERE {NEAR})",
    "in": f"WHERE 10 DIV n IN (SELECT STREAM 10 DIV n FROM b WHERE {NEAR})",
    "exists": f"WHERE EXISTS (SELECT STREAM 1 FROM b WHERE 10 DIV b.n >= a.n AND {NEAR})",
    "not exists": f"WHERE NOT EXISTS (SELECT STREAM 1 FROM b WHERE 10 DIV b.n >= a.n AND {NEAR})",
    "not in a table": "WHERE 10 DIV n NOT IN (SELECT n FROM t WHERE n IS NOT NULL)",
    "exists in a table": "WHERE EXISTS (SELECT 1 FROM t WHERE 10 DIV t.n >= a.n)",
    "not exists in a table": "WHERE NOT EXISTS (SELECT 1 FROM t WHERE 10 DIV t.n >= a.n)",
}
ALWAYS: Final = ("not in", "exists in a table")
"""The cases of the default run."""
CASES: Final = [pytest.param(name, id=name, marks=[] if name in ALWAYS else [pytest.mark.slow]) for name in QUERIES]
ROWS: Final = (
    ("a", 1), ("b", None), ("b", 0), ("b", 1), ("a", 2), ("b", 5), ("a", 0), ("b", 0), ("a", 1), ("a", None), ("b", 2),
    ("b", 1), ("b", 0),
)  # fmt: skip
TABLE: Final = [{"id": 1, "n": None}, {"id": 2, "n": 1}, {"id": 3, "n": 0}, {"id": 4, "n": 5}]
CUTS: Final = ([], [4], [3, 6, 9])


def played(spark: SparkSession, name: str) -> list[tuple[list[Any], list[str]]]:
    made = [
        ScriptItem(n, stream, "w", {"rowtime": ORIGIN + n * SECOND // 2, "id": n, "n": value}, None)
        for n, (stream, value) in enumerate(ROWS, 1)
    ]
    made += [ScriptItem(len(made) + n, stream, "w", None, END) for n, stream in enumerate("ab", 1)]
    sql, writers = f"{DECLARE} SELECT STREAM id FROM a {QUERIES[name]}", {"a": ["w"], "b": ["w"]}
    case = Transcript("semi", "semi", sql, tuple(made), (), "exact", frozenset(), writers, {"t": TABLE})
    runs = [play(derive(spark), case, [*cut, len(made)]) for cut in CUTS]
    return [(rows_of(run), refused_of(run)) for run in runs]


def check(spark: SparkSession, name: str) -> None:
    whole, *others = played(spark, name)
    assert whole[1], "nothing has failed"
    for cut, other in zip(CUTS[1:], others, strict=True):
        assert other == whole, cut


@pytest.mark.parametrize("name", CASES)
@pytest.mark.usefixtures("both_ways")
def test_every_pair_is_computed(spark: SparkSession, name: str) -> None:
    check(spark, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", QUERIES)
def test_every_pair_is_computed_by_tasks(spark: SparkSession, sent: list[Tasks], name: str) -> None:
    check(spark, name)
    assert sent
