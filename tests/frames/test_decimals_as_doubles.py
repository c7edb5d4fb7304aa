"""A decimal of any length as a DOUBLE is the one that Spark gives: rounded once."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from rowtime.frames.frame import Frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def numbers(digits: int, scale: int) -> list[Decimal]:
    chance = random.Random(digits)
    whole = [chance.randrange(10 ** chance.randrange(1, digits + 1)) for _ in range(500)]
    whole += [n for k in range(53, 120) for e in (-1, 0, 1) if (n := 2**k + 2 ** (k - 53) + e) < 10**digits]  # halfway
    return [Decimal(sign * n).scaleb(-scale) for n in whole for sign in (1, -1)]


@pytest.mark.parametrize(("digits", "scale"), [(38, 0), (38, 10), (38, 37), (25, 24), (20, 2), (18, 4), (15, 2)])
def test_a_decimal_is_rounded_once(spark: SparkSession, digits: int, scale: int) -> None:
    table = pa.table({"x": pa.array(numbers(digits, scale), pa.decimal128(digits, scale))})
    texts = ["CAST(x AS DOUBLE) AS d", "CAST(x AS DOUBLE) / 3 AS q", "x < CAST(0.1 AS DOUBLE) AS less"]
    ours = Frame.of(spark, table, [("x", f"decimal({digits},{scale})")]).selectExpr(*texts).toArrow()
    assert ours.to_pylist() == spark.createDataFrame(table).selectExpr(*texts).toArrow().to_pylist()
