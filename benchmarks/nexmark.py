"""Nexmark: events per second through each query, beside Spark's batch and, where possible, its streaming engine.

Spark's streaming runs the text of ``examples/nexmark/spark``, with a watermark of no delay. It refuses ROW_NUMBER,
COUNT(DISTINCT …) and groups that no window closes; it joins without a bound and keeps every row of both sides. Results
are discarded: ours, in stream order, by a function, those of Spark by its ``noop`` sink.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import rowtime as rt
from benchmarks.data import CACHE
from benchmarks.measurement import Measurement, Result, against, middle
from examples.nexmark.events import write
from examples.nexmark.queries import QUERIES, STREAMS, batched, difference, pipeline, spark_text, streamed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from benchmarks.engines import Engines

FILES, TICK = 10, 2
SHORT, LONG, WARM = 100_000, 2_000_000, 20_000
NATIVE_SPEED = 1.2
NATIVE = ("q0", "q1", "q2", "q3", "q7", "q8", "q11", "q13", "q14", "q20")


def events(count: int, files: int = FILES) -> Path:
    """Return the events, which are made if they do not exist."""
    folder = CACHE / f"nexmark-{count}x{files}"
    done = folder.with_suffix(".done")
    if not done.exists():
        write(folder, count, files)
        done.touch()
    return folder


def measure(engines: Engines, *, short: bool, query: str) -> Result:
    """Warm up and compare the rows on few events, then run the engines in turns."""
    count, rounds = (SHORT, 1) if short else (LONG, 3)
    few, many = events(WARM), events(count)
    differs = difference(
        streamed(query, few, engines.fresh("nexmark"), engines.spark, TICK), batched(query, few, engines.spark)
    )
    runs = {"rowtime": run_rowtime, "batch": _batch} | ({"native": _native} if query in NATIVE else {})
    spent: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds + 1):
        for name, run in runs.items():
            seconds = run(engines, query, many if number else few)
            spent[name].extend([seconds] if number else [])
    medians = {name: middle([1000 * one for one in seconds]) for name, seconds in spent.items()}
    speeds = {name: int(count / value * 1000) for name, value in medians.items()}
    others = [name for name in runs if name != "rowtime"]
    return {
        "events": count,
        "rounds": rounds,
        "median_ms": medians,
        "events_a_second": speeds,
        "against": {name: round(medians[name] / medians["rowtime"], 2) for name in others},
        "answers": {"batch": differs or "equal"},
        "ratios": [against("native", medians["native"] / medians["rowtime"], NATIVE_SPEED)] if "native" in runs else [],
    }


def run_rowtime(engines: Engines, query: str, source: Path, kind: str = "parquet") -> float:
    """Return the seconds of a run over files of this kind; a function discards the rows."""
    place = engines.fresh("nexmark")
    made, began = pipeline(query, source, place / "home", engines.spark, kind), time.perf_counter()
    made.sink("result", lambda _batch: None).run_available(place / "checkpoint", end=True, limits=rt.Limits(files=TICK))
    return time.perf_counter() - began


def _batch(engines: Engines, query: str, source: Path) -> float:
    session = engines.derived({})
    for name in (*STREAMS, "side_input"):
        session.read.parquet(str(source / name)).createOrReplaceTempView(name)
    began = time.perf_counter()
    session.sql(spark_text(query)).write.format("noop").mode("overwrite").save()
    return time.perf_counter() - began


def _native(engines: Engines, query: str, source: Path) -> float:
    place, session = engines.fresh("nexmark-native"), engines.derived({})
    result = native_result(session, query, source, TICK)
    began = time.perf_counter()
    writer = result.writeStream.format("noop")
    running = writer.option("checkpointLocation", str(place / "checkpoint")).trigger(availableNow=True).start()
    running.awaitTermination()
    return time.perf_counter() - began


def native_result(session: SparkSession, query: str, source: Path, files: int) -> DataFrame:
    """Return the rows of Spark's streaming engine, which takes so many files of each stream a batch."""
    for name in STREAMS:
        read = session.readStream.schema(session.read.parquet(str(source / name)).schema)
        rows = read.option("maxFilesPerTrigger", files).parquet(str(source / name))
        rows.withWatermark("dateTime", "0 seconds").createOrReplaceTempView(name)
    session.read.parquet(str(source / "side_input")).createOrReplaceTempView("side_input")
    return session.sql(spark_text(query))


NEXMARK = tuple(
    Measurement(f"nexmark_{query}", f"Nexmark {query}, from Parquet", partial(measure, query=query))
    for query in QUERIES
)
