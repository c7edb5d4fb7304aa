"""Whether a tick costs more after thousands of ticks: time, memory, number of files."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import rowtime as rt
from benchmarks.data import BEGINNING, DISORDER, table, write
from benchmarks.measurement import Measurement, Result, against, middle
from benchmarks.memory import memory_of

if TYPE_CHECKING:
    from benchmarks.engines import Engines

ROWS, STEP = 200, 100_000  # a tick spans 20 s: every third closes a window
WARM = 40  # ticks until Java has compiled what a tick runs


def measure(engines: Engines, *, short: bool) -> Result:
    """The files come while the query runs, one per tick."""
    ticks = 150 if short else 5000
    place = engines.fresh("flat")
    source = place / "in"
    source.mkdir()
    random = np.random.default_rng(0)
    spent: list[float] = []
    memory: dict[str, dict[str, int]] = {}
    query: rt.Query | None = None

    def listener(progress: dict[str, Any]) -> None:
        spent.append(progress["durationMs"]["triggerExecution"])
        if len(spent) == WARM + ticks // 10:
            memory["early"] = memory_of(engines) | _files(place)
        if len(spent) < WARM + ticks:
            _next(source, len(spent), random)

    _next(source, 0, random)
    query = engines.pipeline(source, place).start(
        place / "checkpoint", limits=rt.Limits(files=1), interval=0.005, listener=listener
    )
    while len(spent) < WARM + ticks and query.exception is None:
        time.sleep(0.05)
    query.stop()
    query.awaitTermination()
    memory["late"] = memory_of(engines) | _files(place)
    tenth, counted = ticks // 10, spent[WARM:]
    first, last = middle(counted[:tenth]), middle(counted[-tenth:])
    return {
        "ticks": ticks,
        "rows_a_tick": ROWS,
        "median_tick_ms": {"first_tenth": first, "last_tenth": last},
        "tenths_ms": [middle(counted[n * tenth : (n + 1) * tenth]) for n in range(10)],
        "memory_and_files": memory,
        "ratios": [against("the first tenth", last / first, 1.3, most=True)],
    }


def _next(source: Path, number: int, random: np.random.Generator) -> None:
    steps = (np.arange(ROWS) + number * ROWS) * STEP
    times = BEGINNING + steps + random.integers(0, DISORDER, ROWS)
    write(source, number, table(times, random.integers(0, 10, ROWS), random))


def _files(place: Path) -> dict[str, int]:
    kinds = {name: list((place / "checkpoint" / name).rglob("*")) for name in ("state", "journal", "sources")}
    counts = {f"{name}_files": sum(path.is_file() for path in paths) for name, paths in kinds.items()}
    newest = max(path.stat().st_size for path in kinds["journal"] if path.suffix == ".json")
    return {**counts, "journal_entry_bytes": newest, "output_files": len(list((place / "out").glob("part-*")))}


FLAT_TICKS = Measurement("flat_ticks", "the cost of a small tick after many ticks, against the first ones", measure)
