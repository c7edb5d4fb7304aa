"""A campaign: tries cases one after the other until there are enough tries of each kind."""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from reliability.broker import find_connector
from reliability.crash.brokers import broker_kills, why_no_broker
from reliability.crash.cases import KINDS, Case
from reliability.crash.first_starts import first_starts
from reliability.crash.inside import Sample, Tally, Undisturbed, faults, jumps, stops, undisturbed
from reliability.crash.killed import WAYS, Deaths, beside_others, fenced, kills, release
from reliability.crash.runs import sequences
from reliability.crash.store_campaign import spark_settings, store_pipelines, why_missing
from reliability.crash.writer_stops import writer_faults, writer_stops
from reliability.crash.writers import killed_writers
from reliability.model.replay import refused
from rowtime.runtime.session import new_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KILLS_A_STREAM = 12
SMALL = {
    "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC",
}


def main() -> int:
    """Return 0 if nothing was lost; otherwise print the losses and return 1."""
    asked = _arguments()
    kafka = asked.broker_kills and not asked.only_stores
    missing = why_no_broker() if kafka else ""
    jars = find_connector().jars or [] if kafka else []
    with tempfile.TemporaryDirectory(prefix="rowtime-crash-") as name:
        conf = {**SMALL, **(spark_settings() if asked.stores else {})}
        campaign = Campaign(asked, new_spark(jars, master="local[2]", conf=conf), Path(name), missing)
        if asked.only_stores:
            campaign.stores(1.0)
        else:
            campaign.run()
        campaign.replay()
    losses = [*campaign.tally.losses, *campaign.on_stores.losses]
    for loss in losses:
        print(f"\n{loss}")
    print(campaign.told())
    return 1 if losses else 0


@dataclass
class Campaign:
    """The arguments of a campaign, and its results so far; after its seconds it begins nothing more."""

    asked: argparse.Namespace
    spark: SparkSession
    folder: Path
    missing: str = ""  # why there is no broker
    tally: Tally = field(default_factory=Tally)
    visited: int = 0  # pipelines
    on_stores: Tally = field(default_factory=Tally)  # the same, of pipelines on object stores
    stored: int = 0  # of these that were begun
    released: int = 0  # the objects of Java before this number
    began: float = field(default_factory=time.perf_counter)

    def run(self) -> None:
        """Run all of it, each part in a share of the time."""
        self.stores(0.3)  # once: Spark keeps the address of a bucket
        self.first_starts()
        self.sequences()
        self.pipelines(0.7)
        self.writers()
        self.brokers()
        self.pipelines(1.0)

    def stores(self, share: float) -> None:
        """Try pipelines on object stores, until there are enough tries, or this share of the time is over."""

        def more() -> bool:
            return self._in_time(share) and self.stored < self.asked.stores and not self.on_stores.losses

        if not more():
            return
        with store_pipelines(self.spark, self.folder / "stores", self.asked) as pipelines:
            while more():
                number = self.asked.first + self.stored
                name = pipelines.run(number, self.on_stores)
                self.stored += 1
                self.released = release(self.spark, self.released)
                self._tell(f"{number} {name or 'has no server'}", self.on_stores)

    def first_starts(self) -> None:
        """Kill first starts of a script before one of their writes."""
        number = self.asked.first
        while self._left("first starts that died", self.asked.first_starts, 0.05) and not self.tally.losses:
            folder = self.folder / f"first starts {number}"
            first_starts(self.spark, folder, self.tally, number)
            shutil.rmtree(folder)
            number += 1
        self._tell("first starts")

    def sequences(self) -> None:
        """Run sequences of runs, each of which dies once."""
        number = self.asked.first
        while self._left("sequences of runs", self.asked.runs, 0.1) and not self.tally.losses:
            folder = self.folder / f"runs {number}"
            sequences(self.spark, folder, self.tally, number)
            shutil.rmtree(folder)
            number += 1
        self._tell("sequences")

    def writers(self) -> None:
        """Try clients of stream logs: stopped at their writes, with writes that fail, and killed."""
        asked, number = self.asked, self.asked.first
        while self._left("writer stops", asked.writer_stops, 0.8) and not self.tally.losses:
            sample, folder = Sample(random.Random(f"writer {number}")), self.folder / f"writer {number}"
            writer_stops(self.spark, folder / "stops", self.tally, number, sample)
            writer_faults(folder / "faults", self.tally, number, sample)
            shutil.rmtree(folder)
            number += 1
        number = asked.first
        while self._left("killed writers", asked.writer_kills, 0.85) and not self.tally.losses:
            times = min(asked.writer_kills, KILLS_A_STREAM)
            killed_writers(self.spark, self.folder / f"kills {number}", self.tally, number, times)
            number += 1
        self._tell("writers")

    def brokers(self) -> None:
        """Kill a broker beside a pipeline; if there is none, the last line says so."""

        def more() -> bool:
            return self._left("broker kills", self.asked.broker_kills)

        if not self.missing and more():
            broker_kills(self.spark, self.folder / "brokers", self.tally, self.asked.first, more)
            self._tell("brokers")

    def pipelines(self, share: float) -> None:
        """Try one pipeline of each kind after the other, until there are enough tries, or the time is over."""
        with ThreadPoolExecutor(1) as pool:
            while self._more(share):
                number = self.asked.first + self.visited
                self._pipeline(number, pool)
                self.visited += 1
                shutil.rmtree(self.folder / str(number))
                self._tell(f"{number} {Case(number, self.folder).name}")

    def _pipeline(self, number: int, pool: ThreadPoolExecutor) -> None:
        asked, tally, spark = self.asked, self.tally, self.spark
        folder, chance = self.folder / str(number), random.Random(f"crash {number}")
        run = undisturbed(Case(number, folder / "live"), spark, folder / "kept", Sample(chance, asked.every))
        dying = pool.submit(_processes, run, spark, asked, tally.counts.get("SIGKILLs", 0))
        if tally.counts.get("stops", 0) < asked.stops:
            stops(run, spark, tally, chance, asked.share)
        faults(run, spark, tally, chance, min(asked.faults_a_case, asked.faults - _tried(tally)))
        jumps(run, spark, tally, chance)
        tally.take(dying.result())
        self.released = release(spark, self.released)

    def replay(self) -> None:
        """Check that the journals and sinks of pipelines on disks and stores are a behaviour of the model."""
        for tally in (self.tally, self.on_stores):
            if tally.behaviours:
                tally.losses += refused([*tally.behaviours.values()])
                tally.add("different behaviours replayed in the model", len(tally.behaviours))

    def told(self) -> str:
        """Return the last line."""
        kinds = min(self.visited, len(KINDS))
        seconds = time.perf_counter() - self.began
        why = why_missing() if self.asked.stores else ""
        servers = f"not all servers of stores can be had: {why}; " if why else ""
        broker = f"0 broker kills, for there is no broker: {self.missing}; " if self.missing else ""
        stores = f"{servers}{_counts(self.on_stores)}; " if self.asked.stores else ""
        if self.asked.only_stores:
            return f"{stores}{seconds:.0f} s"
        return f"{stores}{broker}{self.visited} pipelines of {kinds} kinds, {_counts(self.tally)}; {seconds:.0f} s"

    def _tell(self, what: str, tally: Tally | None = None) -> None:
        print(f"{what}: {_counts(tally or self.tally)}; {time.perf_counter() - self.began:.0f} s", flush=True)

    def _left(self, kind: str, wanted: int, share: float = 1.0) -> bool:
        """Return True while more of a kind is to be tried, and the share of the time for it is not over."""
        return self._in_time(share) and self.tally.counts.get(kind, 0) < wanted

    def _in_time(self, share: float) -> bool:
        return time.perf_counter() - self.began < share * self.asked.seconds

    def _more(self, share: float) -> bool:
        counts, asked = self.tally.counts, self.asked
        return self._in_time(share) and (
            counts.get("stops", 0) < asked.stops
            or counts.get("SIGKILLs", 0) < asked.kills
            or _tried(self.tally) < asked.faults
        )


def _processes(run: Undisturbed, spark: SparkSession, asked: argparse.Namespace, killed: int) -> Tally:
    """Try drivers that are processes, in a folder of their own, beside the stops."""
    tally, number = Tally(), run.case.number
    chance, own = random.Random(f"kill {number}"), replace(run, case=Case(number, run.case.folder.parent / "killed"))
    ways = beside_others(WAYS, tally) if own.case.has_tables else WAYS
    kills(own, spark, tally, Deaths(chance, min(asked.kills_a_case, asked.kills - killed), ways))
    if number == asked.first and asked.kills:
        kills(own, None, tally, Deaths(chance, asked.with_java))
        fenced(own, spark, tally)
    return tally


def _counts(tally: Tally) -> str:
    tried = ", ".join(f"{times:,} {kind}" for kind, times in tally.counts.items()) or "nothing was tried"
    return f"{tried}, {len(tally.losses)} results lost or changed"


def _tried(tally: Tally) -> int:
    return tally.counts.get("failed writes", 0) + tally.counts.get("failed writes without effect", 0)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m reliability.crash")
    parser.add_argument("--stops", type=int, default=20_000, help="inside one process, at points and writes")
    parser.add_argument("--every", type=int, default=1, help="stop at one in so many points and writes")
    parser.add_argument("--share", type=float, default=0.02, help="of the stops run on to the end")
    parser.add_argument("--kills", type=int, default=400, help="of Python, whose Java stays")
    parser.add_argument("--kills-a-case", type=int, default=10)
    parser.add_argument("--with-java", type=int, default=10, help="kills of Python and its Java")
    parser.add_argument("--faults", type=int, default=2_500, help="writes that fail")
    parser.add_argument("--faults-a-case", type=int, default=200, help="each write of one tick if it has no more")
    parser.add_argument("--stores", type=int, default=24, help="pipelines with something in an object store")
    parser.add_argument("--only-stores", action="store_true", help="nothing but these")
    parser.add_argument("--first-starts", type=int, default=40, help="of a script, killed before one of their writes")
    parser.add_argument("--runs", type=int, default=200, help="sequences of runs with --available-now")
    parser.add_argument("--writer-stops", type=int, default=2_000, help="of clients of a stream log, at their writes")
    parser.add_argument("--writer-kills", type=int, default=200, help="of clients of a stream log")
    parser.add_argument("--broker-kills", type=int, default=40, help="of a Kafka broker beside a pipeline")
    parser.add_argument("--seconds", type=float, default=36_000.0, help="nothing is begun after so long")
    parser.add_argument("--first", type=int, default=0, help="the number of the first pipeline")
    return parser.parse_args()
