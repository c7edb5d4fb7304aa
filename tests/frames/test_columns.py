"""Columns that Arrow computes directly equal those of DuckDB, also positions and converted numbers."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rowtime.frames import translated
from rowtime.frames.columns import places_in, selected
from rowtime.frames.frame import Frame
from rowtime.frames.queries import FEW_ROWS, Query
from rowtime.frames.translated import item, scope_of
from rowtime.frames.values import Value
from rowtime.operators.contract.texts import passed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIELDS = [("n", "bigint"), ("i", "int"), ("k", "string"), ("t", "timestamp"), ("d", "date"), ("b", "boolean")]
SCOPE = scope_of({name: Value(f"c{n}", kind) for n, (name, kind) in enumerate(FIELDS)})
ROWS = pa.table({
    "c0": pa.array([3, 1, 2, 1], pa.int64()),
    "c1": pa.array([1, None, -1, 1], pa.int32()),
    "c2": ["b", "", None, "é"],
    "c3": pa.array([0, -1, None, 5_000_000], pa.timestamp("us")),
    "c4": pa.array([0, 1, None, -1], pa.date32()),
    "c5": [True, None, False, True],
})  # fmt: skip
PLAIN = [
    "n AS x", "k AS y", "0 AS z", "-7 AS z", "5L AS l", "'' AS w", "'it' AS w", "unix_micros(t) AS m",
    f"{passed(12, 'n')} AS p", f"{passed(-3, 'n')} AS p", f"{passed(2**62, 'n')} AS p",
]  # fmt: skip


@pytest.mark.parametrize("text", PLAIN)
def test_plain_select_lists_need_no_query(text: str) -> None:
    sql = item(text, SCOPE).value.sql
    found = selected(ROWS, [sql])
    assert found is not None
    assert found.equals(Query(f"SELECT {sql} AS c0 FROM t", {"t": ROWS}).rows())


@pytest.mark.parametrize("text", ["n + 1 AS x", "'it''s' AS w", f"{passed(1, 'i')} AS p", "n > 1 AS b"])
def test_other_select_lists_need_a_query(text: str) -> None:
    assert selected(ROWS, [item("n AS n", SCOPE).value.sql, item(text, SCOPE).value.sql]) is None


def test_plain_columns_are_selected_without_a_query(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(Query, "rows", lambda self: asked.append(self.sql))
    few = Frame(spark, FIELDS, ROWS).selectExpr("k AS x", "*").drop("n").selectExpr("x", "0 AS route")
    assert few.toArrow().to_pydict() == {"x": ROWS["c2"].to_pylist(), "route": [0] * 4}
    many = pa.table({"c0": pa.array(range(FEW_ROWS + 1), pa.int64())})
    assert Frame(spark, [("n", "bigint")], many).selectExpr("n AS m")._table() is not None
    assert not asked
    Frame(spark, [("n", "bigint")], many).selectExpr("n + 1 AS m")._table()
    assert len(asked) == 1


@pytest.mark.parametrize("seed", range(20))
def test_places_are_those_of_row_number(seed: int) -> None:
    rng = random.Random(seed)
    names = rng.sample(range(len(FIELDS)), rng.randint(1, 4))
    rows = ROWS.take(pa.array([rng.randrange(4) for _ in range(12)]))
    rows = rows.append_column("c6", pa.array(rng.sample(range(12), 12), pa.int64()))
    order = ", ".join(f"c{n} ASC NULLS FIRST" for n in [*names, 6])
    places = places_in(rows, {**{n: FIELDS[n][1] for n in names}, 6: "bigint"})
    asked = Query(f"SELECT row_number() OVER (ORDER BY {order}) - 1 AS p, c6 FROM t ORDER BY c6", {"t": rows}).rows()
    assert places is not None
    by_number = sorted(zip(rows["c6"].to_pylist(), places.to_pylist(), strict=True))
    assert [place for _, place in by_number] == asked["p"].to_pylist()


def test_many_rows_of_a_query_are_computed_for_their_places(spark: SparkSession) -> None:
    count = FEW_ROWS + 1
    rows = Frame.of(spark, pa.table({"n": pa.array(range(count, 0, -1), pa.int64())}), [("n", "bigint")])
    few, many = rows.where(f"n <= {FEW_ROWS}"), rows.where("n > 1")
    assert few.known is None
    assert many.places(["n"]) is not None
    assert many.places(["n"]).to_pylist() == [*range(count - 2, -1, -1)]
    assert Frame(spark, FIELDS, ROWS).where("n > 0").places(["n"]) is None


@pytest.mark.parametrize("kind", ["double", "float", "decimal(10,2)", "binary", "struct<a:int>"])
def test_types_that_arrow_may_sort_differently_need_a_query(kind: str) -> None:
    assert places_in(ROWS, {0: kind}) is None


def test_changing_numbers_are_inserted_in_their_places() -> None:
    def condition(low: int, high: int) -> str:
        return translated.tested(
            f"n > {passed(low, 'n')} AND unix_micros(t) <= {passed(high, 'unix_micros(t)')}", SCOPE
        )

    for low, high in ((1, 2), (2, 1), (-5, 2**62), (1, 1)):
        fresh = Query(f"SELECT c0 FROM t WHERE c0 > {low} AND epoch_us(c3) <= {high}", {"t": ROWS}).rows()
        assert Query(f"SELECT c0 FROM t WHERE {condition(low, high)}", {"t": ROWS}).rows().equals(fresh)


def test_a_number_of_the_user_stays_as_it_is() -> None:
    written = f"n = 8765432109876543211 OR n = {passed(5, 'n')}"
    assert "8765432109876543211" in translated.tested(written, SCOPE)
    assert item(f"{passed(7, 'n')} AS `array(7L)`", SCOPE).name == "array(7L)"


def test_a_text_is_translated_once_for_the_same_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    translated.tested(f"n > {passed(1, 'n')}", SCOPE)
    monkeypatch.setattr("rowtime.frames.translated.parsed", _never)
    assert "CAST(2 AS BIGINT)" in translated.tested(f"n > {passed(2, 'n')}", SCOPE)


def _never(text: str) -> Any:
    raise AssertionError(text)


FAR = pa.table({"c0": pa.array([0, 2**62, -(2**62), 253402300799999999, None, 2**62 - 1], pa.int64())})
TIMES = ["make_timestamp(c0)", "make_timestamp(least(c0, CAST(253402300799999999 AS BIGINT)))"]


@pytest.mark.parametrize("sql", TIMES)
def test_numbers_as_times_need_no_query(sql: str) -> None:
    for table in (FAR, FAR.slice(1), FAR.slice(4, 1), FAR.slice(0, 0)):
        found = selected(table, [sql])
        assert found is not None
        assert found.equals(Query(f"SELECT {sql} AS c0 FROM t", {"t": table}).rows())


@pytest.mark.parametrize("sql", TIMES)
def test_numbers_that_may_be_no_times_need_a_query(sql: str) -> None:
    far = [-(2**62) - 1, *([2**62 + 1] if "least" not in sql else [])]
    for value in far:
        assert selected(pa.table({"c0": pa.array([value, 1], pa.int64())}), [sql]) is None


KNOWN = pa.table({"c0": pa.array([1, 2], pa.int64()), "c1": pa.array([None, 3], pa.int64())})


@pytest.mark.parametrize("sql", ["coalesce(c0, c1)", "coalesce(c0, greatest(c1, CAST(5 AS BIGINT)))"])
def test_the_first_of_some_values_needs_no_query_if_it_is_always_known(sql: str) -> None:
    found = selected(KNOWN, [sql])
    assert found is not None
    assert found.equals(Query(f"SELECT {sql} AS c0 FROM t", {"t": KNOWN}).rows())


@pytest.mark.parametrize(
    "sql", ["coalesce(c1, c0)", "coalesce(c0, c1) + coalesce(c0, c1)", "coalesce(c0, length(')')) + length('(')"]
)
def test_other_values_that_may_be_unknown_need_a_query(sql: str) -> None:
    assert selected(KNOWN, [sql]) is None
