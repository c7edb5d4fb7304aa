"""Whether a small tick costs more with a hundred times more state.

A first tick brings the groups that stay open, in the last ten minutes of an hour; the tolerance of one hour keeps them
open. Each later tick brings a thousand rows: half of them advance the clock by a minute, half are of the minute that
closes two ticks later. So every tick closes a few groups beside the many that stay.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.data import BEGINNING, CACHE, MINUTE, table, write
from benchmarks.measurement import Measurement, Result, against, middle

if TYPE_CHECKING:
    from benchmarks.engines import Engines

START = BEGINNING - BEGINNING % (60 * MINUTE)
HOUR = 3600  # s
TICKS = 36


def measure(engines: Engines, *, short: bool) -> Result:
    rounds = 1 if short else 3
    kept = {"few": 10_000, "many": 1_000_000}
    found: dict[str, list[float]] = {name: [] for name in kept}
    worst: dict[str, float] = {}
    for number in range(rounds + 1):
        for name, groups in kept.items():
            if short and not number and name == "many":
                continue  # the few have warmed Java up
            run = engines.rowtime(_folder(groups), 1, within=HOUR)
            ticks = run.ticks[2:-1]  # without the tick that brings the groups and the one that ends the stream
            found[name].extend(ticks if number else [])
            worst[name] = max(ticks)
    medians = {name: middle(values) for name, values in found.items()}
    return {
        "groups_kept": kept,
        "ticks_measured": len(found["few"]),
        "median_tick_ms": medians,
        "longest_tick_ms": worst,
        "ratios": [against("100 x less state", medians["many"] / medians["few"], 1.3, most=True)],
    }


def _folder(groups: int) -> Path:
    folder = CACHE / f"state-{groups}-{TICKS}"
    done = folder.with_suffix(".done")
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        random = np.random.default_rng(groups)
        times = START + 50 * MINUTE + np.sort(random.integers(0, 10 * MINUTE, groups))
        write(folder, 0, table(times, np.arange(groups), random))
        for number in range(1, TICKS):
            write(folder, number, _small(number, random))
        done.touch()
    return folder


def _small(number: int, random: np.random.Generator) -> object:
    new = START + (60 + number) * MINUTE + random.integers(0, MINUTE, 500)
    old = START + (number + 2) * MINUTE + random.integers(0, MINUTE, 500)
    return table(np.concatenate([new, old]), random.integers(0, 100, 1000), random)


FLAT_STATE = Measurement("flat_state", "a small tick with 1 M kept groups, against one with 10 thousand", measure)
