"""The example of row patterns, with several cuts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rowtime.runtime.session import derive
from rowtime.testing.runner import run_case
from rowtime.testing.transcripts import load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = Path(__file__).parents[2] / "examples" / "row_patterns"


def test_the_payments_that_test_a_card_are_found(spark: SparkSession) -> None:
    assert run_case(derive(spark), load(FOLDER / "card_tests.yaml")) == []
