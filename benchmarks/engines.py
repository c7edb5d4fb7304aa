"""The one query, run by rowtime, by Spark's streaming engine and by Spark as a batch."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rowtime as rt
from rowtime.runtime.session import new_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "ev timestamp, k bigint, v bigint"
SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
}
STORES = {
    "default": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    "rocksdb": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
}
SQL = """
CREATE STREAM s (ev TIMESTAMP, k BIGINT, v BIGINT) USING parquet OPTIONS (path '{source}');
CREATE STREAM o (w TIMESTAMP, k BIGINT, c BIGINT, sv BIGINT) USING {sink} OPTIONS (path '{output}');
CREATE VIEW f AS SELECT STREAM ev AS ROWTIME, k, v FROM s ORDER BY ev WITHIN INTERVAL '{within}' SECOND;
CREATE PUMP p AS INSERT INTO o
SELECT STREAM FLOOR(f.ROWTIME TO MINUTE) w, k, COUNT(*) c, SUM(v) sv FROM f GROUP BY FLOOR(f.ROWTIME TO MINUTE), k;
"""


@dataclass
class Run:
    """One run: its output folder, the milliseconds of each tick and of all, the rows refused."""

    output: Path
    ticks: list[float] = field(default_factory=list)
    total: float = 0.0
    refused: int = 0


@dataclass(frozen=True)
class Engines:
    """The session that all engines share, and a folder for their output."""

    spark: SparkSession
    folder: Path

    def fresh(self, name: str) -> Path:
        path = self.folder / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        return path

    def processor(self) -> float:
        """Seconds of processor time of Python and Java; on a busy machine more reliable than a clock."""
        java = self.spark._jvm.java.lang.ProcessHandle.current().pid()  # noqa: SLF001 - Python cannot ask otherwise
        used = 0
        for process in ("self", java):
            fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
            used += sum(map(int, fields[11:15]))  # of the process and of its children, in ticks of the system
        return used / os.sysconf("SC_CLK_TCK")

    def rowtime(
        self, source: Path, files: int, within: int = 10, listener: Listener | None = None, sink: str = "parquet"
    ) -> Run:
        """Read ``files`` files per tick until none is left, then end the stream."""
        place = self.fresh(f"rowtime-{sink}")
        run, began = Run(place / "out"), time.perf_counter()
        query = self.pipeline(source, place, within, sink).run_available(
            place / "checkpoint", end=True, limits=rt.Limits(files=files), listener=listener or _milliseconds(run)
        )
        run.total = (time.perf_counter() - began) * 1000
        run.refused = sum(counts["in"] - counts["accepted"] for counts in query.ledger.values())
        return run

    def pipeline(self, source: Path, place: Path, within: int = 10, sink: str = "parquet") -> rt.Pipeline:
        text = SQL.format(source=source, output=place / "out", within=within, sink=sink)
        return rt.Pipeline(self.spark, home=place / "home").sql(text)

    def native(self, source: Path, files: int, store: str = "default", within: int = 10) -> Run:
        """Run Spark's streaming engine: the same files per batch, its own watermark, append mode."""
        place = self.fresh(store)
        spark = self.derived({"spark.sql.streaming.stateStore.providerClass": STORES[store]})
        rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", files).parquet(str(source))
        groups = _grouped(rows.withWatermark("ev", f"{within} seconds"))
        run, began = Run(place / "out"), time.perf_counter()
        writer = groups.writeStream.format("parquet").option("path", str(run.output))
        query = writer.option("checkpointLocation", str(place / "checkpoint")).trigger(availableNow=True).start()
        query.awaitTermination()
        run.total = (time.perf_counter() - began) * 1000
        run.ticks = [p["durationMs"]["triggerExecution"] for p in query.recentProgress if p["numInputRows"]]
        run.refused = sum(p["stateOperators"][0]["numRowsDroppedByWatermark"] for p in query.recentProgress)
        return run

    def batch(self, source: Path) -> Run:
        """Compute the same groups as one Spark batch query."""
        run, began = Run(self.fresh("batch") / "out"), time.perf_counter()
        rows = self.derived({}).read.schema(SCHEMA).parquet(str(source))
        _grouped(rows).write.parquet(str(run.output))
        run.total = (time.perf_counter() - began) * 1000
        return run

    def derived(self, more: Mapping[str, str]) -> SparkSession:
        """Return a session of its own with the common settings and more."""
        session = self.spark.newSession()
        for key, value in {**SETTINGS, **more}.items():
            session.conf.set(key, value)
        return session


Listener = Callable[[dict[str, Any]], None]


def session(folder: Path) -> SparkSession:
    """Return one application on two cores, whose sessions all have the same settings."""
    quiet = {"spark.ui.enabled": "false", "spark.sql.warehouse.dir": str(folder / "warehouse")}
    kept = {"spark.sql.streaming.numRecentProgressUpdates": "10000"}
    return new_spark(master="local[2]", conf={**SETTINGS, **quiet, **kept})


def _milliseconds(run: Run) -> Listener:
    return lambda progress: run.ticks.append(progress["durationMs"]["triggerExecution"])


def _grouped(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    groups = rows.groupBy(F.window("ev", "1 minute"), "k").agg(F.count("*").alias("c"), F.sum("v").alias("sv"))
    return groups.select(F.col("window.start").alias("w"), "k", "c", "sv")
