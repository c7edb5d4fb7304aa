"""One driver: ``python reliability/cluster/driver.py WAY MASTER FOLDER…`` or the same under ``spark-submit``.

It runs the case of each folder, whose name ends with its number, announces each tick, and writes the state after it to
``<folder>.json``. Three ways: ``local`` mode; a ``session`` on the cluster that is passed to the pipeline; and
``submitted``, where the pipeline finds the session that ``spark-submit`` has set up.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from reliability.crash.cases import KINDS, Case, close
from rowtime.runtime.executors.executor import SparkJob
from rowtime.runtime.executors.tasks import Tasks
from rowtime.runtime.session import new_spark

if TYPE_CHECKING:
    from rowtime.runtime.engine import Engine
    from rowtime.runtime.report import TickReport

TRIES = 8  # of a tick


@dataclass(frozen=True)
class Divided(SparkJob):
    """Every tick is divided, as usually only large ones; the number of tasks changes with each level and tick."""

    few: int = 0
    few_bytes: int = 0
    few_written: int = 0
    numbers: Iterator[int] = field(default_factory=lambda: cycle((3, 2, 2, 5, 4, 3)))

    def tasks(self, spark: SparkSession) -> int:  # noqa: ARG002 - the contract's
        """Return the next number."""
        return next(self.numbers)

    def by_keys(self, spark: SparkSession) -> int:
        """Return the next number."""
        return self.tasks(spark)


def main(way: str, master: str, *folders: str) -> None:
    spark = _session(way, master)
    for folder in map(Path, folders):
        case = Case(int(folder.name.rpartition("-")[2]), folder)
        # In every other case of a kind; in the others a tick is computed by one task, as it has few rows.
        divided = way != "local" and sum(divmod(case.number, len(KINDS))) % 2 == 0
        folder.with_suffix(".json").write_text(json.dumps(_run(case, spark, divided=divided)))
    SparkSession.builder.getOrCreate().stop()


def _session(way: str, master: str) -> SparkSession | None:
    """Return the session, or None if the pipeline has to find its own."""
    settings = json.loads(os.environ.get("CLUSTER_SETTINGS", "{}"))
    if way == "submitted":
        return None
    if way == "local":
        return new_spark(master=master, conf=settings)
    builder = SparkSession.builder.master(master).appName("cluster")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _run(case: Case, spark: SparkSession | None, *, divided: bool) -> dict[str, Any]:
    """Return the states after the ticks, why ticks were tried again, and how many had so many tasks."""
    engine, states, failures = case.engine(spark), [case.state()], list[str]()
    if divided:
        engine.tasks = Tasks(Divided()).over(engine.sources.values())
    master, tasks = engine.spark.sparkContext.master, Counter[int]()
    print("ready", flush=True)
    while (report := _ticked(engine, failures)) is not None:
        print("tick", flush=True)
        states.append(case.state())
        tasks[report.cost.spread.tasks] += 1
    close(engine)
    return {"states": states, "failures": failures, "master": master, "tasks": tasks}


def _ticked(engine: Engine, failures: list[str]) -> TickReport | None:
    """Run a tick, again if it fails, as a continuous run does. Return ``None`` if there was nothing to do."""
    for tried in range(TRIES):
        try:
            return engine.tick()
        except Exception as error:
            failures.append(f"{type(error).__name__} {error}"[:600])
            if tried == TRIES - 1:
                raise
    return None


if __name__ == "__main__":
    main(*sys.argv[1:])
