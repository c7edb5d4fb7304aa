"""Real flights: hourly arrivals and departures of each airport, corrected when late records arrive.

A record is delivered when its flight ends. Arrivals are counted in the hour of the schedule, so records of delayed
flights are late; departures in the hour of the departure, so records of long flights are late.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
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
CREATE STREAM flights (airport STRING, at TIMESTAMP) EVENT TIME (at, LAG INTERVAL '30' MINUTE)
  USING parquet OPTIONS (path '{folder}');
CREATE STREAM hourly (airport STRING, hour TIMESTAMP, n BIGINT, i BIGINT) USING memory;
CREATE VIEW counted AS SELECT STREAM airport, PANE_START AS hour, COUNT(*) AS n, PANE_INDEX AS i FROM flights
  GROUP BY PANES(at, DURATION INTERVAL '1' HOUR, DISCARD AGE INTERVAL '{age}' SECOND), airport;
CREATE PUMP p AS INSERT INTO hourly SELECT STREAM * FROM counted;
"""


@pytest.fixture(scope="module", params=["arrivals", pytest.param("departures", marks=pytest.mark.slow)])
def flights(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pa.Table]:
    """Ten days of January in the order of delivery, as a directory of two files."""
    folder = tmp_path_factory.mktemp(request.param)
    table = pa.concat_tables(records.by_airport().values()).sort_by("rowtime")
    table = table.filter(pc.less(table["rowtime"], pa.scalar(datetime(2013, 1, 11, tzinfo=UTC), records.INSTANT)))
    delay = pc.multiply(table["arr_delay"].cast(pa.int64()), records.MINUTE).cast(pa.duration("us"))
    due = {"airport": table["dest"], "at": pc.subtract(table["rowtime"], delay)}
    left = {"airport": table["origin"], "at": table["departure"]}
    found = pa.table(due if request.param == "arrivals" else left)
    found = found.filter(pc.is_valid(found["at"]))
    half = found.num_rows // 2
    for number, part in enumerate((found.slice(0, half), found.slice(half))):
        pq.write_table(part, folder / f"{number}.parquet")
    return folder, found


def _hours(table: pa.Table) -> Hours:
    hours = pc.floor_temporal(table["at"], unit="hour")
    return Counter(zip(table["airport"].to_pylist(), hours.to_pylist(), strict=True))


def _least_age(flights: pa.Table) -> int:
    """The least discard age (seconds) that refuses no record: the greatest distance of a record below its bound."""
    times = flights["at"].cast(pa.int64()).to_numpy() // 1_000_000
    bounds = np.maximum.accumulate(times)[:-1] - 30 * 60
    return int((bounds - times[1:]).max())


@pytest.mark.parametrize(
    ("more", "loses"),
    [
        pytest.param(None, True, id="none"),
        pytest.param(-60, True, id="a minute short", marks=pytest.mark.slow),
        pytest.param(0, False, id="just enough"),
        pytest.param(3600, False, id="an hour more", marks=pytest.mark.slow),
        pytest.param(30 * 86400, False, id="all the time", marks=pytest.mark.slow),
    ],
)
def test_hours_converge_to_the_batch_answer(
    spark: SparkSession, tmp_path: Path, flights: tuple[Path, pa.Table], more: int | None, loses: bool
) -> None:
    folder, delivered = flights
    age = 0 if more is None else _least_age(delivered) + more
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(SQL.format(folder=folder, age=age))
    query = pipeline.run_available(checkpoint=tmp_path / "checkpoint", end=True, limits=rt.Limits(files=1))
    fires = query.table("hourly")
    assert fires is not None
    latest: dict[tuple[str, datetime], tuple[int, int]] = {}
    for row in fires.to_pylist():
        group = (row["airport"], row["hour"])
        assert row["i"] == latest.get(group, (-1, 0))[0] + 1, "a fire is missing, or out of order"
        latest[group] = (row["i"], row["n"])
    refused = sum((_hours(pq.read_table(path)) for path in query.rejected("counted")), Hours())
    assert bool(refused) is loses
    assert {group: n for group, (_, n) in latest.items()} == _hours(delivered) - refused
    assert any(i for i, _ in latest.values()) is (age > 0), "late records correct their hour"
