"""Static tables are copied by Spark before the steps of a tick, whose rows are computed in a task."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.runtime.executors.executor import Executor, InProcess, SparkJob
from rowtime.runtime.executors.tasks import Tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """
CREATE STREAM sales (oid INT, item INT, qty INT);
CREATE TABLE items (item INT, price INT) USING parquet OPTIONS (path '{items}');
CREATE TABLE prices (item INT, price INT) USING parquet OPTIONS (path '{prices}') REFRESH EVERY INTERVAL '1' HOUR;
CREATE STREAM totals (m TIMESTAMP, item INT, total BIGINT) USING parquet OPTIONS (path '{out}');
CREATE VIEW dear (item, price) AS SELECT item, MAX(price) FROM items GROUP BY item;
CREATE VIEW priced AS SELECT STREAM s.oid, s.item, d.price * s.qty AS total
  FROM sales AS s JOIN dear AS d ON d.item = s.item WHERE s.qty < (SELECT MAX(price) FROM items);
CREATE PUMP p AS INSERT INTO totals SELECT STREAM FLOOR(v.ROWTIME TO MINUTE) AS m, item, SUM(total) AS total
  FROM priced AS v GROUP BY FLOOR(v.ROWTIME TO MINUTE), item;
SELECT STREAM s.oid, p.price FROM sales AS s JOIN prices AS p ON p.item = s.item;
"""
HOUR = 3_600_000_000
START = 1_704_103_200_000_000  # 2024-01-01 10:00


def run(spark: SparkSession, place: Path, how: Executor | None) -> dict[str, Any]:
    """Three ticks, the table of prices changes after the second one; each from a new start."""
    paths = {name: place / name for name in ("items", "prices", "out")}
    write(paths["items"], [(1, 10), (1, 9), (2, 5)])
    write(paths["prices"], [(1, 10), (2, 5)])
    got, needs, stepped = list[Any](), list[str](), list[str]()
    for tick in range(3):
        if tick == 2:
            write(paths["prices"], [(1, 11), (2, 6), (3, 1)])
        pipeline = rt.Pipeline(spark, home=place / "home").sql(SQL.format(**paths))
        for stream in pipeline.compile().defines if tick == 0 else ():
            if stream.format == "log":
                pipeline.home.define(stream.name, stream.as_json())
        times = [f"2024-01-01 10:0{tick}:{n:02}" for n in range(9)]
        with rt.writer("sales", home=place / "home") as log:
            log.insert([{"rowtime": at, "oid": n, "item": 1 + n % 3, "qty": 1 + n} for n, at in enumerate(times)])
        pipeline.sink("result", lambda batch: got.extend(batch.table().to_pylist()))
        engine = pipeline._engine(place / "check", rt.Limits(), ends=tick == 2)
        engine.clock = partial(int, START + tick * HOUR)
        engine.tasks = None if how is None else Tasks(how)
        engine.tap = lambda node, _delta: stepped.append(node.name)
        while engine.tick() is not None:
            pass
        needs += [engine.tasks.needs] if engine.tasks is not None else []
        engine.stop()
    totals = [row for path in sorted(paths["out"].glob("*.parquet")) for row in pq.read_table(path).to_pylist()]
    return {"rows": got, "totals": totals, "needs": needs, "stepped": stepped}


def write(folder: Path, rows: list[tuple[int, int]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    table = {
        "item": pa.array([row[0] for row in rows], pa.int32()),
        "price": pa.array([row[1] for row in rows], pa.int32()),
    }
    pq.write_table(pa.table(table), folder / "rows.parquet")


@pytest.mark.parametrize("how", [InProcess(), SparkJob()])
def test_a_tick_that_copies_tables_is_computed_in_a_task(spark: SparkSession, tmp_path: Path, how: Executor) -> None:
    driver, sent = (run(spark, tmp_path / name, way) for name, way in (("driver", None), ("sent", how)))
    assert len(driver["rows"]) == 2 * 6 + 9
    assert [row["price"] for row in driver["rows"]] == [10, 5] * 6 + [11, 6, 1] * 3
    assert driver["totals"]
    assert sent["rows"] == driver["rows"]
    assert sent["totals"] == driver["totals"]
    assert sent["needs"] == [""] * 3
    assert driver["stepped"]
    assert sent["stepped"] == []  # no operator has stepped on the driver, but for the tables themselves
