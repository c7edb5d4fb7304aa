"""rowtime in tasks of Spark beside Spark's streaming and batch engines, with the same files, ticks and durable sink.

    python -m benchmarks.on_spark                       # Nexmark, then small ticks
    python -m benchmarks.on_spark --only q0 q2          # these queries
    python -m benchmarks.on_spark --cores               # two cores against one

All write Parquet files. The streaming engine takes as many files of each stream a batch, with two shuffle partitions,
and the faster of its two state stores, which a run that is not counted finds. Runs go in turns, after a warm-up of
each. The share of the work that the busier core did is of the times of all tasks, as Spark measured them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import geometric_mean, median
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

import rowtime as rt
from benchmarks import engines as spark_engines
from benchmarks import pipeline_tick
from benchmarks.data import Rows
from benchmarks.engines import STORES, Engines
from benchmarks.nexmark import NATIVE, events, native_result
from examples.nexmark.queries import FOLDER, STREAMS, spark_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

QUERIES: Final = ("q0", "q1", "q2", "q3", "q4", "q5", "q7", "q8", "q11", "q13", "q14", "q20")
STATEFUL: Final = ("q3", "q7", "q8", "q11", "q20")
TICKS: Final = 5
WARM: Final = 200_000


def rowtime(engines: Engines, query: str, source: Path, files: int) -> float:
    """Return the seconds of a run of ``files`` files of each stream a tick into Parquet files."""
    place = engines.fresh("rowtime")
    made = rt.Pipeline(engines.spark, home=place / "home", small_ticks="spark")
    made.sql((FOLDER / "streams.sql").read_text(encoding="utf-8"), {"events": str(source)})
    text = _without_comments((FOLDER / f"{query}.sql").read_text(encoding="utf-8"))
    columns = ", ".join(f"`{one.name}` {one.dataType.simpleString()}" for one in _result(engines, query, source).schema)
    made.sql(f"CREATE STREAM written ({columns}) USING parquet OPTIONS (path '{place / 'out'}')")
    *views, last = (one.strip() for one in text.split(";") if one.strip())
    made.sql("".join(f"{one};" for one in [*views, f"CREATE PUMP writes AS INSERT INTO written {last}"]))
    began = time.perf_counter()
    made.run_available(place / "checkpoint", end=True, limits=rt.Limits(files=files))
    return time.perf_counter() - began


def native(engines: Engines, query: str, source: Path, files: int, store: str) -> float:
    place = engines.fresh("native")
    session = engines.derived({"spark.sql.streaming.stateStore.providerClass": STORES[store]})
    result = native_result(session, query, source, files)
    began = time.perf_counter()
    writer = result.writeStream.format("parquet").option("path", str(place / "out"))
    writer.option("checkpointLocation", str(place / "checkpoint")).trigger(availableNow=True).start().awaitTermination()
    return time.perf_counter() - began


def batch(engines: Engines, query: str, source: Path) -> float:
    result = _result(engines, query, source)
    began = time.perf_counter()
    result.write.mode("overwrite").parquet(str(engines.fresh("batch") / "out"))
    return time.perf_counter() - began


def _result(engines: Engines, query: str, source: Path) -> DataFrame:
    session = engines.derived({})
    for name in (*STREAMS, "side_input"):
        session.read.parquet(str(source / name)).createOrReplaceTempView(name)
    return session.sql(spark_text(query))


def nexmark(engines: Engines, query: str, asked: argparse.Namespace) -> dict[str, Any]:
    """Measure a query with all engines."""
    few, many = (events(count, 2 * TICKS) for count in (WARM, asked.events))
    stores = [*STORES] if query in STATEFUL else ["default"]
    found = min(stores, key=lambda store: native(engines, query, few, 2, store)) if query in NATIVE else "default"
    runs: dict[str, Callable[[Path], float]] = {"rowtime": lambda source: rowtime(engines, query, source, 2)}
    if query in NATIVE:
        runs["native"] = lambda source: native(engines, query, source, 2, found)
    runs["batch"] = lambda source: batch(engines, query, source)
    seconds, share = _in_turns(engines, {name: (run, few, many) for name, run in runs.items()}, asked.rounds)
    ours = seconds["rowtime"]
    return {
        "query": query,
        "seconds": seconds,
        "events_a_second": {name: int(asked.events / value) for name, value in seconds.items()},
        "against": {name: round(value / ours, 2) for name, value in seconds.items() if name != "rowtime"},
        **({"state_store": found} if query in STATEFUL else {}),
        "rows": {name: _written(engines.folder / name / "out") for name in runs},
        "share_of_the_busier_core": share,
    }


def _in_turns(
    engines: Engines, runs: dict[str, tuple[Callable[[Path], float], Path, Path]], rounds: int
) -> tuple[dict[str, float], float]:
    """Return the median of the seconds of each, and how much of the work of ours one core did at most."""
    spent: dict[str, list[float]] = {name: [] for name in runs}
    shares = []
    for number in range(rounds + 1):
        for name, (run, few, many) in runs.items():
            before = _last_job(engines)
            seconds = run(many if number else few)
            if number:
                spent[name].append(seconds)
            if number and name == "rowtime":
                shares.append(_busier(engines, before))
    return {name: round(median(each), 2) for name, each in spent.items()}, round(median(shares), 2)


def _store(engines: Engines) -> Any:
    return engines.spark._jsc.sc().statusStore()  # noqa: SLF001 - the only way to the times of tasks without a user interface


def _last_job(engines: Engines) -> int:
    jobs = _store(engines).jobsList(None)
    return max((int(jobs.apply(at).jobId()) for at in range(jobs.size())), default=-1)


def _busier(engines: Engines, after: int) -> float:
    """Return the greatest share that one of two cores can have had of the time of all tasks of later jobs.

    Tasks of a stage run beside each other, one on each core.
    """
    store, work = _store(engines), [0, 0]
    jobs = store.jobsList(None)
    for job in (jobs.apply(at) for at in range(jobs.size())):
        if int(job.jobId()) <= after:
            continue
        for at in range(job.stageIds().size()):
            tasks = store.taskList(job.stageIds().apply(at), 0, 1000)
            times = [tasks.apply(number).duration() for number in range(tasks.size())]
            for time_of in sorted((int(one.get()) for one in times if one.isDefined()), reverse=True):
                work[work.index(min(work))] += time_of
    return max(work) / max(sum(work), 1)


def small(engines: Engines) -> dict[str, Any]:
    """Ticks of 1,000 rows: one GROUP BY, a pipeline of five operators, an empty job with one step in Python."""
    rows = Rows(100, 34, files=1, rows=1000, step=60_000)
    source = rows.folder()
    found: dict[str, list[float]] = {name: [] for name in ("empty_job", "group_by", "pipeline", "native")}
    for number in range(4):
        ticks = {
            "empty_job": [_empty(engines) for _ in range(20)],
            "group_by": engines.rowtime(source, 1).ticks,
            "pipeline": pipeline_tick.run(engines, source)[0],
            "native": engines.native(source, 1).ticks,
        }
        for name, each in ticks.items():
            found[name].extend(each[1:-1] if number else [])
    medians = {name: round(median(each), 1) for name, each in found.items()}
    return {"rows_a_tick": rows.rows, "ticks_measured": len(found["group_by"]), "median_tick_ms": medians}


def _empty(engines: Engines) -> float:
    began = time.perf_counter()
    engines.spark.range(0, 1, 1, 1).mapInArrow(lambda batches: batches, "id bigint").toArrow()
    return 1000 * (time.perf_counter() - began)


def cores(asked: argparse.Namespace) -> dict[str, Any]:
    """Return the seconds of q4 and of Spark's batch with one core and with two, each in a process of its own."""
    found: dict[str, dict[str, float]] = {}
    for of in ("0", "0,1"):
        line = [sys.executable, "-m", "benchmarks.on_spark", "--only", "q4", "--events", str(asked.events)]
        done = subprocess.run(["taskset", "-c", of, *line], check=True, capture_output=True, text=True)
        found[of] = json.loads(done.stdout.splitlines()[-1])["seconds"]
    ratios = {name: round(found["0"][name] / found["0,1"][name], 2) for name in found["0"]}
    return {"query": "q4", "seconds": found, "one_core_against_two": ratios}


def _written(folder: Path) -> int:
    import pyarrow.parquet as pq  # noqa: PLC0415

    return sum(pq.ParquetFile(path).metadata.num_rows for path in folder.rglob("*.parquet"))


def _without_comments(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith("--"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=8_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", default=[], choices=[*QUERIES, "small"])
    parser.add_argument("--cores", action="store_true")
    asked = parser.parse_args()
    if asked.cores:
        print(json.dumps(cores(asked)), flush=True)
        return
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory() as folder:
        engines = Engines(spark_engines.session(Path(folder)), Path(folder))
        print(json.dumps({"spark": engines.spark.version, "pyarrow": pa.__version__}), flush=True)
        lines = []
        for query in (one for one in asked.only or QUERIES if one != "small"):
            lines.append(nexmark(engines, query, asked))
            print(json.dumps(lines[-1]), flush=True)
        if not asked.only or "small" in asked.only:
            print(json.dumps(small(engines)), flush=True)
        ratios = [line["against"]["native"] for line in lines if "native" in line["against"]]
        if ratios:
            print(json.dumps({"geometric_mean": round(geometric_mean(ratios), 2), "least": min(ratios)}), flush=True)


if __name__ == "__main__":
    main()
