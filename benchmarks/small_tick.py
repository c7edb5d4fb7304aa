"""How long a tick of a thousand rows takes, against Spark's own streaming engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.answers import compare
from benchmarks.data import Rows
from benchmarks.measurement import Measurement, Result, against, middle, settled

if TYPE_CHECKING:
    from benchmarks.engines import Engines

MOST = 150  # ms


def measure(engines: Engines, *, short: bool) -> Result:
    # A tick spans a minute, so that each closes a window and writes a file.
    rows, rounds = Rows(100, 20 if short else 34, files=1, rows=1000, step=60_000), 1 if short else 4
    source = rows.folder()
    ours, theirs = [], []
    for number in range(rounds + 1):
        run, native = engines.rowtime(source, 1), engines.native(source, 1)
        if number:
            ours.extend(settled(run.ticks))
            theirs.extend(settled(native.ticks))
    return {
        "rows_a_tick": rows.rows,
        "ticks_measured": len(ours),
        "median_tick_ms": {"rowtime": middle(ours), "default": middle(theirs)},
        "whole_run_ms_a_tick": {"rowtime": int(run.total / rows.ticks), "default": int(native.total / rows.ticks)},
        "answers": {"default": compare(run.output, native.output, rows.count)},
        "ratios": [
            against("default", middle(ours) / middle(theirs), 0.4, most=True),
            against(f"{MOST} ms", middle(ours) / MOST, 1.0, most=True),
        ],
    }


SMALL_TICK = Measurement("small_tick", "median latency of a tick of 1,000 rows, GROUP BY, Parquet out", measure)
