"""Structs that are chosen by their positions equal those that MAX_BY and MIN_BY choose."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rowtime.expr.aggregates import PLACE, decompose, placed_merges
from rowtime.frames import extremes
from rowtime.frames.frame import Frame
from rowtime.operators.rows.collations import grouped
from rowtime.sql.script import parse_expression

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KIND = "struct<__t:timestamp,__w:string,__p:bigint,v:{}>"
FIELDS = [
    ("k", "string"),
    ("a", KIND.format("bigint")),
    ("b", KIND.format("bigint")),
    ("c", KIND.format("string")),
    ("n", "bigint"),
]


def _merge(call: str, name: str) -> str:
    form = decompose(parse_expression(call))
    assert form is not None
    return f"{form.parts[0].merge.format(name)} AS {name}"


AGGREGATES = [_merge("LAST(x)", "a"), _merge("FIRST(x)", "b"), "sum(n) AS n", _merge("LAST(x) IGNORE NULLS", "c")]


def _rows(spark: SparkSession, seed: int, count: int) -> Frame:
    rng = random.Random(seed)
    places = [(rng.randrange(-3, 4), rng.choice(["", "w", "é", "v2"]), n) for n in range(count)]
    rng.shuffle(places)

    def struct(place: tuple[int, str, int], value: Any, share: float) -> Any:
        return None if rng.random() < share else {"__t": place[0], "__w": place[1], "__p": place[2], "v": value}

    def column(made: list[Any], kind: pa.DataType) -> pa.Array:
        inner = [("__t", pa.timestamp("us")), ("__w", pa.string()), ("__p", pa.int64()), ("v", kind)]
        return pa.array(made, pa.struct(inner))

    values = [rng.choice([None, n]) for n in range(count)]
    texts = [rng.choice(["x", "", "é"]) for _ in range(count)]
    table = pa.table({
        "k": [rng.choice(["a", "b", None, "c"]) for _ in range(count)],
        "a": column([struct(p, v, 0) for p, v in zip(places, values, strict=True)], pa.int64()),
        "b": column([struct(p, v, 0) for p, v in zip(places, values, strict=True)], pa.int64()),
        "c": column([struct(p, t, 0.7) for p, t in zip(places, texts, strict=True)], pa.string()),
        "n": list(range(count)),
    })  # fmt: skip
    found = Frame.of(spark, table, FIELDS)
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(15))
def test_groups_by_places_equal_those_of_the_engine(
    spark: SparkSession, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = _rows(spark, seed, random.Random(seed).choice([1, 3, 40]))
    keys = [["k"], []][seed % 2]
    plain = rows.grouped(keys, AGGREGATES)
    monkeypatch.setattr(extremes, "FEW_ROWS", 0)
    chosen = grouped(rows, keys, AGGREGATES)
    assert plain is not None
    assert chosen.schema == plain.schema
    assert _sorted(chosen) == _sorted(plain)


def _sorted(rows: Any) -> list[str]:
    return sorted(map(repr, rows.toArrow().to_pylist()))


def test_equal_places_are_sorted_once(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    ranks = extremes._Ranks
    monkeypatch.setattr(extremes, "FEW_ROWS", 0)
    monkeypatch.setattr(extremes, "_Ranks", lambda places: made.append(places) or ranks(places))
    grouped(_rows(spark, 1, 40), ["k"], AGGREGATES)
    assert len(made) == 2  # those of a and b, and those of c


def test_few_rows_are_left_to_the_engine(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extremes, "_Ranks", None)
    assert grouped(_rows(spark, 1, 40), ["k"], AGGREGATES).count() == 4


def test_other_aggregates_are_not_chosen_by_place() -> None:
    by = decompose(parse_expression("MAX_BY(x, y)"))
    assert by is not None
    assert placed_merges([f"{by.parts[0].merge.format('a')} AS a", "max(b) AS b", "max_by(a, b) AS c"]) == {}
    assert placed_merges(AGGREGATES) == {"a": "max", "b": "min", "c": "max"}
    assert PLACE == "__t, __w, __p"
