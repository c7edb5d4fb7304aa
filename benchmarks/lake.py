"""Time of a tick into a Delta table, against the same into a directory of Parquet files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.answers import compare
from benchmarks.data import Rows
from benchmarks.measurement import Measurement, Result, against, middle, settled

if TYPE_CHECKING:
    from benchmarks.engines import Engines, Run

TICK = 1_000_000
KEYS = 10_000
MOST = 1.25


def measure(engines: Engines, *, short: bool) -> Result:
    """The work of group_10k, by turns into both; the first round only warms up."""
    rows, found = Rows(KEYS, 6 if short else 12), dict[str, list[float]](parquet=[], delta=[])
    runs: dict[str, Run] = {}
    for number in range(3 if short else 5):
        for sink in ("parquet", "delta") if number % 2 else ("delta", "parquet"):
            runs[sink] = engines.rowtime(rows.folder(), rows.files, sink=sink)
            found[sink].extend(settled(runs[sink].ticks) if number else [])
    medians = {name: middle(values) for name, values in found.items()}
    return {
        "keys": KEYS,
        "rows_a_tick": TICK,
        "ticks_measured": len(found["delta"]),
        "median_tick_ms": medians,
        "answers": {"parquet": compare(runs["delta"].output, runs["parquet"].output, rows.count)},
        "ratios": [against("parquet", medians["delta"] / medians["parquet"], MOST, most=True)],
    }


DELTA = Measurement("delta", "tumbling GROUP BY, 10 thousand keys, ticks of 1 M rows, into a Delta table", measure)
