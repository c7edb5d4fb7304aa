"""A Delta table is profiled in the order of its versions, and the statement of the profile reads it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

import rowtime as rt
from rowtime.core.time import SECOND

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = 1_700_000_000 * SECOND


def test_a_run_over_the_table_refuses_what_the_profile_says(spark: SparkSession, tmp_path: Path) -> None:
    from deltalake import write_deltalake

    place = tmp_path / "taps"
    for version in range(3):
        times = [START + (version * 50 + n - (n % 7) * (20 if n % 10 == 0 else 1)) * SECOND for n in range(100)]
        table = pa.table({"at": pa.array(times, pa.timestamp("us", "UTC")), "n": pa.array(range(100), pa.int64())})
        write_deltalake(str(place), table, mode="append")
    profile = rt.profile(place, spark=spark, home=tmp_path / "home", keep=0.9)
    assert profile.rows == 300
    assert profile.facts.late.rows > 100
    script = f"{profile.statement}; SELECT STREAM n FROM taps_table_in_order"
    query = rt.Pipeline(spark, home=tmp_path / "home").sql(script).run_available(tmp_path / "c")
    assert query.ledger["taps_table_in_order"]["LATE"] == profile.late_rows(profile.within) > 0
