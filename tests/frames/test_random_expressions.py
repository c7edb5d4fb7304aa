"""Random expressions have the values, types and failures of Spark on the driver."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.frames.compared import compared
from tests.frames.random_expressions import drawn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAST, WHOLE = 60, int(os.environ.get("EXPRESSIONS", "20000"))
TOGETHER = 100  # of one table


def _checked(spark: SparkSession, seed: str) -> tuple[int, list[object]]:
    found = compared(spark, *drawn(seed, TOGETHER))
    return len(found.here), [*found.differ]


def test_random_expressions_are_those_of_spark(spark: SparkSession) -> None:
    count, differ = _checked(spark, "fast")
    assert count >= FAST
    assert not differ, differ[:10]


@pytest.mark.slow
def test_many_random_expressions_are_those_of_spark(spark: SparkSession) -> None:
    """The driver computes so many; ``EXPRESSIONS`` sets another number."""
    count, number, differ = 0, 0, list[object]()
    while count < WHOLE:
        more, found = _checked(spark, f"many {number}")
        count, number, differ = count + more, number + 1, differ + found
    assert not differ, (count, len(differ), differ[:20])
