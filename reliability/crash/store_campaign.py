"""Pipelines on object stores: stops, failing requests, drivers that are killed, and those that come back."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from reliability.crash.inside import Sample, Tally, Undisturbed, reads_every_version, stops, undisturbed
from reliability.crash.killed import Deaths, kills
from reliability.crash.oracles import OtherSparks
from reliability.crash.store_deaths import befallen, fenced_on_store, ways
from reliability.crash.stores import KINDS, StoreCase, serving
from reliability.stores.servers import missing
from rowtime.runtime.jars import store_jars

if TYPE_CHECKING:
    import argparse

    from pyspark.sql import SparkSession


def spark_settings() -> dict[str, str]:
    """Return the settings that Spark needs to read from S3."""
    return {"spark.driver.extraClassPath": os.pathsep.join(store_jars())}


def why_missing() -> str:
    """Return the servers that are not available, and why; empty if all are."""
    return "; ".join(filter(None, map(missing, _servers())))


@contextmanager
def store_pipelines(spark: SparkSession, folder: Path, asked: argparse.Namespace) -> Iterator[StorePipelines]:
    """Run the available servers while the pipelines on them are tried."""
    folder.mkdir(exist_ok=True)
    with serving([name for name in _servers() if not missing(name)], folder), OtherSparks() as others:
        yield StorePipelines(spark, folder, asked, others)


def _servers() -> list[str]:
    return sorted({server for server, *_ in KINDS.values()})


class StorePipelines:
    """The servers run."""

    def __init__(self, spark: SparkSession, folder: Path, asked: argparse.Namespace, others: OtherSparks) -> None:
        self._spark, self._folder, self._asked, self._others = spark, folder, asked, others

    def run(self, number: int, tally: Tally) -> str:
        """Try the pipeline of a number. Return its name, empty if its server is not available."""
        folder = self._folder / str(number)
        case, chance = StoreCase(number, folder / "live"), random.Random(f"store {number}")
        if missing(KINDS[case.name][0]):
            return ""
        run = undisturbed(case, self._spark, folder / "kept", Sample(chance, self._asked.every))
        writes = case.on.writes[case.key]
        tally.add("writes of undisturbed runs on stores", writes)
        reads_every_version(run, tally, f"{case.name} {number}")
        with ThreadPoolExecutor(1) as pool:
            dying = pool.submit(self._processes, run, writes)
            stops(run, self._spark, tally, chance, self._asked.share)
            befallen(run, self._spark, tally, chance, self._asked.faults_a_case)
            tally.take(dying.result())
        tally.add("pipelines on stores")
        shutil.rmtree(folder)
        return case.name

    def _processes(self, run: Undisturbed, writes: int) -> Tally:
        """Try drivers that are processes, in a folder of their own, beside the stops."""
        tally, number, asked = Tally(), run.case.number, self._asked
        own = replace(run, case=StoreCase(number, run.case.folder.parent / "killed"), witness=self._others.witness)
        chance = random.Random(f"kill {number}")
        kills(own, self._spark, tally, Deaths(chance, asked.kills_a_case, ways(writes, tally)))
        if asked.kills_a_case and own.case.check != own.case.folder / "check":
            fenced_on_store(own, self._spark, tally, chance, writes)
        return tally
