"""Arrays on the driver are those of Spark: collected in stream order, sorted, cut and joined."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from conformance.edge_values import VALUES
from rowtime.expr.aggregates import ordered_text
from rowtime.frames.frame import Frame
from rowtime.frames.kinds import arrow_of
from rowtime.operators.rows.collations import grouped
from rowtime.sql.script import parse_expression
from tests.frames.in_spark import SparkRows, in_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(3)

CALLS = {
    "l": "COLLECT_LIST(v)",
    "s": "COLLECT_LIST(STRUCT(v, u, n))",
    "f": "COLLECT_LIST(v) FILTER (WHERE n > 8)",
    "e": "COLLECT_LIST(v) FILTER (WHERE n < 0)",
}
CUT = ["l", "size(l)", "cardinality(e)", "slice(l, 1, 2)", "slice(s, 2, 3)", "slice(f, 3, 0)", "slice(e, 2, 1)"]
SORTED = [
    f"{form.format(of)}"
    for of in "lsfe"
    for form in ("sort_array({})", "sort_array({}, FALSE)", "array_sort({})", "slice(sort_array({}, FALSE), 1, 3)")
] + ["CASE WHEN size(l) > 3 THEN slice(sort_array(s, FALSE), 1, 40) END", "slice(sort_array(s), 1, 3)"]
FLOATS = ("float", "double")


def _frame(spark: SparkSession, kind: str, seed: int) -> Frame:
    rng, count = random.Random(seed), 60
    values = [rng.choice(VALUES[kind]) for _ in range(2 * count)]
    columns: dict[str, tuple[str, Sequence[Any]]] = {
        "k": ("string", [rng.choice(["a", "b", None]) for _ in range(count)]),
        "v": (kind, values[:count]),
        "u": (kind, values[count:]),
        "n": ("bigint", [rng.choice([None, n]) for n in range(count)]),
        "__t": ("timestamp", [rng.randrange(-3, 4) for _ in range(count)]),
        "__w": ("string", [rng.choice(["", "w", "é"]) for _ in range(count)]),
        "__p": ("bigint", rng.sample(range(count), count)),
    }
    table = pa.table({name: pa.array(made, arrow_of(of)) for name, (of, made) in columns.items()})
    found = Frame.of(spark, table, [(name, of) for name, (of, _) in columns.items()])
    assert found is not None
    return found


def _made(rows: Any, texts: Sequence[str]) -> Any:
    groups = _grouped(rows, [f"{ordered_text(parse_expression(call))} AS {name}" for name, call in CALLS.items()])
    return groups.selectExpr("k", *(f"{text} AS x{n}" for n, text in enumerate(texts)))


def _grouped(rows: Any, aggregates: Sequence[str]) -> Any:
    return rows.grouped(["k"], aggregates) if isinstance(rows, SparkRows) else grouped(rows, ["k"], aggregates)


def _same(spark: SparkSession, kind: str, texts: Sequence[str]) -> None:
    frame = _frame(spark, kind, len(kind))
    here, there = _made(frame, texts), _made(SparkRows(in_spark(frame)), texts)
    assert [field.dataType.simpleString() for field in here.schema] == [
        field.dataType.simpleString() for field in there.schema
    ]
    for one, other in zip(_listed(here), _listed(there), strict=True):
        assert one == other


def _listed(rows: Any) -> list[str]:
    """Return the rows as texts; times as numbers, because some lie outside of Python's calendar."""
    return sorted(str([_plain(column[n]) for column in table.columns]) for table in [rows.toArrow()] for n in range(3))


def _plain(value: Any) -> Any:
    if isinstance(value, pa.StructScalar) and value.is_valid:
        return [(name, _plain(part)) for name, part in value.items()]
    if isinstance(value, pa.ListScalar) and value.is_valid:
        return [_plain(value.values[n]) for n in range(len(value.values))]
    return value.value if isinstance(value, pa.TimestampScalar | pa.Date32Scalar) else value.as_py()


@pytest.mark.parametrize("kind", VALUES)
def test_collected_values_equal_those_of_spark(spark: SparkSession, kind: str) -> None:
    _same(spark, kind, CUT if kind in FLOATS else [*CUT, *SORTED])


def test_joined_texts_equal_those_of_spark(spark: SparkSession) -> None:
    _same(spark, "string", ["array_join(l, ', ')", "array_join(f, '')", "array_join(e, 'é')"])


@pytest.mark.parametrize("text", ["LISTAGG(v, '-')", "ARRAY_AGG(v)"])
def test_aggregates_in_stream_order_are_computed_here(spark: SparkSession, text: str) -> None:
    frame = _frame(spark, "string", 7)
    made = [f"{ordered_text(parse_expression(text))} AS x"]
    here, there = _grouped(frame, made), _grouped(SparkRows(in_spark(frame)), made)
    assert _listed(here) == _listed(there)


def test_null_elements_are_sorted_like_in_spark(spark: SparkSession) -> None:
    texts = [f"{form}(a{down})" for form in ("sort_array", "array_sort") for down in ("", ", FALSE")][:3]
    texts += [f"slice(sort_array(a, FALSE), 1, {n})" for n in (1, 3, 9)]
    arrays = [[3, None, 1, None], [None], [], None, [1, 2]]
    frame = Frame.of(spark, pa.table({"a": pa.array(arrays, pa.list_(pa.int64()))}), [("a", "array<bigint>")])
    assert frame is not None
    chosen = [f"{text} AS x{n}" for n, text in enumerate(["a", *texts])]
    here, there = frame.selectExpr(*chosen), in_spark(frame).selectExpr(*chosen)
    assert here.toArrow().to_pylist() == there.toArrow().to_pylist()


@pytest.mark.parametrize("text", [
    "sort_array(v)", "slice(l, -2, 2)", "slice(l, n, 1)", "array_sort(l, (a, b) -> a - b)", "array_join(l, ',', 'x')",
    "transform(l, x -> hex(x))", "array_join(n, ',')", "sort_array(d)",
    "transform(array_sort(collect_list(CASE WHEN TRUE THEN struct(n AS p, NULL AS v) END)), x -> x.v)",
])  # fmt: skip
def test_spark_computes_other_arrays(spark: SparkSession, text: str) -> None:
    kinds = [("v", "bigint"), ("n", "int"), ("l", "array<bigint>"), ("d", "array<struct<a:double>>")]
    assert not Frame(spark, kinds, pa.table({})).translates(text)
