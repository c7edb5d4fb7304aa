"""A CHECK or the type of a target that cannot be computed for a row refuses it, where its tick is computed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.runtime.executors.executor import InProcess
from rowtime.runtime.executors.tasks import Tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """
CREATE STREAM a (n BIGINT CHECK (10 DIV n > -99), ev TIMESTAMP)
  USING parquet OPTIONS (path '{source}', rowtime.column 'ev');
CREATE STREAM o (n INT CHECK (10 DIV (n - 1) > -99)) USING parquet OPTIONS (path '{out}');
CREATE PUMP p AS INSERT INTO o SELECT STREAM n FROM a;
"""


def run(spark: SparkSession, place: Path, tasks: Tasks | None) -> tuple[Any, ...]:
    """The rows, the ledger, and the operators that stepped on the driver."""
    (place / "in").mkdir(parents=True)
    times = pa.array([1_704_067_200_000_000 + n for n in range(5)], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"n": [1, 0, 2**40, None, 7], "ev": times}), place / "in" / "0.parquet")
    pipeline = rt.Pipeline(spark, home=place / "home").sql(SQL.format(source=place / "in", out=place / "out"))
    engine = pipeline._engine(place / "check", rt.Limits(), ends=True)
    stepped = set[str]()
    engine.tasks = tasks
    engine.tap = lambda node, _delta: stepped.add(node.name)
    engine.tick()
    totals = engine.entry["totals"]
    engine.stop()
    rows = [row["n"] for path in (place / "out").glob("*.parquet") for row in pq.read_table(path).to_pylist()]
    return rows, {gate: totals[gate] for gate in ("a", "p")}, stepped


@pytest.mark.parametrize("how", ["driver", "tasks"])
def test_rows_that_fail_are_refused_where_the_tick_is_computed(spark: SparkSession, tmp_path: Path, how: str) -> None:
    tasks = Tasks(InProcess()) if how == "tasks" else None
    rows, totals, stepped = run(spark, tmp_path, tasks)
    assert rows == [None, 7]
    assert totals == {
        "a": {"in": 5, "accepted": 4, "MALFORMED": 1},
        "p": {"in": 4, "accepted": 2, "MALFORMED": 2},
    }
    assert bool(stepped) == (tasks is None)
    assert tasks is None or not tasks.needs
