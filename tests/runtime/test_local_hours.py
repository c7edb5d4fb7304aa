"""Groups by hours of a fixed offset, and by local days with CONVERT_TIMEZONE: their rows, and when they end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.runtime.sinks.contract import Batch

ROWS = [
    "2025-03-29T22:59:59Z",
    "2025-03-29T23:00:00Z",
    "2025-03-30T21:59:59Z",
    "2025-03-30T22:00:00Z",
    "2025-03-30T22:29:59Z",
    "2025-03-30T22:30:00Z",
]
DAYS = [
    ("2025-03-29 23:00:00", "2025-03-29", 1),
    ("2025-03-30 22:00:00", "2025-03-30", 2),
    ("2025-03-31 22:00:00", "2025-03-31", 3),
]
HOURS = [
    ("2025-03-29 23:30:00", "2025-03-30 04:00:00", 2),
    ("2025-03-30 22:30:00", "2025-03-31 03:00:00", 3),
    ("2025-03-30 23:30:00", "2025-03-31 04:00:00", 1),
]
KEYS: dict[str, list[tuple[str, str, int]]] = {
    "CAST(CONVERT_TIMEZONE('UTC', 'Europe/Berlin', t) AS DATE)": DAYS,
    "CAST(CONVERT_TIMEZONE('Europe/Berlin', t) AS DATE)": DAYS,
    "CAST(CONVERT_TIMEZONE('+00:00', 'Europe/Berlin', t) AS DATE)": DAYS,
    "FLOOR(FROM_UTC_TIMESTAMP(t, '+05:30') TO HOUR)": HOURS,
    "FLOOR(CONVERT_TIMEZONE('UTC', '+05:30', t) TO HOUR)": HOURS,
}


@pytest.mark.parametrize("key", KEYS)
def test_groups_end_with_the_local_time(spark: SparkSession, tmp_path: Path, key: str) -> None:
    (tmp_path / "s").mkdir()
    lines = (json.dumps({"t": at}) for at in ROWS)
    (tmp_path / "s" / "1.json").write_text("\n".join(lines))
    got: list[tuple[Any, ...]] = []

    def take(batch: Batch) -> None:
        rows = batch.table().to_pylist() if batch.count else []
        got.extend((f"{row['rowtime']:%Y-%m-%d %H:%M:%S}", row["k"], row["n"]) for row in rows)

    sql = (
        f"CREATE STREAM s (t TIMESTAMP NOT NULL) USING json OPTIONS (path '{tmp_path / 's'}', rowtime.column 't');"
        f"SELECT STREAM CAST({key} AS STRING) AS k, COUNT(*) AS n FROM s GROUP BY {key}"
    )
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(sql).sink("result", take)
    pipeline.run_available(tmp_path / "checked", end=True)
    assert got == KEYS[key]
