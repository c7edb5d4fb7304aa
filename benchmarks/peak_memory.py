"""The greatest memory of pipelines, each in a process of its own: the flights, and ten million rows of the benchmarks.

`python -m benchmarks.peak_memory NAME FILES FOLDER` is such a process. It prints as JSON the greatest resident memory
of its Python, the most that Java's heap held before a collection and after one, by Java's log of its collections, and
whether all rows came out.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks import late
from benchmarks.data import Rows
from benchmarks.disorder import FILE, SORTED
from benchmarks.disorder import Run as Sorting
from benchmarks.disorder import source as disordered
from benchmarks.engines import SETTINGS, Engines
from benchmarks.measurement import Measurement, Result, against
from rowtime.runtime.session import new_spark

PYTHON, HEAP = 600, 2048  # MiB
ROWS, SHORT = 10_000_000, 2_000_000
QUICK = ("flights", "late_1m")
COLLECTION = re.compile(r"(\d+)M->(\d+)M\(\d+M\)")


def measure(engines: Engines, *, short: bool) -> Result:
    count = SHORT if short else ROWS
    cases = {name: case for name, case in CASES.items() if not short or name in QUICK}
    for case in cases.values():
        case.data(count)  # not in the processes that are measured
    found = {name: _process(name, count, engines.fresh("peak")) for name in cases}
    answers = {name: one.pop("answer") for name, one in found.items()}
    ratios = []
    for name, one in found.items():
        ratios.append(against(f"{PYTHON} MiB of Python, {name}", one["python_mib"] / PYTHON, 1.0, most=True))
        ratios.append(against(f"{HEAP} MiB of Java's heap, {name}", one["java_heap_mib"] / HEAP, 1.0, most=True))
    return {"rows": count, "peak": found, "answers": answers, "ratios": ratios}


def _process(name: str, count: int, folder: Path) -> Result:
    command = [sys.executable, "-m", "benchmarks.peak_memory", name, str(count), str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    found: Result = json.loads(done.stdout.splitlines()[-1])
    return found


def _most_resident() -> int:
    """Return the most memory that this process had, MiB; getrusage also counts that of the process which started it."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) >> 10


def main(name: str, count: str, folder: str) -> None:
    place = Path(folder)
    log = place / "collections.log"
    settings = {**SETTINGS, "spark.ui.enabled": "false", "spark.driver.extraJavaOptions": f"-Xlog:gc:file={log}"}
    engines = Engines(new_spark(master="local[2]", conf=settings), place)
    check = CASES[name].run(engines, int(count))
    resident = _most_resident()
    answer = check()
    runtime = engines.spark._jvm.java.lang.Runtime.getRuntime()  # noqa: SLF001 - Python has no other way to ask Java
    last = int(runtime.totalMemory() - runtime.freeMemory()) >> 20
    engines.spark.stop()
    collections = [tuple(map(int, found)) for found in COLLECTION.findall(log.read_text())]
    peak = {
        "python_mib": resident,
        "java_heap_mib": max([last, *(before for before, _ in collections)]),
        "java_heap_after_collections_mib": max((after for _, after in collections), default=0),
    }
    print(json.dumps({**peak, "answer": answer}))


Check = Callable[[], str]


def _flights(engines: Engines, count: int) -> Check:  # noqa: ARG001 - there are as many as there are
    from examples.flights.__main__ import FLIGHTS, Places, run  # noqa: PLC0415 - it loads much that others do not need
    from examples.flights.feed import feed  # noqa: PLC0415 - as above

    places = Places(*(engines.folder / name for name in ("home", "checkpoint", "hourly")))
    feed(places.home)
    outcome = run(places, engines.spark)
    return lambda: _all(sum(counts["in"] for counts in outcome.ledger.values()), FLIGHTS)


def _groups(engines: Engines, count: int, keys: int) -> Check:
    rows = _rows(keys, count)
    run = engines.rowtime(rows.folder(), rows.files)
    return lambda: _all(_counted(run.output), rows.count)


def _rows(keys: int, count: int) -> Rows:
    return Rows(keys, count // 1_000_000)


def _late(engines: Engines, count: int) -> Check:
    rows = _late_rows(count)
    run = late.run(engines, rows)
    return lambda: _all(_counted(run.output) + run.refused, rows.count)


def _late_rows(count: int) -> late.LateRows:
    return late.LateRows(1_000_000, 10.0, count // late.FILE)


def _sorted(engines: Engines, count: int) -> Check:
    run = Sorting(engines, SORTED, disordered(10, count // FILE))
    return lambda: _all(run.given + run.refused, count)


def _counted(output: Path) -> int:
    return int(pc.sum(pq.read_table(output, columns=["c"])["c"]).as_py())


def _all(found: int, expected: int) -> str:
    return "equal" if found == expected else f"{found} rows of {expected}"


class Case(NamedTuple):
    """``data`` makes the rows; ``run`` is what is measured, and returns the check of the answer."""

    data: Callable[[int], object]
    run: Callable[[Engines, int], Check]


CASES: dict[str, Case] = {
    "flights": Case(lambda _: None, _flights),
    "group_10k": Case(lambda n: _rows(10_000, n).folder(), lambda engines, n: _groups(engines, n, 10_000)),
    "group_1m": Case(lambda n: _rows(1_000_000, n).folder(), lambda engines, n: _groups(engines, n, 1_000_000)),
    "late_1m": Case(lambda n: _late_rows(n).folder(), _late),
    "tsort": Case(lambda n: disordered(10, n // FILE), _sorted),
}
MEMORY = Measurement("memory", "the greatest memory of Python and of Java's heap, a process each time", measure)

if __name__ == "__main__":
    main(*sys.argv[1:])
