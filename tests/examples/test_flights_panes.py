"""Real flights: hourly departures of each airport, corrected as records of long flights come in late.

A record is delivered when its flight ends, so the hour of its departure has often fired by then.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import rowtime as rt
from examples.flights import records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Hours = Counter[tuple[str, datetime]]
SQL = """
CREATE STREAM flights (origin STRING, departure TIMESTAMP) EVENT TIME (departure, LAG INTERVAL '30' MINUTE)
  USING parquet OPTIONS (path '{folder}');
CREATE STREAM hourly (origin STRING, hour TIMESTAMP, n BIGINT, i BIGINT) USING memory;
CREATE VIEW counted AS SELECT STREAM origin, PANE_START AS hour, COUNT(*) AS n, PANE_INDEX AS i FROM flights
  GROUP BY PANES(departure, DURATION INTERVAL '1' HOUR, DISCARD AGE INTERVAL '{age}' HOUR), origin;
CREATE PUMP p AS INSERT INTO hourly SELECT STREAM * FROM counted;
"""


@pytest.fixture(scope="module")
def january(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pa.Table]:
    """The departures of one month in the order of delivery, as a directory of two files."""
    folder = tmp_path_factory.mktemp("january")
    table = pa.concat_tables(records.by_airport().values()).sort_by("rowtime")
    first = table.filter(pc.less(table["rowtime"], pa.scalar(datetime(2013, 1, 11, tzinfo=UTC), records.INSTANT)))
    first = first.filter(pc.is_valid(first["departure"])).select(["origin", "departure"])
    half = first.num_rows // 2
    for number, part in enumerate((first.slice(0, half), first.slice(half))):
        pq.write_table(part, folder / f"{number}.parquet")
    return folder, first


def _hours(table: pa.Table) -> Hours:
    hours = pc.floor_temporal(table["departure"], unit="hour")
    return Counter(zip(table["origin"].to_pylist(), hours.to_pylist(), strict=True))


@pytest.mark.parametrize(("age", "loses"), [(0, True), (24, False)])
def test_departures_converge_to_the_batch_answer(
    spark: SparkSession, tmp_path: Path, january: tuple[Path, pa.Table], age: int, loses: bool
) -> None:
    folder, flights = january
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(SQL.format(folder=folder, age=age))
    query = pipeline.run_available(checkpoint=tmp_path / "checkpoint", limits=rt.Limits(files=1))
    fires = query.table("hourly")
    assert fires is not None
    latest: dict[tuple[str, datetime], tuple[int, int]] = {}
    for row in fires.to_pylist():
        group = (row["origin"], row["hour"])
        assert row["i"] == latest.get(group, (-1, 0))[0] + 1, "a fire is missing, or out of order"
        latest[group] = (row["i"], row["n"])
    refused = sum((_hours(pq.read_table(path)) for path in query.rejected("counted")), Hours())
    assert bool(refused) is loses
    assert {group: n for group, (_, n) in latest.items()} == _hours(flights) - refused
    assert any(i for i, _ in latest.values()) is not loses, "long flights correct the hour they began in"
