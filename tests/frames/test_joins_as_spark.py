"""Joins by any condition have the rows of Spark's own joins, whatever computes the parts of the condition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812 - Spark's name
from pyspark.sql.types import ArrayType, StringType

from rowtime.frames import collation_keys
from rowtime.frames.frame import Frame
from rowtime.frames.kinds import arrow_of
from rowtime.frames.words import Untranslated
from rowtime.runtime.session import derive
from tests.frames.in_spark import SparkRows, in_spark

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession
    from pyspark.sql.types import DataType

COLLATED: Final = "string collate UTF8_LCASE"
OTHER: Final = "string collate UNICODE_CI"
HOW: Final = ("inner", "left", "left_semi", "left_anti")
WORDS: Final = ["Robert", "rupert", "RUBIN", None, "", "ashcraft", "Ashcroft", "rubin", "é", "É"]
LISTS: Final = [["a", "B"], ["A", "b"], [], None, [None], ["a"], ["x", None], ["X", None], ["b"], ["é"]]
KINDS: Final = {
    "i": "int", "s": "string", "c": COLLATED, "o": OTHER, "l": "array<string>", "k": f"array<{COLLATED}>",
    "t": "STRUCT<`x`: int, `y`: string>", "u": f"STRUCT<`x`: int, `y`: {COLLATED}>", "d": "double",
}  # fmt: skip
CONDITIONS: Final = {
    "equal texts": "s1 = s2",
    "a function of each side": "soundex(s1) = soundex(s2)",
    "a function of one side": "hex(s1) = hex(lower(s2)) AND i1 < i2",
    "a null-safe function": "soundex(s1) <=> soundex(s2)",
    "an order of functions": "soundex(s1) < soundex(s2) AND i1 = i2",
    "one collation": "c1 = c2",
    "one collation, null-safe": "c1 <=> c2",
    "another collation": "o1 = o2 AND i1 <> i2",
    "a collation in an order": "c1 < c2 AND i2 < 4",
    "a declared collation, and another": "c1 COLLATE UNICODE_CI = c2",
    "a collation, and a declared one": "o1 = c2 COLLATE UTF8_LCASE",
    "declared to be plain": "s1 COLLATE UTF8_BINARY = c2 AND i1 <> i2",
    "arrays of declared collations": "array(s1 COLLATE UTF8_LCASE) = array(s2 COLLATE UTF8_LCASE)",
    "a declared collation": "s1 COLLATE UTF8_LCASE = s2",
    "a function over a collation": "upper(c1) = upper(c2)",
    "arrays": "l1 = l2",
    "arrays, null-safe": "l1 <=> l2",
    "arrays of a collation": "k1 = k2",
    "structs": "t1 = t2",
    "structs, null-safe": "t1 <=> t2",
    "structs of a collation": "u1 = u2",
    "both sides in a function": "levenshtein(s1, s2) < 3",
    "an equality and both sides": "i1 % 3 = i2 % 3 AND levenshtein(s1, s2) < 5",
    "a function and both sides": "soundex(s1) = soundex(s2) AND levenshtein(s1, s2) > 0 AND i1 < 8",
    "a collation and both sides": "c1 = c2 AND concat(s1, s2) RLIKE '^[rR]'",
    "one of two": "soundex(s1) = soundex(s2) OR i1 = i2 + 1",
    "in brackets": "(s1 = s2 AND (hex(s1) = hex(s2)))",
    "not": "NOT (c1 = c2) AND i1 < 3",
    "of one side alone": "soundex(s1) = 'R163' AND i2 = 1",
    "doubles": "d1 = d2 AND soundex(s1) <=> soundex(s1)",
    "true": "true",
    "a collation among": "c1 IN (c2, 'RUBIN')",
    "like": "s1 ILIKE concat(s2, '%') AND i2 > 0",
}  # fmt: skip
SIDES: Final = {"rows": (10, 10), "no left": (0, 10), "no right": (10, 0), "none": (0, 0)}


def side(session: SparkSession, number: int, count: int) -> Frame:
    """Rows whose columns end with the number of their side; those of the second are in the reverse order."""
    values: dict[str, list[Any]] = {
        "i": [*range(9), None], "s": WORDS, "c": WORDS, "o": WORDS, "l": LISTS, "k": LISTS,
        "t": [None if n == 3 else {"x": n % 3 or None, "y": word} for n, word in enumerate(WORDS)],
        "u": [None if n == 3 else {"x": n % 2 or None, "y": word} for n, word in enumerate(WORDS)],
        "d": [0.0, -0.0, float("nan"), None, 1.5, float("inf"), 0.0, 2.0, float("nan"), -1.0],
    }  # fmt: skip
    step = 1 if number == 1 else -1
    table = pa.table({f"{n}{number}": pa.array(values[n][::step][:count], arrow_of(kind)) for n, kind in KINDS.items()})
    found = Frame.of(session, table, [(f"{name}{number}", kind) for name, kind in KINDS.items()])
    assert found is not None
    return found


def listed(rows: Any) -> list[str]:
    found = rows.toArrow().to_pylist()
    return sorted(repr(row) for row in found)


def differences(session: SparkSession, condition: str, how: str, counts: tuple[int, int]) -> tuple[Any, Any]:
    """Rows of one of both joins only."""
    left, right = (side(session, n, count) for n, count in enumerate(counts, 1))
    here = left.joined(right, condition, how)
    there = SparkRows(in_spark(left)).joined(SparkRows(in_spark(right)), condition, how)
    assert here.columns == there.columns
    assert [of.dataType for of in here.schema] == [of.dataType for of in there.schema]
    one, other = listed(here), listed(there)
    return [row for row in one if one.count(row) > other.count(row)], [
        row for row in other if other.count(row) > one.count(row)
    ]


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_join_has_the_rows_of_spark(spark: SparkSession, name: str) -> None:
    session = derive(spark)
    for how in HOW:
        assert differences(session, CONDITIONS[name], how, SIDES["rows"]) == ([], []), how


@pytest.mark.parametrize("sides", [name for name in SIDES if name != "rows"])
def test_a_join_without_rows_of_a_side_has_those_of_spark(spark: SparkSession, sides: str) -> None:
    session = derive(spark)
    for name in ("a function of each side", "one collation", "arrays of a collation", "an equality and both sides"):
        for how in HOW:
            assert differences(session, CONDITIONS[name], how, SIDES[sides]) == ([], []), (name, how)


@pytest.mark.parametrize("condition", ["c1 = s2", "s1 < upper(c2)", "c1 = o2", "k1 = l2", "c1 <=> s2 AND i1 = i2"])
def test_texts_whose_collation_is_not_clear_are_not_compared(spark: SparkSession, condition: str) -> None:
    """As in Spark."""
    session = derive(spark)
    left, right = side(session, 1, 3), side(session, 2, 3)
    with pytest.raises(AnalysisException, match="COLLATION"):
        SparkRows(in_spark(left)).joined(SparkRows(in_spark(right)), condition, "inner")
    with pytest.raises(Untranslated):
        left.joined(right, condition, "inner")


def test_a_planted_fault_is_found(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts with a collation are compared by their bytes."""
    monkeypatch.setattr(collation_keys, "_key", of_bytes)
    session = derive(spark)
    for name in ("one collation", "a declared collation", "arrays of a collation"):
        assert differences(session, CONDITIONS[name], "inner", SIDES["rows"]) != ([], []), name


def of_bytes(_spark: SparkSession, value: Column, kind: DataType) -> Column:
    """The keys of another, wrong rule: the bytes of each text."""
    if isinstance(kind, ArrayType):
        return F.transform(value, lambda part: of_bytes(_spark, part, kind.elementType))
    return F.encode(value.cast("string"), "utf-8") if isinstance(kind, StringType) else value
