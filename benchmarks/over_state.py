"""Whether the state of OVER, and the cost of a tick, stay the same after ten times as many ticks."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

import rowtime as rt
from benchmarks.data import BEGINNING, table, write
from benchmarks.measurement import Measurement, Result, against, middle

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.engines import Engines

KEYS, ROWS, STEP = 100, 1000, 10_000  # a tick spans 10 s, so the range holds the rows of three
SQL = """
CREATE STREAM r (k BIGINT, v BIGINT) USING parquet OPTIONS (path '{place}/in', rowtime.column 'ev');
CREATE STREAM o (k BIGINT, c BIGINT, s BIGINT, l BIGINT) USING parquet OPTIONS (path '{place}/out');
CREATE PUMP p AS INSERT INTO o SELECT STREAM k, COUNT(*) OVER (w RANGE INTERVAL '30' SECOND PRECEDING) AS c,
  SUM(v) OVER w AS s, LAG(v) OVER w AS l FROM r WINDOW w AS (PARTITION BY k);
"""


def measure(engines: Engines, *, short: bool) -> Result:
    """The files come while the query runs, one per tick; the last ticks of each stretch are measured."""
    early = 24 if short else 40
    seen = early // 2
    place = engines.fresh("over-state")
    (place / "in").mkdir()
    spent: list[float] = []
    kept: list[int] = []

    def listener(progress: dict[str, Any]) -> None:
        spent.append(progress["durationMs"]["triggerExecution"])
        kept.append(sum(operator["numRowsTotal"] for operator in progress["stateOperators"]))
        if len(spent) < early * 10:
            _next(place / "in", len(spent))

    _next(place / "in", 0)
    pipeline = rt.Pipeline(engines.spark, home=place / "home").sql(SQL.format(place=place))
    query = pipeline.start(place / "checkpoint", limits=rt.Limits(files=1), interval=0.005, listener=listener)
    while len(spent) < early * 10 and query.exception is None:
        time.sleep(0.05)
    query.stop()
    query.awaitTermination()
    rows = {"early": max(kept[early - seen : early]), "late": max(kept[-seen:])}
    ticks = {"early": middle(spent[early - seen : early]), "late": middle(spent[-seen:])}
    return {
        "ticks": {"early": early, "late": len(spent)},
        "rows_a_tick": ROWS,
        "most_rows_kept": rows,
        "median_tick_ms": ticks,
        "ratios": [
            against("rows kept by a tenth of the ticks", rows["late"] / rows["early"], 1.3, most=True),
            against("ticks of the first tenth", ticks["late"] / ticks["early"], 1.3, most=True),
        ],
    }


def _next(source: Path, number: int) -> None:
    random = np.random.default_rng(number)
    times = BEGINNING + (np.arange(ROWS) + number * ROWS) * STEP
    write(source, number, table(times, random.integers(0, KEYS, ROWS), random))


OVER_STATE = Measurement("over_state", "what OVER keeps after ten times as many ticks, and what a tick costs", measure)
