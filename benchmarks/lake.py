"""Ticks into a Delta table, against the same into a directory of Parquet files, and against Spark's own writer."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from benchmarks.answers import compare
from benchmarks.data import Rows
from benchmarks.engines import SCHEMA, SETTINGS
from benchmarks.measurement import Measurement, Result, against, middle, settled
from benchmarks.other_spark import streamed

if TYPE_CHECKING:
    from benchmarks.engines import Engines, Run

TICK = 1_000_000
KEYS = 10_000
MOST = 1.25
LONGEST = 1.5


def measure(engines: Engines, *, short: bool) -> Result:
    """The work of group_10k, by turns into both; the first round only warms up."""
    rows = Rows(KEYS, 6 if short else 12)
    runs, found = _by_turns(engines, rows, rows.files, 3 if short else 5)
    medians = {name: middle(values) for name, values in found.items()}
    return {
        "keys": KEYS,
        "rows_a_tick": TICK,
        "ticks_measured": len(found["delta"]),
        "median_tick_ms": medians,
        "answers": {"parquet": compare(runs["delta"].output, runs["parquet"].output, rows.count)},
        "ratios": [against("parquet", medians["delta"] / medians["parquet"], MOST, most=True)],
    }


def delay(engines: Engines, *, short: bool) -> Result:
    """Ticks of a thousand rows: how long after a look at the source its rows are visible."""
    rows = Rows(100, 20 if short else 34, files=1, rows=1000, step=60_000)
    runs, found = _by_turns(engines, rows, 1, 3 if short else 5)
    medians = {name: middle(values) for name, values in found.items()}
    return {
        "rows_a_tick": rows.rows,
        "ticks_measured": len(found["delta"]),
        "median_tick_ms": medians,
        "answers": {"parquet": compare(runs["delta"].output, runs["parquet"].output, rows.count)},
        "ratios": [against("parquet", medians["delta"] / medians["parquet"], LONGEST, most=True)],
    }


def beside_spark(engines: Engines, *, short: bool) -> Result:
    """The work of group_10k by the last Spark that has a connector of Delta, and by rowtime."""
    rows, rounds = Rows(KEYS, 6 if short else 12), 2 if short else 4
    place = engines.fresh("delta-spark")
    asked = {"source": str(rows.folder()), "schema": SCHEMA, "files": rows.files, "place": str(place)}
    try:
        batches = streamed(**asked, rounds=rounds, settings=SETTINGS)
    except (OSError, subprocess.CalledProcessError) as error:
        return {"skipped": f"not measured: the other Spark cannot be installed: {error}"}
    runs = [engines.rowtime(rows.folder(), rows.files, sink="delta") for _ in range(rounds)]
    # The first round of either only warms up.
    ours = [one for run in runs[1:] for one in settled(run.ticks)]
    theirs = [one for ticks in batches[1:] for one in settled(ticks)]
    medians = {"rowtime": middle(ours), "spark": middle(theirs)}
    return {
        "keys": KEYS,
        "rows_a_tick": TICK,
        "ticks_measured": len(ours),
        "median_tick_ms": medians,
        "answers": {"spark": compare(runs[-1].output, place / f"out-{rounds - 1}", rows.count)},
        "ratios": [against("spark", medians["spark"] / medians["rowtime"], 1.0)],
    }


def _by_turns(engines: Engines, rows: Rows, files: int, rounds: int) -> tuple[dict[str, Run], dict[str, list[float]]]:
    found, runs = dict[str, list[float]](parquet=[], delta=[]), dict[str, "Run"]()
    for number in range(rounds):
        for sink in ("parquet", "delta") if number % 2 else ("delta", "parquet"):
            runs[sink] = engines.rowtime(rows.folder(), files, sink=sink)
            found[sink].extend(settled(runs[sink].ticks) if number else [])
    return runs, found


DELTA = Measurement("delta", "tumbling GROUP BY, 10 thousand keys, ticks of 1 M rows, into a Delta table", measure)
DELTA_DELAY = Measurement(
    "delta_delay", "ticks of 1,000 rows, from a look at the source to rows that are visible", delay
)
DELTA_SPARK = Measurement("delta_spark", "the GROUP BY of delta, against Spark 4.2 and its own writer", beside_spark)
