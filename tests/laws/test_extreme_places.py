"""Elements, parts of texts and digits at extreme places: one answer wherever a row is computed, and one refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from rowtime.core.time import END
from rowtime.frames.attempted import attempted
from rowtime.runtime.session import derive
from rowtime.sql.generate import to_spark
from rowtime.sql.script import parse_expression
from rowtime.testing.runner import play
from rowtime.testing.transcripts import ScriptItem, Transcript
from tests.laws.pipelines import ORIGIN, SECOND
from tests.laws.test_failing_laws import refused_of, rows_of
from tests.ways import in_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST: Final = 2**31 - 1
PLACES: Final = (0, 1, -1, 2, -2, 4, -4, MOST, -MOST, -MOST - 1, None)
LENGTHS: Final = (1, 0, 2, MOST, -1, None)
DECLARE: Final = (
    "CREATE STREAM a (id INT, n INT, m INT, l ARRAY<INT>, s STRING, h MAP<INT, STRING>, d DOUBLE, b BIGINT);"
)
CALLS: Final = {
    "slice": "SLICE(l, n, m)",
    "slice of a length": "SLICE(l, m, n)",
    "get": "GET(l, n)",
    "element": "l[n]",
    "element of a list without NULL": "ARRAY(1, 2, 3)[n]",
    "part of a text": "SPLIT(s, ',')[n]",
    "element_at": "ELEMENT_AT(l, n)",
    "element_at of a list without NULL": "ELEMENT_AT(SPLIT(s, ','), n)",
    "try_element_at": "TRY_ELEMENT_AT(l, n)",
    "value of a map": "h[n]",
    "element_at of a map": "ELEMENT_AT(h, n)",
    "substring": "SUBSTRING(s, n, m)",
    "split_part": "SPLIT_PART(s, ',', n)",
    "substring_index": "SUBSTRING_INDEX(s, ',', n)",
    "overlay": "OVERLAY(s PLACING 'Z' FROM n FOR m)",
    "locate": "LOCATE('b', s, n)",
    "elt": "ELT(n, 'a', 'b')",
    "digits behind the point": "ROUND(d, 2147483647)",
    "digits before the point": "ROUND(d, -2147483648)",
    "even digits": "BROUND(d, 2000000000) + BROUND(b, -2147483648)",
    "digits of a whole number": "ROUND(b, -2147483648)",
}
ALWAYS: Final = ("slice", "part of a text")
"""The cases of the default run."""
CASES: Final = [pytest.param(name, id=name, marks=[] if name in ALWAYS else [pytest.mark.slow]) for name in CALLS]


def items() -> list[ScriptItem]:
    pairs = [(place, length) for place in PLACES for length in LENGTHS]
    made = [ScriptItem(number, "a", "w", row_of(number, *pair), None) for number, pair in enumerate(pairs, 1)]
    return [*made, ScriptItem(len(made) + 1, "a", "w", None, END)]


def row_of(number: int, place: int | None, length: int | None) -> dict[str, Any]:
    at = ORIGIN + number * SECOND
    values = {"l": [7, None, 9][: number % 4], "s": "a,b,c"[: number % 6], "h": {place or 0: "x"}}
    return {"rowtime": at, "id": number, "n": place, "m": length, "d": 2.5, "b": 2**62, **values}


def answers(spark: SparkSession, name: str) -> set[tuple[str, str]]:
    """The rows with a value, and those that are refused, as texts, in several cuts."""
    made, found = items(), set[tuple[str, str]]()
    sql = f"{DECLARE} SELECT STREAM id, {CALLS[name]} AS x FROM a"
    case = Transcript("places", "places", sql, tuple(made), (), "exact", frozenset(), {"a": ["w"]}, {})
    for cut in ([], [20, 41]):
        outcome = play(derive(spark), case, [*cut, len(made)])
        values = [(row["id"], row["x"]) for row in rows_of(outcome)]
        found.add((repr(values), repr(refused_of(outcome))))
    return found


def of_spark(spark: SparkSession, name: str) -> str:
    """The values of Spark for the rows for which it has one."""
    session, given = derive(spark), [item.values for item in items() if item.values]
    columns = ("id", "n", "m", "l", "s", "h", "d", "b")
    kinds = "id INT, n INT, m INT, l ARRAY<INT>, s STRING, h MAP<INT, STRING>, d DOUBLE, b BIGINT"
    rows = session.createDataFrame([[row[column] for column in columns] for row in given], schema=kinds)
    text = to_spark(parse_expression(CALLS[name]))  # Spark reads foreign memory at some of these places
    tried = rows.select("id", attempted(session, [text]).alias("tried")).where("tried IS NOT NULL")
    found = tried.select("id", "tried.c0").orderBy("id").toArrow().to_pylist()
    return repr([(row["id"], row["c0"]) for row in found])


@pytest.fixture
def both_ways() -> None:
    """Replaces the choice of the laws: a test here goes both ways."""


@pytest.mark.parametrize("name", CASES)
@pytest.mark.usefixtures("both_ways")
def test_an_extreme_place_has_one_answer(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    found = answers(spark, name)
    in_tasks(monkeypatch, 2)
    found |= answers(spark, name)
    [(values, refused)] = found
    assert values == of_spark(spark, name)
    assert values.count("(") + refused.count("MALFORMED") == len(PLACES) * len(LENGTHS)
