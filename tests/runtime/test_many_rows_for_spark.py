"""Rows on the driver that go to Spark: few become part of its plan, many make Spark compute the whole tick."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

import rowtime as rt
from rowtime.frames import as_dataframe
from rowtime.runtime import engine
from rowtime.runtime.engine import Engine

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from pyspark.sql import SparkSession

SQL = """
CREATE STREAM s (ev TIMESTAMP, k BIGINT) USING parquet OPTIONS (path '{source}', rowtime.column 'ev');
SELECT STREAM seventh(k) AS h FROM s;
"""


def test_a_tick_of_many_rows_is_sparks_as_a_whole_and_so_are_the_next_ones(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark.udf.register("seventh", lambda k: str(k * 7), "string")
    for module in (as_dataframe, engine):
        monkeypatch.setattr(module, "FEW", 10)
    (tmp_path / "in").mkdir()
    for number, count in enumerate((5, 30, 40, 8)):
        times = pa.array([number * 1000 + n for n in range(count)], pa.timestamp("us", "UTC"))
        pq.write_table(pa.table({"ev": times, "k": range(count)}), tmp_path / "in" / f"{number}.parquet")
    ways: list[tuple[int, bool]] = []
    running = Engine._running

    def watched(self: Engine, *given: Any) -> Any:
        found = running(self, *given)
        ways.append((found.number, found.local))
        return found

    monkeypatch.setattr(Engine, "_running", watched)
    found: list[str] = []
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(SQL.format(source=tmp_path / "in"))
    pipeline.sink("result", lambda batch: found.extend(batch.table()["h"].to_pylist()))
    pipeline.run_available(tmp_path / "checkpoint", end=True, limits=rt.Limits(files=1))
    wanted = [str(k * 7) for k in range(40)]
    assert found == [*wanted[:5], *wanted[:30], *wanted, *wanted[:8]]
    assert ways[:5] == [(0, True), (1, True), (1, False), (2, False), (3, True)]
