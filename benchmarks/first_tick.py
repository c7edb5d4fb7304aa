"""The first tick of a process against its warm ticks; a process of its own each time.

`python -m benchmarks.first_tick NAME SOURCE FOLDER` is such a process. It prints the milliseconds of each of its ticks
as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import rowtime as rt
from benchmarks.data import Rows
from benchmarks.engines import Engines, session
from benchmarks.measurement import Measurement, Result, against, middle
from benchmarks.nexmark import events
from examples.nexmark.queries import pipeline

EVENTS, FILES = 1_000_000, 50
WARM = 5  # ticks after which one is warm
MOST = 3.0
GROUPS = Rows(100, 20, files=1, rows=1000, step=60_000)


def measure(engines: Engines, *, short: bool) -> Result:
    """The short form leaves the query of Nexmark out."""
    sources = {"group_by": GROUPS.folder()} | ({} if short else {"q5": events(EVENTS, FILES)})
    found = {name: _medians(engines, name, source, 2 if short else 5) for name, source in sources.items()}
    ratios = [
        against(f"a warm tick, {name}", one["first_ms"] / one["warm_ms"], MOST, most=True)
        for name, one in found.items()
    ]
    return {"processes": 2 if short else 5, "median_tick_ms": found, "ratios": ratios}


def _medians(engines: Engines, name: str, source: Path, processes: int) -> dict[str, float]:
    ticks = [_process(name, source, engines.fresh("first")) for _ in range(processes)]
    warm = [middle(each[WARM:-1]) for each in ticks]
    return {"first_ms": middle([each[0] for each in ticks]), "warm_ms": middle(warm)}


def _process(name: str, source: Path, folder: Path) -> list[float]:
    command = [sys.executable, "-m", "benchmarks.first_tick", name, str(source), str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    found: list[float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main(name: str, source: str, folder: str) -> None:
    engines = Engines(session(Path(folder)), Path(folder))
    ticks: list[float] = []

    def listener(progress: dict[str, Any]) -> None:
        ticks.append(progress["durationMs"]["triggerExecution"])

    if name == "group_by":
        engines.rowtime(Path(source), 1, listener=listener)
    else:
        made = pipeline(name, source, Path(folder) / "home", engines.spark).sink("result", lambda _batch: None)
        made.run_available(Path(folder) / "checkpoint", end=True, limits=rt.Limits(files=1), listener=listener)
    print(json.dumps(ticks))


FIRST_TICK = Measurement("first_tick", "the first tick of a process against its warm ticks", measure)

if __name__ == "__main__":
    main(*sys.argv[1:])
