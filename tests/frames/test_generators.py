"""Functions that make several rows of one give the rows of Spark, in its order, and Spark makes none of them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions

from rowtime.frames.attempts import tried
from rowtime.frames.frame import Frame
from rowtime.frames.generators import generator_of
from rowtime.frames.kinds import arrow_of
from rowtime.frames.typed import type_of
from rowtime.frames.words import Untranslated
from rowtime.runtime.session import derive

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AT = dt.datetime(2024, 2, 29, 23, 59, 59, 999_999, tzinfo=dt.UTC)
VALUES: dict[str, list[Any]] = {
    "INT": [1, -(2**31), 2**31 - 1],
    "BIGINT": [2**63 - 1, 0],
    "DOUBLE": [0.0, -0.0, float("nan"), float("-inf")],
    "STRING": ["", "é'`", "a\nb"],
    "BOOLEAN": [True, False],
    "DECIMAL(38,6)": [Decimal("-99999999999999999999999999999999.999999"), Decimal("0.000001")],
    "TIMESTAMP": [AT, dt.datetime(1, 1, 1, tzinfo=dt.UTC), dt.datetime(9999, 12, 31, tzinfo=dt.UTC)],
    "DATE": [dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    "BINARY": [b"", b"\x00\xff"],
    "STRUCT<`B c`: INT, `d`: STRING>": [{"B c": 1, "d": None}, {"B c": None, "d": "x"}],
    "ARRAY<INT>": [[], [1, None], [None]],
    "ARRAY<STRUCT<`E`: DECIMAL(3,1)>>": [[{"E": Decimal("1.5")}, None], []],
    "MAP<STRING, INT>": [[("a", 1), ("b", None)], []],
    "MAP<INT, STRUCT<`F`: BINARY>>": [[(1, {"F": b"x"}), (2, None)]],
}
TEXTS = (
    "explode(a) AS x",
    "explode_outer(a) AS x",
    "EXPLODE(transform(a, (e, i) -> struct(i AS pos, e AS col))) AS `x y`",
    "explode_outer(transform(a, (e, i) -> struct(e AS col, nullif(i + 1, 0) AS ord))) AS x",
    "inline(transform(a, e -> struct(e AS f))) AS x",
    "inline_outer(transform(a, (e, i) -> IF(i = 1, NULL, struct(e AS f)))) AS x",
    "explode(array(a, NULL, slice(a, 1, 1))) AS x",
    "explode(map_entries(m)) AS x",
    "explode_outer(map_entries(m)) AS x",
    "explode(transform(map_entries(m), (e, i) -> struct(i AS pos, e.key AS key, e.value AS value))) AS x",
    "explode(transform(a, (`i`, E) -> struct(e + 1 AS e, i AS i))) AS x",
    "explode(transform(a, (e, i) -> struct(e AS col, n + i AS i))) AS x",
    "explode(transform(array(a, NULL), (e, i) -> struct(transform(e, (e, i) -> struct(i AS i)) AS x, i AS i))) AS x",
    "explode(reverse(a)) AS x",
    "stack(2, a, a) AS x",
    "stack(1 + 2, a, slice(a, 2, 1)) AS x",
    "explode(array_repeat(a, 2)) AS x",
)
LISTS = (
    ("explode(a) AS x", "n", "explode_outer(a) AS y"),
    ("explode(sequence(1, n)) AS x", "explode(sequence(n, 0)) AS y"),
    ("*", "explode(sequence(n, 2)) AS x"),
    ("*", "explode_outer(sequence(n, n + 3, 2)) AS x", "n + 1 AS n1"),
    ("explode(sequence(n, n - 2, CAST(-1 AS INT))) AS x",),
    ("explode(sequence(n, n * 4, n)) AS x", "hex(s) AS h"),
    ("explode(sequence(CAST(NULL AS INT), n)) AS x",),
    ("explode(split('a,b', ',')) AS x", "s"),
    ("explode(split(s, '')) AS x", "initcap(s) AS i", "n"),
    ("explode(array(n, n + 1, NULL)) AS x",),
    ("explode(array(n, 1.5)) AS x",),
    ("explode(array(n, 9L)) AS x", "initcap('ab c') AS i"),
    ("explode(array(s, ') AS y', '\\'(')) AS x",),
    ("stack(2, n, n + 1) AS x", "s"),
    ("stack(3, s, ',') AS x",),
    ("stack(1, sequence(1, n)) AS x",),
    ("json_tuple(s, 'a') AS x", "n"),
    ("json_tuple(concat('{\"a\": ', n, ', \"a\": ', n + 1, '}'), 'a') AS x",),
    ("json_tuple(j, 'a') AS x", "n", "explode(a) AS y"),
)


def frames(session: SparkSession, kind: str) -> tuple[Frame, DataFrame]:
    """Arrays ``a`` with the values of a type, maps ``m`` to them, numbers and texts; and the same rows in Spark."""
    values = VALUES[kind]
    arrays = [values, [], None, [None], [values[0], None, values[-1]], values[:1] * 3]
    maps = [None if array is None else [*enumerate(array)] for array in arrays]
    texts = ['{"a": 1}', '{"a": {"b" :  [1, 2.50]}, "c": 2}', "no", None, '{"a": null, "a": "é"}', "[1]"]
    kinds = {"a": f"ARRAY<{kind}>", "m": f"MAP<INT, {kind}>", "n": "int", "s": "string", "j": "string"}
    columns = [arrays, maps, [1, 2, 3, None, 5, 6], ["aé", "", None, "x y", "'", "b"], texts]
    table = pa.table(
        [pa.array(of, arrow_of(kinds[name])) for name, of in zip(kinds, columns, strict=True)], names=[*kinds]
    )
    local = Frame.of(session, table, [*kinds.items()])
    assert local is not None
    return local, session.createDataFrame(table, schema=local.schema)


def compare(local: Frame, rows: DataFrame, texts: tuple[str, ...]) -> None:
    found, expected = local.selectExpr(*texts), rows.selectExpr(*texts)
    assert found.schema.simpleString() == expected.schema.simpleString(), texts
    nullable = [functions.col(f"`{name}`").cast(found.schema[name].dataType) for name in expected.columns]
    assert repr(found.toArrow().to_pylist()) == repr(expected.select(*nullable).toArrow().to_pylist()), texts
    empty = Frame.empty(local.sparkSession, local.fields).selectExpr(*texts)
    assert (empty.dtypes, empty.count()) == (found.dtypes, 0)


@pytest.mark.parametrize("kind", VALUES)
def test_elements_of_each_type_are_those_of_spark(spark: SparkSession, kind: str) -> None:
    local, rows = frames(derive(spark), kind)
    for text in TEXTS:
        compare(local, rows, ("n", text, "s AS t"))


def test_lists_with_generators_have_the_rows_of_spark(spark: SparkSession) -> None:
    local, rows = frames(derive(spark), "STRING")
    for texts in LISTS:
        compare(local, rows, texts)


def test_elements_of_a_known_array_have_a_known_type(spark: SparkSession) -> None:
    local, rows = frames(derive(spark), "STRUCT<`B c`: INT, `d`: STRING>")
    for text in ("explode(a)", "EXPLODE_OUTER(a)", "explode(sequence(n, 5))", "explode(array(n, 2L))", "stack(1, n)"):
        kind = type_of(local, text)
        assert kind is not None, text
        empty = Frame.empty(local.sparkSession, [("x", kind)])
        assert empty.schema.simpleString() == rows.selectExpr(f"{text} AS x").schema.simpleString()
    places = "explode(transform(map_entries(m), (e, i) -> struct(i + 1 AS ord, e.value AS i, e.key AS `E`)))"
    assert local.translates(places.removeprefix("explode"))
    assert type_of(local, places) == "STRUCT<`ord`: int, `i`: STRUCT<`B c`: int, `d`: string>, `E`: int>"
    assert type_of(local, "explode(split(s, ''))") is None
    assert type_of(local, "explode(n)") is None


@pytest.mark.parametrize("text", [
    "explode(a)", "explode(a) + (1) AS x", "explode(a, b) AS x", "posexplode(a) AS x", "exploded(a) AS x",
    "stack(1) AS x", "explode(a)) AS x",
])  # fmt: skip
def test_other_items_are_no_generators(text: str) -> None:
    assert generator_of(text) is None


def test_a_generator_is_read_up_to_its_own_parenthesis() -> None:
    found = generator_of("stack(2, f('),('), `a,(` [g(1, 2)]) AS `b``c`")
    assert found is not None
    assert (found.name, found.array) == ("b`c", "array(f('),('), `a,(` [g(1, 2)])")


@pytest.mark.parametrize("text", ["explode(a)", "inline_outer(a)", "stack(2, n, n)", "variant_explode(a)"])
def test_a_generator_is_no_value_of_the_row(spark: SparkSession, text: str) -> None:
    local, _ = frames(derive(spark), "INT")
    with pytest.raises(Untranslated):
        tried(local, {"x": text})
