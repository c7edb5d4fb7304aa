"""How long a row takes from its arrival in a stream log to the call of a sink function, at 1,000 rows per second.

A process of its own writes (`log_writer.py`), and a continuous query passes the rows to a function here. A row that is
inserted without a rowtime has its arrival time as rowtime, so the function knows both times. Rows of the first seconds,
in which Java compiles, do not count.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import rowtime as rt
from benchmarks.measurement import Measurement, Result, against

if TYPE_CHECKING:
    from benchmarks.engines import Engines

RATE = 1000  # rows a second
WARM, PATIENCE = 5, 60  # seconds
MOST = {50: 150, 99: 400}  # ms: of each percentile
SQL = """
CREATE STREAM s (n BIGINT);
SELECT STREAM n, n * 2 AS twice FROM s;
"""


class Sink:
    """Receives rows: keeps them, and the milliseconds since the arrival of each."""

    def __init__(self) -> None:
        self.numbers: list[np.ndarray] = []
        self.waited: list[np.ndarray] = []
        self.count = 0

    def __call__(self, batch: rt.Batch) -> None:
        now = time.time_ns() // 1000
        if batch.count:
            rows = batch.table()
            self.numbers.append(rows["n"].to_numpy())
            self.waited.append((now - rows["rowtime"].cast(pa.int64()).to_numpy()) / 1000)
            self.count += batch.count


def measure(engines: Engines, *, short: bool) -> Result:
    seconds = WARM + (15 if short else 60)
    rows, sink, place = seconds * RATE, Sink(), engines.fresh("latency")
    query = rt.Pipeline(engines.spark, home=place / "home").sql(SQL).sink("result", sink).start(place / "checkpoint")
    took = _write(place / "home", rows)
    until = time.monotonic() + PATIENCE
    while sink.count < rows and query.exception is None and time.monotonic() < until:
        time.sleep(0.05)
    query.stop()
    query.awaitTermination()
    numbers = np.concatenate(sink.numbers)
    waited = np.concatenate(sink.waited)[WARM * RATE :]
    found = {percent: float(np.percentile(waited, percent)) for percent in MOST}
    return {
        "rows_a_second": round(rows / took),
        "rows": len(waited),
        "calls": len(sink.numbers),
        "ms": {f"p{percent}": round(ms, 1) for percent, ms in found.items()},
        "answers": {
            "written": "equal" if np.array_equal(numbers, np.arange(rows)) else f"{len(numbers)} of {rows} rows"
        },
        "ratios": [
            against(f"p{percent}, {MOST[percent]} ms", ms / MOST[percent], 1.0, most=True)
            for percent, ms in found.items()
        ],
    }


def _write(home: Path, rows: int) -> float:
    """Let another process write a number of rows. Return the seconds that it took."""
    command = [sys.executable, "-m", "benchmarks.log_writer", str(home), str(rows), str(RATE)]
    said = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[1]).stdout
    return float(said)


LATENCY = Measurement(
    "latency", "from a row's arrival in a stream log to a sink function, 1,000 rows a second", measure
)
