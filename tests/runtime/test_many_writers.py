"""A stream of ten thousand writers: each has a clock, and all of them are one stream."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.core.columns import POSITION, WRITER
from rowtime.core.time import END
from rowtime.frames.frame import Frame
from rowtime.operators.rows.by_writer import FEW, beside

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(4)

WRITERS = 10_000
START = 1_704_103_200_000_000  # 2024-01-01 10:00 UTC, µs
MINUTE = 60_000_000
SQL = """
CREATE VIEW f AS SELECT STREAM ev AS ROWTIME, v FROM s ORDER BY ev WITHIN INTERVAL '10' SECOND;
CREATE STREAM o (m TIMESTAMP, c BIGINT, t BIGINT) USING parquet OPTIONS (path '{out}');
CREATE PUMP p AS INSERT INTO o SELECT STREAM FLOOR(f.ROWTIME TO MINUTE) AS m, COUNT(*) AS c, SUM(v) AS t FROM f
  GROUP BY FLOOR(f.ROWTIME TO MINUTE);
"""


def items(tick: int) -> list[dict[str, Any]]:
    """A row of each writer in its minute; every tenth sends one row of two minutes before."""
    late = tick == 2
    return [
        {"w": f"partition {n}", "p": tick, "ev": START + (0 if late and n % 10 == 1 else tick * MINUTE) + n, "v": n}
        for n in range(WRITERS)
        if n or tick != 3  # the first is silent in the last tick
    ]


@pytest.mark.slow
def test_ten_thousand_writers_are_one_stream(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.readStream.schema("w STRING, p BIGINT, ev TIMESTAMP, v BIGINT").parquet(str(tmp_path))
    made = rt.Pipeline(spark, home=tmp_path / "home").source("s", frame, writer="w", position="p")
    engine = made.sql(SQL.format(out=tmp_path / "out"))._engine(tmp_path / "check", rt.Limits(), ends=False)
    wanted: dict[int, Counter[str]] = {}
    for tick in range(4):
        rows = items(tick)
        engine.sources["s"].hand(tick, spark.createDataFrame(pa.Table.from_pylist(rows)).selectExpr(
            "w", "p", "timestamp_micros(ev) AS ev", "v"))  # fmt: skip
        report = engine.tick()
        assert report is not None
        late = sum(tick == 2 and row["ev"] < START + MINUTE for row in rows)
        assert late == (WRITERS // 10 if tick == 2 else 0)
        counts = {"in": len(rows), "accepted": len(rows) - late} | ({"LATE": late} if late else {})
        assert dict(report.ledger["f"]) == counts
        for row in rows:
            if tick != 2 or row["ev"] >= START + MINUTE:
                group = wanted.setdefault((row["ev"] - START) // MINUTE, Counter())
                group.update(c=1, t=row["v"])
    # The first writer has shown minute 2; less the tolerance, only minute 0 is known to be complete.
    found = [row for path in (tmp_path / "out").glob("part-*") for row in pq.read_table(path).to_pylist()]
    assert [(row["c"], row["t"]) for row in found] == [(wanted[0]["c"], wanted[0]["t"])]
    assert len(engine.entry["clocks"]["f"]) == WRITERS
    assert min(engine.entry["clocks"]["f"].values()) == START + 2 * MINUTE - 10_000_000
    engine.close()
    engine.stop()


@pytest.mark.parametrize("count", [0, 3, FEW + 1])
def test_a_time_is_joined_to_the_rows_of_its_writer(spark: SparkSession, count: int) -> None:
    times = {f"w{n}'": START + n for n in range(count)}
    columns = [(WRITER, "string"), (POSITION, "bigint"), ("x", "int")]
    table = pa.Table.from_pylist([{WRITER: w, POSITION: 7, "x": 1} for w in (*times, "other", None)])
    rows = Frame.of(spark, table, columns)
    found = beside(rows, times, "at").selectExpr(WRITER, "x", "unix_micros(at) AS at").collect()
    assert sorted(map(repr, map(tuple, found))) == sorted(
        repr((w, 1, times.get(w or ""))) for w in (*times, "other", None)
    )
    assert START + count < END
