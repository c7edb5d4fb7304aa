"""Files that any process reads with Arrow: no job of Spark on the driver, one in tasks, the same rows everywhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from tests.runtime.test_scanned_sources import TICKS, WAYS, followed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL: Final = """
CREATE STREAM a (v BIGINT, ev TIMESTAMP, k STRING, day DATE, n INT, yes BOOLEAN) {source};
CREATE STREAM minutes (m TIMESTAMP, k STRING, day DATE, yes BOOLEAN, c BIGINT, s BIGINT, n BIGINT)
  USING parquet OPTIONS (path '{{out}}');
CREATE VIEW sorted AS SELECT STREAM ev AS ROWTIME, * FROM a ORDER BY ev WITHIN INTERVAL '10' SECOND;
CREATE PUMP p AS INSERT INTO minutes
  SELECT STREAM FLOOR(t.ROWTIME TO MINUTE) AS m, k, day, yes, COUNT(*) AS c, SUM(v) AS s, SUM(n) AS n
  FROM sorted AS t GROUP BY FLOOR(t.ROWTIME TO MINUTE), k, day, yes;
SELECT STREAM * FROM sorted;
"""
BEGIN: Final = datetime(2024, 1, 1, 10, tzinfo=UTC)
FOLDERS: Final = ("k=a%2Fb/day=2024-01-01/n=-1/yes=true", "k=__HIVE_DEFAULT_PARTITION__/day=1500-01-01/n=7/yes=false")
ZONES: Final[Mapping[str, pa.DataType]] = {
    "none": pa.timestamp("us"), "ms": pa.timestamp("ms"), "Berlin": pa.timestamp("us", "Europe/Berlin")
}  # fmt: skip


def rows_of(tick: int) -> dict[str, list[Any]]:
    """Five rows of a minute, of which the last one is late in the second tick."""
    late = timedelta(hours=tick == 1)
    times = [BEGIN + timedelta(minutes=tick, seconds=second) for second in (0, 20, 14, 40, 55)]
    return {"v": [n + tick for n in range(5)], "ev": [*times[:4], times[4] - late]}


def partitioned_parquet(place: Path) -> str:
    for tick, kind in enumerate(ZONES.values()):
        table = pa.table(rows_of(tick))
        file = place / "a" / FOLDERS[tick % 2] / f"{tick}.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        naive = table["ev"].cast(pa.timestamp("us", "UTC")).cast(kind)
        pq.write_table(pa.table({"ev": naive, "v": table["v"].cast(pa.int32())}), file)
        os.utime(file, (1_700_000_000 + tick, 1_700_000_000 + tick))
    return "USING parquet PARTITIONED BY (k, day, n, yes) OPTIONS (path '{a}')"


def partitioned_csv(place: Path) -> str:
    for tick in range(TICKS):
        given = rows_of(tick)
        file = place / "a" / FOLDERS[tick % 2] / f"{tick}.csv"
        file.parent.mkdir(parents=True, exist_ok=True)
        lines = [f"{v},{at:%Y-%m-%dT%H:%M:%SZ}" for v, at in zip(given["v"], given["ev"], strict=True)]
        file.write_text("\n".join(["v,ev", *lines]) + "\n")
        os.utime(file, (1_700_000_000 + tick, 1_700_000_000 + tick))
    return "USING csv PARTITIONED BY (k, day, n, yes) OPTIONS (path '{a}', header 'true')"


def delta_table(place: Path) -> str:
    for tick in range(TICKS):
        given = pa.table(rows_of(tick))
        days = pa.array([date(2024, 1, 1 + tick)] * 5)
        keys = {
            "k": pa.array(["a/b", None, "c", "c", "a/b"]),
            "day": days,
            "n": pa.repeat(pa.scalar(tick, pa.int32()), 5),
        }
        table = pa.table(
            {"v": given["v"], "ev": given["ev"].cast(pa.timestamp("us", "UTC")), **keys, "yes": [True] * 5}
        )
        write_deltalake(str(place / "a"), table, partition_by=["day", "yes"], mode="append")
    return "USING delta OPTIONS (path '{a}', startingVersion '0')"


@pytest.mark.parametrize("write", [partitioned_parquet, partitioned_csv, delta_table])
def test_every_way_gives_the_same_rows(spark: SparkSession, tmp_path: Path, write: Callable[[Path], str]) -> None:
    found = dict[str, Mapping[str, Any]]()
    for way in WAYS:
        place = tmp_path / str(len(way))
        found[way] = followed(spark, place, way, SQL.format(source=write(place)))
    in_tasks, here = (found[way] for way in WAYS)
    assert sum(len(rows) for _, _, rows in here["rows"]) == 5 * TICKS - 1
    assert here["totals"]["sorted"]["LATE"] == 1
    for name in ("minutes", "totals", "clocks"):
        assert in_tasks[name] == here[name], name
    assert [row for _, _, rows in in_tasks["rows"] for row in rows] == [
        row for _, _, rows in here["rows"] for row in rows
    ]
    assert {*here["jobs"]} == {0}
    assert {*in_tasks["jobs"]} == {1}
    assert (in_tasks["needs"], in_tasks["rounds"]) == ("", 0)


def test_values_of_folders_that_spark_may_read_differently_are_left_to_it(spark: SparkSession, tmp_path: Path) -> None:
    for tick, texts in enumerate((("1", "007"), ("0", "-5"))):
        file = tmp_path / "a" / "yes={}/n={}".format(*texts) / f"{tick}.parquet"
        file.parent.mkdir(parents=True)
        pq.write_table(pa.table({"v": [tick]}), file)
    source = "USING parquet PARTITIONED BY (yes, n) OPTIONS (path '{a}')"
    sql = f"CREATE STREAM a (v BIGINT, yes BOOLEAN, n INT) {source}; SELECT STREAM v, yes, n FROM a;"
    found = followed(spark, tmp_path, "in tasks", sql)
    assert found["jobs"] == [1, 1]
    rows = [row for _, _, rows in found["rows"] for row in rows]
    assert [(row["yes"], row["n"]) for row in rows] == [(True, 7), (False, -5)]
