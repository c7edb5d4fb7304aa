"""Semi and anti joins of events with tables in a run: restarts, changed tables, a typed sink, verify, traces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.core.time import to_micros

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SQL = """
CREATE STREAM stays (came TIMESTAMP, went TIMESTAMP, room INT, guests INT) EVENT SHAPE EDGE (came, went);
CREATE TABLE rooms (room INT, beds INT) USING parquet OPTIONS (path '{folder}/rooms');
CREATE TABLE closed (room INT) USING parquet OPTIONS (path '{folder}/closed');
CREATE STREAM used (since TIMESTAMP, until TIMESTAMP, room INT, guests DECIMAL(10, 1))
  USING parquet OPTIONS (path '{folder}/out');
CREATE VIEW known AS SELECT STREAM s.room, s.guests FROM stays AS s LEFT SEMI JOIN rooms USING (room);
CREATE VIEW crowded AS SELECT STREAM k.room, k.guests FROM known AS k
  WHERE k.room NOT IN (SELECT room FROM closed)
  AND k.guests > (SELECT MAX(beds) FROM rooms AS r WHERE r.room = k.room);
CREATE PUMP p AS INSERT INTO used
  SELECT STREAM room, SUM(guests) AS guests FROM crowded GROUP BY SNAPSHOT(), room EMIT INTERVALS (since, until);
"""
STAYS = [
    [(0, None, 1, 3), (1, None, 2, 2), (2, None, 3, 9), (3, None, 4, 9)],
    [(0, 6, 1, 3), (4, None, 1, 5), (5, None, 2, 1), (1, 7, 2, 2)],
    [(4, 9, 1, 5), (3, 9, 4, 9), (2, 9, 3, 9), (5, 9, 2, 1)],
]
"""Room 2 is crowded with 2 guests, room 3 is closed, and room 4 is not in the table."""
EXPECTED = [(0, 4, 1, 3), (1, 7, 2, 2), (4, 6, 1, 8), (6, 9, 1, 5)]


def used(folder: Path) -> list[tuple[int, int, int, int]]:
    rows = pq.read_table(folder / "out").to_pylist()
    return sorted((to_micros(r["since"]), to_micros(r["until"]), r["room"], int(r["guests"])) for r in rows)


@pytest.mark.slow  # several starts
def test_events_meet_the_tables_of_the_first_start(spark: SparkSession, tmp_path: Path) -> None:
    rooms = spark.createDataFrame([(1, 1), (1, 2), (2, 1), (3, 1), (None, 9)], "room INT, beds INT")
    rooms.write.parquet(str(tmp_path / "rooms"))
    spark.createDataFrame([(3,)], "room INT").write.parquet(str(tmp_path / "closed"))
    made = rt.Pipeline(spark, home=tmp_path / "home").sql(SQL.format(folder=tmp_path))
    for stream in made.compile().defines:
        made.home.define(stream.name, stream.as_json())
    for n, stays in enumerate(STAYS):
        with rt.writer("stays", home=tmp_path / "home") as log:
            log.insert([dict(zip(("came", "went", "room", "guests"), stay, strict=True)) for stay in stays])
            log.set_rowtime_bound(4 * n + 4)
        made.run_available(tmp_path / "check")
        if not n:  # a later start does not use these rows
            spark.createDataFrame([(1,), (None,)], "room INT").write.mode("overwrite").parquet(str(tmp_path / "closed"))
    assert used(tmp_path) == EXPECTED
    made.run_available(tmp_path / "check")
    assert used(tmp_path) == EXPECTED
    found = rt.verify(tmp_path / "check", spark=spark, home=tmp_path / "home")
    assert found.equal, str(found)
    traced = made.run_available(tmp_path / "check").trace({"room": 1, "until": "1970-01-01 00:00:00.000006"})
    read = {item.columns["guests"] for item in traced.items if item.operator == "stays" and item.kind == "insert"}
    assert read == {3, 5}
