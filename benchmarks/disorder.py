"""Rows a second through a T-sort to an ordered sink and through the guard, at several shares of late rows.

Spark has neither: its line is its own aggregate by minute over the same files, which drops
late rows and keeps none of them.
"""

from __future__ import annotations

import resource
import time
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

import rowtime as rt
from benchmarks.data import BEGINNING, CACHE, SECOND, table, write
from benchmarks.measurement import Measurement, Result, against, middle

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.engines import Engines

FILE, STEP, TICK = 500_000, 1000, 2  # rows of a file, µs from row to row, files a tick
SHARES = (0, 1, 10, 50)  # % of the rows that lie behind, two thirds of them beyond the tolerance
QUICK = (10,)
TOLERANCE, BEHIND = 10, 30  # seconds
LEAST = 1_000_000  # rows a second with the ledger

DECLARED = """CREATE STREAM s (ev TIMESTAMP, k BIGINT, v BIGINT) USING parquet OPTIONS (path '{source}');
CREATE VIEW f AS SELECT STREAM ev AS ROWTIME, k, v FROM s ORDER BY ev WITHIN INTERVAL '{within}' SECOND{guard};
"""
SORTED = DECLARED + "SELECT STREAM k, v FROM f"
GUARDED = DECLARED + "SELECT STREAM COUNT(*) AS c FROM f GROUP BY FLOOR(f.ROWTIME TO MINUTE)"
GUARD = " EARLY BEYOND INTERVAL '1' HOUR"


def source(share: int, files: int) -> Path:
    """Files in which ``share`` % of the rows lie up to half a minute behind."""
    folder = CACHE / f"disorder-{share}-{files}x{FILE}"
    done = folder.with_suffix(".done")
    if not done.exists():
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(files):
            random = np.random.default_rng(number)
            behind = random.integers(0, BEHIND * SECOND, FILE) * (random.random(FILE) < share / 100)
            times = BEGINNING + (np.arange(FILE) + number * FILE) * STEP - behind
            write(folder, number, table(times, random.integers(0, 100, FILE), random))
        done.touch()
    return folder


def run(engines: Engines, text: str, files: Path) -> tuple[float, int, int]:
    """Seconds, rows given out, rows refused."""
    place = engines.fresh("disorder")
    sql = text.format(source=files, within=TOLERANCE, guard=GUARD if text == GUARDED else "")
    given = 0

    def take(batch: rt.Batch) -> None:
        nonlocal given
        given += batch.table().num_rows if batch.count else 0

    pipeline = rt.Pipeline(engines.spark, home=place / "home").sql(sql).sink("result", take)
    began = time.perf_counter()
    query = pipeline.run_available(place / "checkpoint", limits=rt.Limits(files=TICK))
    seconds = time.perf_counter() - began
    gate = query.ledger["f"]
    return seconds, given, gate["in"] - gate["accepted"]


def measure(engines: Engines, *, short: bool, text: str) -> Result:
    """Each share of late rows a line; the memory is the driver's greatest, before and after (MiB)."""
    files, rounds = (4, 1) if short else (10, 3)
    before, rows = _memory(), files * FILE
    lines: dict[str, Result] = {}
    run(engines, text, source(QUICK[0], TICK))  # warms Java up
    for share in QUICK if short else SHARES:
        place = source(share, files)
        runs = [run(engines, text, place) for _ in range(rounds)]
        native = middle([engines.native(place, TICK).total for _ in range(rounds)]) / 1000
        speed = int(rows / middle([seconds for seconds, _, _ in runs]))
        lines[f"{share} %"] = {"rows_a_second": speed, "spark_aggregate": int(rows / native), "refused": runs[0][2]}
    least = min(line["rows_a_second"] for line in lines.values())
    ratios = [against("rows a second", least / LEAST, 1.0)] if text == GUARDED else []
    return {"rows": rows, "late": lines, "driver_memory_mib": [before, _memory()], "ratios": ratios}


def _memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


TSORT = Measurement("tsort", "T-sort within 10 s, every row to a function in order", partial(measure, text=SORTED))
GUARD_LEDGER = Measurement(
    "guard", "guard of an hour with its ledger, groups of a minute", partial(measure, text=GUARDED)
)
