"""A part of a struct, list or map fails if another part of it does, whatever else its tick has.

An optimizer takes the part without computing the others; the row would be refused only beside another row that fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rowtime.core.time import END
from rowtime.runtime.session import derive
from rowtime.testing.runner import play
from rowtime.testing.transcripts import ScriptItem, Transcript
from tests.laws.pipelines import ORIGIN, SECOND
from tests.laws.test_failing_laws import refused_of, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DECLARE = "CREATE STREAM a (n INT, v INT, t STRING, l ARRAY<INT>);"
VIEW = (
    "CREATE VIEW x AS SELECT STREAM NAMED_STRUCT('a', 10 DIV n, 'b', v) AS s, ARRAY(10 DIV n, v) AS r, "
    "CAST(t AS INT) AS q FROM a;"
)
NUMBER = "SUM(CAST(t AS INT)) AS d"


def of(items: str, key: str = "", source: str = "a") -> str:
    """A query of groups."""
    before = VIEW if source == "x" else ""
    return f"{before} SELECT STREAM {items} FROM {source} GROUP BY FLOOR({source}.ROWTIME TO MINUTE){key}"


SCRIPTS = {  # with the number of rows that are refused
    "field of a view as key": (of("s.b AS k, COUNT(q) AS c", ", s.b", "x"), 2),
    "fields of a view as arguments": (of("MAX(s.b) AS m, SUM(r[1]) AS r, COUNT(s.b) AS n, COUNT(q) AS c", "", "x"), 2),
    "field in FILTER": (of("COUNT(*) FILTER (WHERE s.b > 1) AS n, COUNT(q) AS c", "", "x"), 2),
    "field of a struct": (of(f"MAX(NAMED_STRUCT('a', 10 DIV n, 'b', v).b) AS c, {NUMBER}"), 2),
    "element of a list": (of(f"MAX(ARRAY(10 DIV n, v)[1]) AS c, {NUMBER}"), 2),
    "value of a map": (of(f"MAX(MAP('a', 10 DIV n, 'b', v)['b']) AS c, {NUMBER}"), 2),
    "type of what fails": (of(f"MAX(TYPEOF(10 DIV n)) AS c, {NUMBER}"), 1),
    "functions over lists": (
        of(f"SUM(SIZE(FILTER(l, y -> y > 0))) AS f, COUNT_IF(EXISTS(l, y -> 10 DIV y > 0)) AS e, {NUMBER}"), 2
    ),
}  # fmt: skip
OFTEN = ("field of a view as key", "functions over lists")
ROWS = [(0, 0, 2, "1", [1]), (7, 1, 1, "1", [1, 2]), (14, 2, 1, "z", []), (80, 1, 3, "4", [0])]


def played(spark: SparkSession, sql: str) -> list[tuple[Any, ...]]:
    """Rows and refusals with all items in one tick, in two, and in one each."""
    items = [
        ScriptItem(n, "a", "w", {"rowtime": ORIGIN + at * SECOND, **dict(zip("nvtl", of, strict=True))}, None)
        for n, (at, *of) in enumerate(ROWS, 1)
    ]
    items.append(ScriptItem(len(items) + 1, "a", "w", None, END))
    case = Transcript("parts", "parts", DECLARE + sql, tuple(items), (), "exact", frozenset(), {"a": ["w"]}, {})
    end, session = len(items), derive(spark)
    outcomes = [play(session, case, cut) for cut in ([end], [2, end], [*range(1, end + 1)])]
    return [(rows_of(of), refused_of(of)) for of in outcomes]


@pytest.mark.parametrize(
    "name", [pytest.param(name, id=name, marks=[] if name in OFTEN else [pytest.mark.slow]) for name in SCRIPTS]
)
@pytest.mark.usefixtures("both_ways")
def test_a_row_fails_in_any_cut_or_none(spark: SparkSession, name: str) -> None:
    sql, many = SCRIPTS[name]
    whole, *others = played(spark, sql)
    assert len(whole[1]) == many, whole[1]
    assert whole[0]
    for other in others:
        assert other == whole
