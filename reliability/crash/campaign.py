"""A campaign: cases one after the other until so much has been tried of each kind."""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from reliability.crash.cases import Case
from reliability.crash.inside import Tally, Undisturbed, faults, jumps, stops, undisturbed
from reliability.crash.killed import fenced, kills
from rowtime.runtime.session import new_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL = {
    "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def main() -> int:
    """0 if nothing was lost; 1 and the losses otherwise."""
    asked = _arguments()
    began, tally, number = time.perf_counter(), Tally(), asked.first
    spark = new_spark(master="local[2]", conf=SMALL)
    with tempfile.TemporaryDirectory(prefix="rowtime-crash-") as name, ThreadPoolExecutor(1) as pool:
        while _left(asked, tally, number) and time.perf_counter() - began < asked.seconds:
            folder, chance = Path(name) / str(number), random.Random(f"crash {number}")
            run = undisturbed(Case(number, folder / "live"), spark, folder / "kept", chance)
            dying = pool.submit(_processes, run, spark, asked, tally.counts.get("SIGKILLs", 0))
            if tally.counts.get("stops", 0) < asked.stops:
                stops(run, spark, tally, chance, asked.share)
            faults(run, spark, tally, chance, min(asked.faults_a_case, asked.faults - _tried(tally)))
            jumps(run, spark, tally, chance)
            tally.take(dying.result())
            shutil.rmtree(folder)
            number += 1
            print(f"{run.case.name}: {_counts(tally)}; {time.perf_counter() - began:.0f} s", flush=True)
    for loss in tally.losses:
        print(f"\n{loss}")
    print(f"{number - asked.first} pipelines, {_counts(tally)}; {time.perf_counter() - began:.0f} s")
    return 1 if tally.losses else 0


def _processes(run: Undisturbed, spark: SparkSession, asked: argparse.Namespace, killed: int) -> Tally:
    """What is done to drivers that are processes, in a folder of their own, beside the stops."""
    tally, number = Tally(), run.case.number
    chance, own = random.Random(f"kill {number}"), replace(run, case=Case(number, run.case.folder.parent / "killed"))
    kills(own, spark, tally, chance, min(asked.kills_a_case, asked.kills - killed))
    if number == asked.first and asked.kills:
        kills(own, None, tally, chance, asked.with_java)
        fenced(own, spark, tally)
    return tally


def _counts(tally: Tally) -> str:
    tried = ", ".join(f"{times:,} {kind}" for kind, times in tally.counts.items())
    return f"{tried}, {len(tally.losses)} lost or changed anything"


def _left(asked: argparse.Namespace, tally: Tally, number: int) -> bool:
    """True while more is to be tried of some kind."""
    counts = tally.counts
    return number == asked.first or (
        counts.get("stops", 0) < asked.stops or counts.get("SIGKILLs", 0) < asked.kills or _tried(tally) < asked.faults
    )


def _tried(tally: Tally) -> int:
    return tally.counts.get("failed writes", 0) + tally.counts.get("ticks with fewer writes", 0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m reliability.crash")
    parser.add_argument("--stops", type=int, default=20_000, help="inside one process, at points and writes")
    parser.add_argument("--share", type=float, default=0.02, help="of the stops run on to the end")
    parser.add_argument("--kills", type=int, default=400, help="of Python, whose Java stays")
    parser.add_argument("--kills-a-case", type=int, default=10)
    parser.add_argument("--with-java", type=int, default=10, help="kills of Python and its Java")
    parser.add_argument("--faults", type=int, default=1_000, help="writes that fail")
    parser.add_argument("--faults-a-case", type=int, default=25)
    parser.add_argument("--seconds", type=float, default=36_000.0, help="no pipeline is begun after so long")
    parser.add_argument("--first", type=int, default=0, help="the number of the first pipeline")
    return parser.parse_args()
