"""One driver: ``python reliability/cluster/driver.py WAY MASTER FOLDER…`` or the same under ``spark-submit``.

It runs the case of each folder, whose name ends with its number, announces each tick, and writes the state after it to
``<folder>.json``. Three ways: ``local`` mode; a ``session`` on the cluster that is passed to the pipeline; and
``submitted``, where the pipeline finds the session that ``spark-submit`` has set up.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from reliability.crash.cases import KINDS, Case, close
from rowtime.runtime import segment_writer
from rowtime.runtime.session import new_spark

if TYPE_CHECKING:
    from rowtime.runtime.engine import Engine

TRIES = 8  # of a tick


def main(way: str, master: str, *folders: str) -> None:
    spark = _session(way, master)
    small = segment_writer.SMALL
    for folder in map(Path, folders):
        case = Case(int(folder.name.rpartition("-")[2]), folder)
        # In every other case of a kind, each operator is a job that writes its rows, as usually only in large ticks. In
        # the others a tick is computed by one task: the default on a cluster.
        apart = way != "local" and sum(divmod(case.number, len(KINDS))) % 2 == 0
        segment_writer.SMALL = 0 if apart else small
        folder.with_suffix(".json").write_text(json.dumps(_run(case, spark, "driver" if apart else None)))
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


def _run(case: Case, spark: SparkSession | None, small_ticks: str | None) -> dict[str, Any]:
    """Return the states after the ticks, why ticks were tried again, and how many were computed by a task."""
    engine, states, failures = case.engine(spark, small_ticks), [case.state()], list[str]()
    master, computed = engine.spark.sparkContext.master, list[bool]()
    if engine.tasks is not None:
        engine.tasks.done = _noting(engine.tasks.done, computed)  # type: ignore[method-assign]
    print("ready", flush=True)
    while _ticked(engine, failures):
        print("tick", flush=True)
        states.append(case.state())
    close(engine)
    return {"states": states, "failures": failures, "master": master, "in a task": sum(computed)}


def _noting(done: Callable[..., Any], computed: list[bool]) -> Callable[..., Any]:
    def noted(*given: Any) -> Any:
        found = done(*given)
        computed.append(found is not None)
        return found

    return noted


def _ticked(engine: Engine, failures: list[str]) -> bool:
    """Run a tick, again if it fails, as a continuous run does. Return False if there was nothing to do."""
    for tried in range(TRIES):
        try:
            return engine.tick() is not None
        except Exception as error:
            failures.append(f"{type(error).__name__} {error}"[:600])
            if tried == TRIES - 1:
                raise
    return False


if __name__ == "__main__":
    main(*sys.argv[1:])
