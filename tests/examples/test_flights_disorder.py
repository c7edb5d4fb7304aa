"""Flights in order of arrival at the gate, with their departures as event times: which are late, which are early."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

import rowtime as rt
from examples.flights import independent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(8)

HOURS = (0, 1, 2, 3, 12)
VIEWS = "".join(
    f"""CREATE VIEW within_{h} AS SELECT STREAM departure AS ROWTIME, flight FROM gates
      ORDER BY departure WITHIN INTERVAL '{h}' HOUR;
      CREATE PUMP p{h} AS INSERT INTO sink SELECT STREAM flight FROM within_{h};\n"""
    for h in HOURS
)
FLIGHTS = 20_000  # the first weeks of the year, which do not take long


def departures(airport: str = "LGA") -> pa.Array:
    """Departures in the order in which the flights arrived; null for a cancelled flight."""
    flights = independent.deliveries()[airport][:FLIGHTS]
    return pa.array([flight.departure for flight in flights], pa.timestamp("us", "UTC"))


def late(times: pa.Array, within: timedelta) -> int:
    """The same count in plain numpy: times that lie below the running maximum by more than the tolerance."""
    known = times.drop_null().cast(pa.int64()).to_numpy()
    before = np.concatenate(([known[0]], np.maximum.accumulate(known)[:-1]))
    return int((known + within // timedelta(microseconds=1) < before).sum())


def pipeline(spark: SparkSession, folder: Path, times: pa.Array, sql: str) -> tuple[rt.Pipeline, list[int]]:
    got: list[int] = []
    made = rt.Pipeline(spark, home=folder / "home").sql("CREATE STREAM gates (departure TIMESTAMP, flight INT);" + sql)
    made.sink("sink", lambda batch: got.extend(batch.table()["flight"].to_pylist() if batch.count else []))
    for stream in made.compile().defines:
        made.home.define(stream.name, stream.as_json(), replace=True)
    with rt.writer("gates", home=folder / "home", writer="lga") as log:
        log.insert(pa.table({"departure": times, "flight": pa.array(range(len(times)), pa.int32())}))
        log.end()
    return made, got


def test_late_flights_at_several_tolerances(spark: SparkSession, tmp_path: Path) -> None:
    times = departures()
    made, _ = pipeline(spark, tmp_path, times, VIEWS)
    ledger = made.run_available(tmp_path / "check", end=True).ledger
    counts = {h: ledger[f"within_{h}"].get("LATE", 0) for h in HOURS}
    assert counts == {h: late(times, timedelta(hours=h)) for h in HOURS}
    assert counts[0] > counts[1] > counts[3] > 0
    for h in HOURS:
        assert ledger[f"within_{h}"]["in"] == FLIGHTS
        assert ledger[f"within_{h}"]["NULL_ROWTIME"] == times.null_count
        assert sum(n for reason, n in ledger[f"within_{h}"].items() if reason != "in") == FLIGHTS


ONE = """CREATE VIEW good AS SELECT STREAM departure AS ROWTIME, flight FROM gates
  ORDER BY departure WITHIN INTERVAL '24' HOUR{};
  CREATE PUMP p AS INSERT INTO sink SELECT STREAM flight FROM good;"""


@pytest.mark.parametrize("guard", ["", " EARLY BEYOND INTERVAL '7' DAY"], ids=["without the guard", "with the guard"])
def test_one_record_of_the_year_2099(spark: SparkSession, tmp_path: Path, guard: str) -> None:
    times = departures()
    wrong = FLIGHTS // 2
    future = pa.array([rt_time("2099-01-01")], pa.timestamp("us", "UTC"))
    poisoned = pa.concat_arrays([times[:wrong], future, times[wrong:]])
    made, got = pipeline(spark, tmp_path, poisoned, ONE.format(guard))
    query = made.run_available(tmp_path / "check", end=True)
    named = [found for found in query.waiting() if found.kind == "poisoned clock"]
    if guard:
        expected = [n for n, known in enumerate(poisoned.is_valid().to_pylist()) if known and n != wrong]
        lost = late(times, timedelta(hours=24))
        assert len(got) == len(expected) - lost
        assert set(got) <= set(expected)
        assert query.ledger["good"]["EARLY"] == 1
        assert named == []
    else:
        assert query.ledger["good"]["LATE"] > FLIGHTS // 3
        assert f"row {wrong} of writer lga of gates raised the clock of good" in str(named[0])
        assert "2099-01-01 00:00:00" in str(named[0])


def rt_time(text: str) -> int:
    """An instant in µs."""
    return int(np.datetime64(text, "us").astype(np.int64))
