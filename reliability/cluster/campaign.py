"""A campaign: compares pipelines in local mode with the same on a cluster under attack, tick by tick."""

from __future__ import annotations

import argparse
import json
import os
import random
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from reliability.cluster.processes import SPARK_HOME, Cluster, end_sessions, started
from reliability.crash.cases import KINDS, Case
from reliability.crash.inside import Tally

ROOT = Path(__file__).parents[2]
DRIVER = ROOT / "reliability" / "cluster" / "driver.py"
JAVA = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
SMALL = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "768m",
    "spark.driver.extraJavaOptions": JAVA,
}
SHARED = {
    **SMALL,
    "spark.driver.host": "127.0.0.1",
    "spark.executor.memory": "640m",
    "spark.executor.extraJavaOptions": JAVA,
    "spark.default.parallelism": "3",
    # A path without a scheme means something else on most clusters; here it means nothing.
    "spark.hadoop.fs.defaultFS": "nowhere:///",
    # Every task that takes longer than its neighbours, or than this, runs twice.
    "spark.speculation": "true",
    "spark.speculation.efficiency.enabled": "false",
    "spark.speculation.interval": "20ms",
    "spark.speculation.minTaskRuntime": "20ms",
    "spark.speculation.multiplier": "1.2",
    "spark.speculation.quantile": "0.3",
    "spark.speculation.task.duration.threshold": "100ms",
    # What a dead executor kept is requested only once more, and not for fifteen seconds.
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "200ms",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.rolling.enabled": "false",
    "spark.eventLog.compress": "false",
}
WAYS = ("session", "submitted")
PATIENCE = 300.0  # seconds that a tick may take
STRIKE = (0.0, 2.0)  # seconds from the beginning of a tick
LULL = (0.5, 1.5)  # seconds for which a killed worker is away


@dataclass
class Fire:
    """Attacks on a cluster, and a count of them."""

    cluster: Cluster
    workers: int
    chance: random.Random
    counts: Counter[str] = field(default_factory=Counter)

    def strike(self) -> None:
        """Kill some workers, or their executors alone."""
        hit = self.chance.sample(range(self.workers), self.chance.choice((1, 1, 1, 2, self.workers)))
        for number in hit:
            if self.chance.random() < 0.5:
                self.counts["executors killed"] += self.cluster.kill_executors(number)
            else:
                self.counts["executors killed"] += self.cluster.kill_worker(number)
                self.counts["workers killed"] += 1


def main() -> int:
    """Return 0 if no tick differed; otherwise print the differences and return 1."""
    asked = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended
    began, tally, counts = time.perf_counter(), Tally(), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="rowtime-cluster-") as name:
        folder = Path(name)
        with Cluster(folder, asked.workers) as cluster:
            fire = Fire(cluster, asked.workers, random.Random(f"cluster {asked.first}"), counts)
            numbers = range(asked.first, asked.first + asked.pipelines)
            for turn, some in enumerate(_batches(numbers, asked.batch)):
                if turn and time.perf_counter() - began > asked.seconds:
                    break
                _compare(some, WAYS[turn % len(WAYS)], folder, fire, tally)
                told = ", ".join(f"{times:,} {what}" for what, times in counts.items())
                print(f"{WAYS[turn % len(WAYS)]}: {told}; {time.perf_counter() - began:.0f} s", flush=True)
    for loss in tally.losses:
        print(f"\n{loss}")
    told = ", ".join(f"{counts[what]:,} {what}" for what in COUNTED)
    print(f"{told}, {len(tally.losses)} differences; {time.perf_counter() - began:.0f} s")
    return 1 if tally.losses else 0


COUNTED = (
    "pipelines", "ticks", "ticks in one task", "divided ticks", "workers killed", "executors killed", "tasks",
    "tasks lost or failed", "tasks tried again", "speculative tasks", "ticks tried again",
)  # fmt: skip


def _compare(numbers: Sequence[int], way: str, place: Path, fire: Fire, tally: Tally) -> None:
    """Run some cases in local mode, then on the cluster, and compare the state after every tick."""
    local, shared = (
        [place / f"{where}-{number}" for number in numbers] for where in ("local", "shared")
    )  # fmt: skip
    for number, one, other in zip(numbers, local, shared, strict=True):
        Case(number, one).make()
        shutil.copytree(one, other)
    with _driver("local", "local[2]", local, place) as driver:
        driver.communicate(timeout=PATIENCE * len(local))
    with _driver(way, fire.cluster.url, shared, place) as driver:
        status = _under_fire(driver, fire)
    if status != 0:
        tally.losses.append(f"{way}: a driver ended with status {status}: {_end(place / 'drivers.log')}")
    for number, one, other in zip(numbers, local, shared, strict=True):
        _differences(Case(number, other), one, other, fire.counts, tally)
    _tasks(place / "events", fire.counts)
    for one in (*local, *shared):
        shutil.rmtree(one)


def _under_fire(driver: subprocess.Popen[bytes], fire: Fire) -> int:
    """Attack once per tick, at a random time, until the driver has ended. Return its exit status, or -1 if it hung."""
    assert driver.stdout is not None
    said = selectors.DefaultSelector()
    said.register(driver.stdout, selectors.EVENT_READ)
    deadline = time.monotonic() + PATIENCE
    calm = True  # before the first tick, and once a tick was struck
    while time.monotonic() < deadline:
        if said.select(fire.chance.uniform(*(LULL if calm else STRIKE))):
            if not os.read(driver.stdout.fileno(), 4096):
                return driver.wait(PATIENCE)
            calm, deadline = False, time.monotonic() + PATIENCE
        elif not calm:
            fire.strike()
            calm = True
        fire.cluster.revive()
    return -1


@contextmanager
def _driver(way: str, master: str, folders: Sequence[Path], place: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a driver as a process of its own; kill what is left of it afterwards."""
    events = place / "events"
    events.mkdir(exist_ok=True)
    settings = SMALL if way == "local" else {**SHARED, "spark.eventLog.dir": events.as_uri()}
    arguments = [str(DRIVER), way, master, *map(str, folders)]
    command = [sys.executable, *arguments]
    if way == "submitted":
        given = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
        command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", master, *given, *arguments]
    environment = {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "CLUSTER_SETTINGS": json.dumps(settings)}
    with (place / "drivers.log").open("ab") as log:
        driver = started(command, log.fileno(), environment, subprocess.PIPE)
    try:
        yield driver
    finally:
        end_sessions([driver.pid])
        driver.communicate()


def _differences(case: Case, local: Path, shared: Path, counts: Counter[str], tally: Tally) -> None:
    if not shared.with_suffix(".json").exists() or not local.with_suffix(".json").exists():
        tally.losses.append(f"{case.name} {case.number} did not come to its end")
        return
    wanted, found = (json.loads(place.with_suffix(".json").read_text()) for place in (local, shared))
    counts["pipelines"] += 1
    counts["ticks"] += len(found["states"]) - 1
    counts["ticks tried again"] += len(found["failures"])
    counts["ticks in one task"] += found["tasks"].get("1", 0)
    counts["divided ticks"] += sum(times for tasks, times in found["tasks"].items() if int(tasks) > 1)
    for failure in found["failures"]:
        print(f"{case.name} {case.number}: a tick was tried again: {failure}", flush=True)
    if not found["master"].startswith("spark://") or len(found["states"]) != len(wanted["states"]):
        tally.losses.append(f"{case.name} {case.number}: on {found['master']}, {len(found['states']) - 1} ticks")
    for tick, (one, other) in enumerate(zip(found["states"], wanted["states"], strict=False), -1):
        tally.check(one, other, f"{case.name} {case.number}, tick {tick}")


def _tasks(folder: Path, counts: Counter[str]) -> None:
    """Count the tasks of the drivers that have ended."""
    for path in folder.iterdir():
        for line in path.read_text().splitlines():
            if not line.startswith('{"Event":"SparkListenerTaskEnd"'):
                continue
            task = json.loads(line)
            speculative, info = task["Task Info"]["Speculative"], task["Task Info"]
            counts["tasks"] += 1
            counts["tasks lost or failed"] += task["Task End Reason"]["Reason"] not in ("Success", "TaskKilled")
            counts["tasks tried again"] += info["Attempt"] > 0 and not speculative
            counts["speculative tasks"] += speculative
        path.unlink()


def _batches(numbers: range, size: int) -> Iterator[Sequence[int]]:
    for start in range(0, len(numbers), size):
        yield numbers[start : start + size]


def _end(log: Path) -> str:
    return log.read_text(errors="replace")[-2000:]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m reliability.cluster")
    parser.add_argument(
        "--pipelines", type=int, default=2 * len(KINDS), help="each kind twice: in one task a tick, and divided"
    )
    parser.add_argument("--batch", type=int, default=3, help="pipelines of one driver")
    parser.add_argument("--workers", type=int, default=3, help="of the cluster")
    parser.add_argument("--seconds", type=float, default=36_000.0, help="no driver is begun after so long")
    parser.add_argument("--first", type=int, default=0, help="the number of the first pipeline")
    return parser.parse_args()
