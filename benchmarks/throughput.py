"""Rows per second through a tumbling GROUP BY in ticks of a million rows, against Spark's own streaming engine."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from benchmarks.answers import compare
from benchmarks.data import Rows
from benchmarks.measurement import Measurement, Result, against, middle, settled

if TYPE_CHECKING:
    from benchmarks.engines import Engines, Run

TICK = 1_000_000
FEW_KEYS = 10_000  # with more, RocksDB takes 10 s a tick; the short form warms Java up with the few
STORES = ("default", "rocksdb")


def measure(
    engines: Engines, *, short: bool, keys: int, ticks: tuple[int, int], required: tuple[float, float]
) -> Result:
    """Every round runs all three; ``ticks``: per round, in the short form and in the long one."""
    rows, rounds = Rows(keys, ticks[0] if short else ticks[1]), 1 if short else 3
    source = rows.folder()
    warm = Rows(keys, 1 if short else 3).folder()
    found: dict[str, list[float]] = {"rowtime": [], **{store: [] for store in STORES}}
    runs: dict[str, Run] = {}
    for number in range(1 if short and keys > FEW_KEYS else 0, rounds + 1):
        place = source if number else warm
        runs = {
            "rowtime": engines.rowtime(place, rows.files),
            **{store: engines.native(place, rows.files, store) for store in STORES},
        }
        for name, run in runs.items():
            found[name].extend(settled(run.ticks) if number else [])
    medians = {name: middle(values) for name, values in found.items()}
    return {
        "keys": keys,
        "rows_a_tick": TICK,
        "ticks_measured": len(found["rowtime"]),
        "median_tick_ms": medians,
        "rows_a_second": {name: int(TICK / value * 1000) for name, value in medians.items()},
        "whole_run_ms": {name: int(run.total) for name, run in runs.items()},
        "refused": {name: run.refused for name, run in runs.items()},
        "answers": {store: compare(runs["rowtime"].output, runs[store].output, rows.count) for store in STORES},
        "ratios": [
            against(store, medians[store] / medians["rowtime"], least)
            for store, least in zip(STORES, required, strict=True)
        ],
    }


GROUP_10K = Measurement(
    "group_10k",
    "tumbling GROUP BY, 10 thousand keys, exact lateness, rejects kept, ticks of 1 M rows",
    partial(measure, keys=10_000, ticks=(4, 12), required=(1.2, 2.0)),
)
GROUP_1M = Measurement(
    "group_1m",
    "the same with 1 million keys",
    partial(measure, keys=1_000_000, ticks=(4, 10), required=(2.0, 5.0)),
)
