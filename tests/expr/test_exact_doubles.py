"""A 32-bit integer is exact as a DOUBLE, so a cast keeps neighbours apart; a 64-bit integer is not."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

import rowtime as rt
from rowtime.plan.check import proof_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UP, DOWN = "strictly ascending", "strictly descending"
LARGE = [2**53 - 1, 2**53, 2**53 + 1]


@pytest.mark.parametrize(
    ("kind", "expression", "order"),
    [
        ("INT STRICTLY ASCENDING", "CAST(v AS DOUBLE)", UP),
        ("SMALLINT STRICTLY DESCENDING", "DOUBLE(v)", DOWN),
        ("TINYINT STRICTLY ASCENDING", "-CAST(v AS DOUBLE)", DOWN),
        ("INT ASCENDING", "CAST(v AS DOUBLE)", "ascending"),
        ("BIGINT STRICTLY ASCENDING", "CAST(v AS DOUBLE)", "ascending"),
        ("BIGINT STRICTLY ASCENDING", "CAST(CAST(v AS INT) AS DOUBLE)", UP),
        ("INT STRICTLY ASCENDING", "CAST(CAST(v AS BIGINT) AS DOUBLE)", "ascending"),
        ("INT STRICTLY ASCENDING", "CAST(v AS FLOAT)", "ascending"),
        ("INT STRICTLY ASCENDING", "CAST(v + 1 AS DOUBLE)", "ascending"),
        ("INT STRICTLY ASCENDING", "CAST(v AS DOUBLE) + 0.5", "ascending"),
        ("INT STRICTLY ASCENDING", "TRY_CAST(v AS DOUBLE)", "none"),
    ],
)
def test_strictness_is_kept_where_possible(kind: str, expression: str, order: str) -> None:
    assert rt.order_of(expression, {"v": kind}) == order


def test_the_proof_says_why() -> None:
    assert "every INT is exact as a DOUBLE" in str(proof_of("CAST(v AS DOUBLE)", {"v": "INT STRICTLY ASCENDING"}))


def test_a_bigint_is_not_exact_in_spark_and_the_ends_of_int_are(spark: SparkSession) -> None:
    found = spark.sql(f"SELECT CAST(v AS DOUBLE) AS d FROM VALUES {', '.join(f'({v}L)' for v in LARGE)} AS t(v)")
    assert len({row.d for row in found.collect()}) == 2, "so strictness would be wrong there"
    ends = [-(2**31), -(2**31) + 1, -1, 0, 1, 2**31 - 2, 2**31 - 1]
    found = spark.sql(
        f"SELECT CAST(v AS DOUBLE) AS d FROM VALUES {', '.join(f'({v})' for v in ends)} AS t(v) ORDER BY v"
    )
    assert all(one.d < two.d for one, two in pairwise(found.collect()))
