"""Rows of a stream in memory, for notebooks: as Arrow, pandas and polars."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rowtime as rt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """CREATE STREAM a (v INT); CREATE STREAM seen (v INT) USING memory;
CREATE PUMP p STARTED AS INSERT INTO seen SELECT STREAM v FROM a"""


def test_dir_lists_every_public_name_before_any_is_used() -> None:
    code = "import rowtime as rt; assert set(rt.__all__) <= set(dir(rt)); print(*dir(rt))"
    names = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {name for name in names if not name.startswith("_")} == set(rt.__all__)


def test_rows_in_memory_go_to_pandas_and_polars(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = rt.Pipeline(spark, home=tmp_path / "home").sql(SQL)
    assert made.run_available(tmp_path / "c").to_polars("seen") is None
    with rt.writer("a", home=tmp_path / "home") as log:
        log.insert([{"rowtime": "2024-01-01 00:00:01", "v": 7}, {"rowtime": "2024-01-01 00:00:02", "v": 8}])
    query = made.run_available(tmp_path / "c")
    pandas, polars = query.to_pandas("seen"), query.to_polars("seen")
    assert pandas is not None
    assert polars is not None
    assert pandas["v"].to_list() == polars["v"].to_list() == [7, 8]
    assert str(pandas["rowtime"][0]) == "2024-01-01 00:00:01+00:00"
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(rt.Refused, match=r"R612 .*polars") as refused:
        query.to_polars("seen")
    assert "pip install polars" in str(refused.value)
    with pytest.raises(rt.Refused, match="R103"):
        query.to_pandas("nothing")
