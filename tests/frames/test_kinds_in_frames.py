"""Frames give values of every type that they hold back as they got them, sorted and widened as in Spark."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from conformance.edge_values import VALUES
from rowtime.frames.frame import Frame
from rowtime.frames.kinds import arrow_of, holds, type_text
from rowtime.frames.queries import Uncomputed
from rowtime.frames.words import Untranslated
from rowtime.runtime.session import derive
from tests.frames.in_spark import SparkRows, in_spark
from tests.frames.test_arrays import _plain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXT: Final = "string collate UNICODE_CI"
DAYS: Final = [dt.timedelta(days=1, microseconds=1), -dt.timedelta(days=106_751_990), dt.timedelta(0), None]
TIMES: Final = [dt.time(0), dt.time(23, 59, 59, 999_999), None, dt.time(12, 0, 0, 1)]
VARIANT: Final = {"value": b"\x0c\x01", "metadata": b"\x01\x00\x00"}
HELD: Final[dict[str, list[Any]]] = {
    TEXT: ["a", "A", None, "", "é"],
    f"array<{TEXT}>": [["a", None], [], None, ["A"]],
    f"STRUCT<`x y`: {TEXT}, `n`: int>": [{"x y": "a", "n": 1}, None, {"x y": None, "n": None}],
    f"MAP<string, {TEXT}>": [[("a", "A"), ("b", None)], [], None],
    f"MAP<int, ARRAY<{TEXT}>>": [[(1, ["A", None]), (2, None)], None, []],
    "interval day to second": DAYS,
    "interval hour": [dt.timedelta(hours=5), None, -dt.timedelta(hours=1)],
    "ARRAY<interval day to second>": [DAYS, None, [], [None]],
    "STRUCT<`i`: interval day to second, `t`: time(6)>": [{"i": DAYS[0], "t": TIMES[1]}, None, {"i": None, "t": None}],
    "time(6)": TIMES,
    "ARRAY<time(6)>": [TIMES, None, []],
    "MAP<time(6), interval day to second>": [[(TIMES[1], DAYS[0]), (TIMES[0], None)], None],
    "variant": [VARIANT, None],
    "ARRAY<variant>": [[VARIANT, None], None, []],
    "STRUCT<`v`: variant>": [{"v": VARIANT}, None, {"v": None}],
    "binary": [b"", b"\x00\xff", None],
    "decimal(38,10)": [Decimal("-1.5"), None, Decimal(10) ** 27],
    "ARRAY<STRUCT<`a`: ARRAY<int>, `m`: MAP<string, date>>>": [
        [{"a": [1, None], "m": [("x", dt.date(1, 1, 1)), ("y", None)]}, None], None, [],
    ],
    "STRUCT<`deep`: STRUCT<`t`: timestamp, `u`: timestamp_ntz>>": [
        {"deep": {"t": dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "u": dt.datetime(1, 1, 1)}}, {"deep": None}, None,  # noqa: DTZ001
    ],
    **{kind: [*values, None] for kind, values in VALUES.items()},
}  # fmt: skip
SORTABLE: Final = [kind for kind in HELD if "map" not in kind.lower() and "variant" not in kind]


def frame(session: SparkSession, kind: str, name: str = "v") -> Frame:
    """The values beside their numbers."""
    table = pa.table({"n": pa.array(range(len(HELD[kind])), pa.int64()), name: pa.array(HELD[kind], arrow_of(kind))})
    found = Frame.of(session, table, [("n", "bigint"), (name, kind)])
    assert found is not None
    return found


def same(one: Any, other: Any) -> None:
    """Both have the same columns, types and rows in the same order."""
    assert one.columns == other.columns
    assert [type_text(of.dataType) for of in one.schema] == [type_text(of.dataType) for of in other.schema]
    here, there = one.toArrow(), other.toArrow()
    assert str(here.schema.types).replace(" not null", "") == str(there.schema.types).replace(" not null", "")
    for left, right in zip(here.columns, there.columns, strict=True):
        assert repr([*map(_plain, left)]) == repr([*map(_plain, right)])


@pytest.mark.parametrize("kind", HELD)
def test_values_go_through_a_frame_unchanged(spark: SparkSession, kind: str) -> None:
    assert holds(kind)
    session = derive(spark)
    rows = frame(session, kind)
    there = in_spark(rows)
    given = pa.array(HELD[kind], arrow_of(kind))
    assert repr([*map(_plain, rows.toArrow()["v"])]) == repr([*map(_plain, given)])
    same(rows, SparkRows(there))
    renamed = rows.selectExpr("v AS `w x`", "n").where("n >= 0").in_order(["n"]).selectExpr("n", "`w x` AS v")
    same(renamed, rows)
    same(rows.where("n >= 0").limit(2), rows.limit(2))
    many = rows.where("n < 2").unionByName(rows.where("n >= 2")).in_order(["n"])
    same(many, rows)
    other = Frame.of(session, pa.table({"n": [100], "z": ["z"]}), [("n", "bigint"), ("z", "string")])
    assert other is not None
    for one, two in ((rows, other), (other, rows), (rows.where("n >= 0"), other), (other, rows.where("n >= 0"))):
        beside = one.unionByName(two, allowMissingColumns=True).in_order(["n"])
        assert beside.count() == rows.count() + 1
        same(beside.where("n < 100").select("n", "v"), rows)
        [last] = beside.where("n = 100").toArrow().to_pylist()
        assert last == {"n": 100, "z": "z", "v": None}
        if "variant" not in kind:  # PySpark does not hand out a VARIANT that is NULL
            expected = SparkRows(in_spark(one)).unionByName(SparkRows(in_spark(two)), allowMissingColumns=True)
            same(beside, expected.in_order(["n"]))
    firsts = rows.selectExpr("n AS m", "v AS w").joined(rows, "m = n", "inner").in_order(["n"])
    same(firsts.selectExpr("n", "w AS v"), rows)
    same(Frame.empty(session, rows.fields).unionByName(rows), rows)
    same(Frame.empty(session, rows.fields).where("n > 0").unionByName(rows.where("n >= 0")), rows)
    assert Frame.empty(session, rows.fields).schema == rows.schema


@pytest.mark.parametrize("kind", SORTABLE)
def test_values_are_sorted_as_in_spark(spark: SparkSession, kind: str) -> None:
    rows = frame(derive(spark), kind)
    for way in ("", " DESC", " ASC NULLS FIRST", " ASC NULLS LAST", " DESC NULLS FIRST", " DESC NULLS LAST"):
        terms = [f"v{way}", "n"]
        same(rows.in_order(terms), SparkRows(in_spark(rows)).in_order(terms))


NESTED: Final[dict[str, list[Any]]] = {
    "array<int>": [[1, None], [1], [], None, [None], [None, 1], [1, 2], [1, None, 1], [2], [None, None]],
    "array<array<string>>": [[["a"], None], [["a"]], [[None]], [[]], [], None, [None], [["a", None]], [["a", "b"]]],
    "STRUCT<`a`: int, `b`: string>": [
        {"a": 1, "b": "x"}, {"a": 1, "b": None}, {"a": None, "b": "x"}, {"a": None, "b": None}, None, {"a": 2, "b": ""},
    ],
    "ARRAY<STRUCT<`a`: int, `b`: array<int>>>": [
        [{"a": 1, "b": [1, None]}], [{"a": 1, "b": None}], [None], [], None, [{"a": None, "b": []}],
        [{"a": 1, "b": [1]}, None], [{"a": 1, "b": [1]}], [{"a": 1, "b": []}],
    ],
    "STRUCT<`a`: array<double>>": [
        {"a": [0.0]}, {"a": [-0.0]}, {"a": [float("nan")]}, {"a": [None]}, {"a": None}, None,
        {"a": [float("inf"), None]}, {"a": []}, {"a": [float("-inf")]},
    ],
    "array<binary>": [[b"\xff"], [b""], [b"a", None], [None], None, [b"a"]],
    "ARRAY<interval day to second>": [DAYS, [DAYS[1]], [None], None, [DAYS[0], None], []],
}  # fmt: skip


@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize("few", [True, False])
def test_nested_values_with_null_are_sorted_as_in_spark(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, kind: str, *, few: bool
) -> None:
    """In a frame, in windows and in groups: by any of the ways in which a frame sorts."""
    if not few:
        monkeypatch.setattr("rowtime.frames.frame.FEW_ROWS", 0)
    monkeypatch.setitem(HELD, kind, NESTED[kind])
    rows = frame(derive(spark), kind)
    there = in_spark(rows)
    for way in ("ASC", "DESC", "ASC NULLS FIRST", "ASC NULLS LAST", "DESC NULLS FIRST", "DESC NULLS LAST"):
        terms = [f"v {way}", "n"]
        same(rows.in_order(terms), SparkRows(there).in_order(terms))
        ranks = ("n", f"dense_rank() OVER (ORDER BY v {way}) AS r", f"row_number() OVER (ORDER BY v {way}, n) AS i")
        same(rows.selectExpr(*ranks).in_order(["n"]), SparkRows(there.selectExpr(*ranks)).in_order(["n"]))
    items = ["max_by(n, struct(v, n)) AS last", "min_by(n, struct(v, n)) AS first"]
    same(rows.grouped([], items), SparkRows(there).grouped([], items))


WIDER: Final = (
    ("tinyint", "int"), ("int", "bigint"), ("bigint", "double"), ("int", "float"), ("smallint", "decimal(10,2)"),
    ("decimal(10,2)", "decimal(5,4)"), ("decimal(10,2)", "double"), ("bigint", "decimal(10,2)"), ("float", "double"),
    ("date", "timestamp"), ("date", "timestamp_ntz"), ("timestamp", "timestamp_ntz"), ("int", "string"),
    ("string", "date"), ("bigint", "float"), ("decimal(38,10)", "bigint"), ("string", TEXT), ("boolean", "int"),
    ("array<int>", "array<bigint>"), ("string", "boolean"), ("binary", "string"), ("string", "interval day to second"),
)  # fmt: skip
LITTLE: Final[dict[str, list[Any]]] = {
    "string": ["x", None], "array<int>": [[1, None], None], "array<bigint>": [[2**40], None],
    "float": [1.5, None], "double": [0.1, None], "bigint": [2**53 + 1, None], "decimal(10,2)": [Decimal("1.25"), None],
}  # fmt: skip


@pytest.mark.parametrize("pair", [(a, b) for pair in WIDER for a, b in (pair, pair[::-1])], ids=" and ".join)
def test_a_union_widens_types_as_spark_does(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, pair: tuple[str, str]
) -> None:
    for kind in pair:
        monkeypatch.setitem(HELD, kind, LITTLE.get(kind) or HELD[kind][:3])
    session = derive(spark)
    one, two = (frame(session, kind) for kind in pair)
    try:
        expected = SparkRows(in_spark(one)).unionByName(SparkRows(in_spark(two)))
        wanted = [*map(str, expected.toArrow().to_pylist())]
    except PySparkException:  # types that do not go together, or a text that is no number
        with pytest.raises((Untranslated, Uncomputed)):
            one.unionByName(two).toArrow()
        return
    try:
        found = one.unionByName(two)
    except Untranslated:
        pytest.fail(f"Spark makes {expected.schema['v'].dataType.simpleString()} of {pair}")
    assert found.schema.simpleString() == expected.schema.simpleString()
    assert sorted(map(str, found.toArrow().to_pylist())) == sorted(wanted)


@pytest.mark.parametrize("few", [True, False])
def test_parts_of_arrays_of_structs_in_structs_are_read(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, *, few: bool
) -> None:
    """DuckDB takes no array of this type that begins inside of another one."""
    if not few:
        monkeypatch.setattr("rowtime.frames.queries.FEW_ROWS", 0)
    kind = "STRUCT<`a`: STRUCT<`b`: STRUCT<`c`: int>>, `n`: int>"
    values = [None if n % 5 == 0 else {"a": {"b": {"c": n} if n % 3 else None}, "n": n} for n in range(20)]
    whole = pa.chunked_array([pa.array(values, arrow_of(kind)).slice(2, 7), pa.array(values, arrow_of(kind)).slice(9)])
    table = pa.table({"n": pa.chunked_array([[*range(3)], [*range(3, 18)]]), "v": whole})
    rows = Frame.of(spark, table, [("n", "bigint"), ("v", kind)])
    assert rows is not None
    assert rows.where("n >= 0").toArrow()["v"].to_pylist() == values[2:]
    assert rows.selectExpr("v.a.b.c AS c", "n").in_order(["n"]).toArrow()["c"].to_pylist() == [
        None if n % 5 == 0 or n % 3 == 0 else n for n in range(2, 20)
    ]
