"""The profile of a folder of Parquet, against Spark counting the same rows by minute: both in turns, in one process.

Rows are up to ten seconds out of order. The number of late rows is compared with a running maximum of numpy.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F  # noqa: N812 - the customary name

import rowtime as rt
from benchmarks.data import Rows
from benchmarks.measurement import Measurement, Result, against, middle

if TYPE_CHECKING:
    from benchmarks.engines import Engines

REQUIRED = 2.0


def late_rows(rows: Rows) -> int:
    """Return how many rows are below the greatest earlier time."""
    late, mark = 0, np.int64(0)
    for path in sorted(rows.folder().iterdir()):
        times = pq.read_table(path, columns=["ev"])["ev"].cast(pa.int64()).to_numpy()
        running = np.maximum.accumulate(np.concatenate(([mark], times)))
        late, mark = late + int((times < running[:-1]).sum()), running[-1]
    return late


def measure(engines: Engines, *, short: bool) -> Result:
    rows = Rows(10_000, 2 if short else 10)
    folder, home = str(rows.folder()), engines.fresh("profile") / "home"
    spent: dict[str, list[float]] = {"profile": [], "spark": []}
    for number in range(2 if short else 6):
        began = time.perf_counter()
        profile = rt.profile(folder, time="ev", spark=engines.spark, home=home)
        late = profile.facts.late.rows
        between = time.perf_counter()
        minutes = engines.spark.read.parquet(folder).groupBy(F.date_trunc("minute", "ev")).count().toArrow()
        ended = time.perf_counter()
        if number:
            spent["profile"].append((between - began) * 1000)
            spent["spark"].append((ended - between) * 1000)
    expected = late_rows(rows)
    same = late == expected and profile.rows == rows.count == sum(minutes["count"].to_pylist())
    medians = {name: middle(times) for name, times in spent.items()}
    return {
        "rows": rows.count,
        "late": late,
        "readings": profile.facts.readings,
        "median_ms": medians,
        "answers": {"numpy": "equal" if same else f"{late} of {expected} late rows"},
        "ratios": [against("a count by minute", medians["profile"] / medians["spark"], REQUIRED, most=True)],
    }


PROFILE = Measurement("profile", "a profile of 10 M rows of Parquet, against Spark's count of them by minute", measure)
