"""The trace leads through a join with a static table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import rowtime as rt
from tests.runtime.test_hints_of_runs import GIVEN

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.slow
def test_the_way_of_a_row_through_a_table_could_not_be_traced(spark: SparkSession, tmp_path: Path) -> None:
    spark.createDataFrame([("1", 1), ("1", 3)], "x STRING, v INT").write.parquet(str(tmp_path / "names"))
    table = f"CREATE TABLE names (x STRING, v INT) USING parquet OPTIONS (path '{tmp_path}/names');"
    made = rt.Pipeline(spark, home=tmp_path / "home").sql(
        f"{GIVEN}{table} CREATE STREAM out (x STRING, v INT) USING parquet OPTIONS (path '{tmp_path}/out');"
        "CREATE PUMP p AS INSERT INTO out SELECT STREAM s.x, names.v FROM s JOIN names ON names.x = s.x;"
    )
    traced = made.run_available(tmp_path / "check").trace({"v": 3})
    met = [item.columns for item in traced.items if item.operator == "p.join" and item.kind == "row"]
    assert met == [{"s_x": "1", "names_x": "1", "names_v": 3}]
