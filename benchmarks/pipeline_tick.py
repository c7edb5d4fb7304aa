"""How long a tick of a thousand rows takes through a whole pipeline, against one GROUP BY over the same rows.

The pipeline is a T-sort, groups, a join of groups with groups, OVER, and a sink of Parquet files. Its answer is
compared with that of Spark's batch. A first run of each, which is not counted, warms up.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

import rowtime as rt
from benchmarks.answers import compare
from benchmarks.data import Rows
from benchmarks.measurement import Measurement, Result, against, middle, settled

if TYPE_CHECKING:
    from benchmarks.engines import Engines

COLUMNS = ("w", "k", "c", "total", "sums")
SQL = """
CREATE STREAM s (ev TIMESTAMP, k BIGINT, v BIGINT) USING parquet OPTIONS (path '{source}');
CREATE STREAM o (w TIMESTAMP, k BIGINT, c BIGINT, total BIGINT, sums BIGINT)
  USING parquet OPTIONS (path '{output}');
CREATE VIEW f AS SELECT STREAM ev AS ROWTIME, k, v FROM s ORDER BY ev WITHIN INTERVAL '10' SECOND;
CREATE VIEW g AS SELECT STREAM FLOOR(f.ROWTIME TO MINUTE) AS w, k, COUNT(*) AS c, SUM(v) AS sv
  FROM f GROUP BY FLOOR(f.ROWTIME TO MINUTE), k;
CREATE VIEW j AS SELECT STREAM g.w AS w, g.k AS k, g.c AS c, g.sv AS sv, m.total AS total
  FROM g JOIN (SELECT STREAM FLOOR(f.ROWTIME TO MINUTE) AS w, SUM(v) AS total
    FROM f GROUP BY FLOOR(f.ROWTIME TO MINUTE)) AS m ON g.w = m.w;
CREATE PUMP p AS INSERT INTO o
SELECT STREAM w, k, c, total, SUM(sv) OVER (PARTITION BY k RANGE INTERVAL '5' MINUTE PRECEDING) AS sums FROM j;
"""
BATCH = """
WITH g AS (SELECT date_trunc('MINUTE', ev) AS w, k, COUNT(*) AS c, SUM(v) AS sv FROM s GROUP BY 1, 2)
SELECT g.w, g.k, g.c, m.total, SUM(g.sv) OVER (
  PARTITION BY g.k ORDER BY g.w RANGE BETWEEN INTERVAL '5' MINUTE PRECEDING AND CURRENT ROW
) AS sums
FROM g JOIN (SELECT w, SUM(sv) AS total FROM g GROUP BY w) AS m ON g.w = m.w
"""


def measure(engines: Engines, *, short: bool) -> Result:
    rows, rounds = Rows(100, 20 if short else 34, files=1, rows=1000, step=60_000), 1 if short else 4
    source = rows.folder()
    whole, one = [], []
    for number in range(rounds + 1):
        ticks, output = run(engines, source)
        group = engines.rowtime(source, 1)
        if number:
            whole.extend(settled(ticks))
            one.extend(settled(group.ticks))
    medians = {"pipeline": middle(whole), "group_by": middle(one)}
    return {
        "rows_a_tick": rows.rows,
        "ticks_measured": len(whole),
        "median_tick_ms": medians,
        "answers": {
            "batch": _compared(engines, source, output),
            "group_by": compare(group.output, engines.batch(source).output, rows.count),
        },
        "ratios": [against("group_by", medians["pipeline"] / medians["group_by"], 2.0, most=True)],
    }


def run(engines: Engines, source: Path) -> tuple[list[float], Path]:
    """Return the milliseconds of each tick, and the folder of the rows."""
    place, ticks = engines.fresh("pipeline"), []
    pipeline = rt.Pipeline(engines.spark, home=place / "home").sql(SQL.format(source=source, output=place / "out"))

    def listener(progress: dict[str, Any]) -> None:
        ticks.append(progress["durationMs"]["triggerExecution"])

    pipeline.run_available(place / "checkpoint", end=True, limits=rt.Limits(files=1), listener=listener)
    return ticks, place / "out"


def _compared(engines: Engines, source: Path, output: Path) -> str:
    session = engines.derived({})
    session.read.parquet(str(source)).createOrReplaceTempView("s")
    mine, other = _in_one_order(pq.read_table(output, columns=[*COLUMNS])), _in_one_order(session.sql(BATCH).toArrow())
    return "equal" if mine.equals(other) else f"{mine.num_rows} rows against {other.num_rows}, or values differ"


def _in_one_order(rows: pa.Table) -> pa.Table:
    """Return all columns as whole numbers; instants as µs, which Spark may have written as nanoseconds."""
    rows = rows.set_column(0, "w", rows["w"].cast(pa.timestamp("us", "UTC"), safe=False))
    plain = pa.table({name: rows[name].cast(pa.int64()) for name in COLUMNS})
    return plain.sort_by([(name, "ascending") for name in COLUMNS]).combine_chunks()


PIPELINE_TICK = Measurement(
    "pipeline_tick", "a tick of 1,000 rows: T-sort, groups, join of groups, OVER, against one GROUP BY", measure
)
