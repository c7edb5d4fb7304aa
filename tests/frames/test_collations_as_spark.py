"""Groups, windows and orders by text with a collation, and by arrays and structs of it, are those of Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest

from rowtime.frames import collation_keys
from rowtime.frames.frame import Frame
from rowtime.frames.kinds import arrow_of, type_text
from rowtime.operators.rows.collations import grouped
from rowtime.runtime.session import derive
from tests.frames.in_spark import SparkRows, in_spark
from tests.frames.test_joins_as_spark import of_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

COLLATIONS: Final = ("UTF8_LCASE", "UNICODE_CI", "UNICODE_CI_AI", "de_CI", "UTF8_BINARY_RTRIM", "UNICODE")
TEXTS: Final = ["b", "B", "a", None, "", "é", "É", "e", "a ", "Z", "z", "ß", "SS", "A", "_", "b", "\u0131", "I", "i"]


def shapes(collation: str) -> dict[str, str]:
    """Types of columns, by the letter that begins the column's name."""
    text = f"string collate {collation}"
    return {"c": text, "l": f"ARRAY<{text}>", "s": f"STRUCT<`x`: {text}, `y`: int>", "d": f"ARRAY<STRUCT<`x`: {text}>>"}


def frame(session: SparkSession, collation: str) -> Frame:
    """Texts, arrays and structs of them, and numbers that are unique."""
    count = len(TEXTS)
    lists = [None if n == 5 else [] if n == 6 else [TEXTS[n], TEXTS[(3 * n) % count]] for n in range(count)]
    structs = [None if n == 7 else {"x": text, "y": n % 2 or None} for n, text in enumerate(TEXTS)]
    deep = [None if n == 8 else [None if n == 9 else {"x": text}] for n, text in enumerate(TEXTS)]
    columns = {"c": TEXTS, "l": lists, "s": structs, "d": deep}
    kinds = {**shapes(collation), "n": "int"}
    columns["n"] = [*range(count)]
    table = pa.table({name: pa.array(columns[name], arrow_of(kind)) for name, kind in kinds.items()})
    found = Frame.of(session, table, [*kinds.items()])
    assert found is not None
    return found


def rows_of(rows: Any) -> list[str]:
    return [repr(row) for row in rows.toArrow().to_pylist()]


def groups_of(session: SparkSession, collation: str, keys: Sequence[str]) -> tuple[list[str], list[str]]:
    """The numbers of the rows of each group, here and in Spark: the text that names a group may be any of its texts."""
    made, aggregates = frame(session, collation), ["sort_array(collect_list(n)) AS rows", "sum(n) AS total"]
    here = grouped(made, keys, aggregates)
    there = SparkRows(in_spark(made)).grouped(keys, aggregates)
    assert here.columns == there.columns
    assert [type_text(of.dataType) for of in here.schema] == [type_text(of.dataType) for of in there.schema]
    return sorted(rows_of(here.select("rows", "total"))), sorted(rows_of(there.select("rows", "total")))


@pytest.mark.parametrize("collation", COLLATIONS)
def test_groups_are_those_of_spark(spark: SparkSession, collation: str) -> None:
    session = derive(spark)
    for keys in (["c"], ["l"], ["s"], ["d"], ["c", "s"]):
        here, there = groups_of(session, collation, keys)
        assert here == there, keys


@pytest.mark.parametrize("collation", COLLATIONS)
def test_distinct_rows_are_as_many_as_in_spark(spark: SparkSession, collation: str) -> None:
    made = frame(derive(spark), collation)
    for name in "clsd":
        found, expected = made.select(name).distinct(), in_spark(made).select(name).distinct()
        assert found.count() == expected.count(), name
        assert {*rows_of(found)} <= {*rows_of(made.select(name))}, "each is the value of a row"


WINDOWS: Final = (
    "row_number() OVER (PARTITION BY {0} ORDER BY n)", "count(*) OVER (PARTITION BY {0})",
    "dense_rank() OVER (ORDER BY {0})", "dense_rank() OVER (ORDER BY {0} DESC NULLS FIRST)",
    "lag(n) OVER (PARTITION BY {0} ORDER BY n DESC)", "row_number() OVER (ORDER BY {0} NULLS LAST, n)",
    "sum(n) OVER (PARTITION BY {0} ORDER BY n ROWS UNBOUNDED PRECEDING)",
)  # fmt: skip


@pytest.mark.parametrize("collation", COLLATIONS)
def test_windows_are_those_of_spark(spark: SparkSession, collation: str) -> None:
    made = frame(derive(spark), collation)
    for name in "clsd":
        for text in WINDOWS:
            items = ("n", f"{text.format(name)} AS x", name)
            here, there = made.selectExpr(*items), in_spark(made).selectExpr(*items)
            assert sorted(rows_of(here)) == sorted(rows_of(there)), (name, text)


@pytest.mark.parametrize("collation", COLLATIONS)
def test_the_order_is_that_of_spark(spark: SparkSession, collation: str) -> None:
    made = frame(derive(spark), collation)
    for name in "clsd":
        for way in ("", " DESC", " NULLS LAST", " DESC NULLS FIRST"):
            terms = [f"{name}{way}", "n DESC"]
            assert rows_of(made.in_order(terms)) == rows_of(SparkRows(in_spark(made)).in_order(terms)), terms


def test_a_planted_fault_is_found(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys are the bytes of the texts."""
    monkeypatch.setattr(collation_keys, "_key", of_bytes)
    session = derive(spark)
    here, there = groups_of(session, "UTF8_LCASE", ["c"])
    assert here != there
    made = frame(session, "UTF8_LCASE")
    items = ("n", "count(*) OVER (PARTITION BY c) AS x")
    assert sorted(rows_of(made.selectExpr(*items))) != sorted(rows_of(in_spark(made).selectExpr(*items)))
    assert rows_of(made.in_order(["c", "n"])) != rows_of(SparkRows(in_spark(made)).in_order(["c", "n"]))
