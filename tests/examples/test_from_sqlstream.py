"""The scripts from SQLstream's manual give the rows that they state, with every cut."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rowtime.testing.runner import run_paths

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = Path(__file__).parents[2] / "examples" / "from_sqlstream"


@pytest.mark.slow  # three pipelines
def test_each_script_gives_its_expected_output(spark: SparkSession) -> None:
    said: list[str] = []
    assert run_paths([FOLDER], said.append, spark) == (3, 0), said
