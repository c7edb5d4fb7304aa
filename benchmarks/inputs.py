"""The same rows as other programs write them: Kafka, JSON lines, CSV with quotes, Parquet without time zones, Delta.

    python -m benchmarks.inputs [--rows 1000000] [--tries 3] [--only json] [--key "INITCAP(k)"] [--value "SUM(v)"]
    python -m benchmarks.inputs --functions

sorts each by its event time with 60 s for disorder, and counts and sums by minute and key into Parquet: rowtime on the
driver, in one task of Spark, in tasks as by default, and Spark's own engine, in turns in one process with two shuffle
partitions. It
prints the median seconds, the jobs of a tick, and the speed against Spark's engine. The groups have to be equal; Spark
does not show the last minutes, because its input has no end. ``--key``: group by an expression over k and note;
``--value``: an aggregate of v, as a DOUBLE if it is not a sum. ``--functions``: a query for each family of functions,
from Parquet. Delta needs the Spark for which there is a connector.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import write_deltalake
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the customary name

import rowtime as rt
from benchmarks.other_spark import SETTINGS, delta_jars
from reliability.broker import Broker, find_connector
from rowtime.runtime.executors.executor import SparkJob
from rowtime.runtime.executors.tasks import Tasks

BEGIN: Final = 1_704_067_200  # 2024-01-01, seconds
FILES, PARTITIONS, KEYS, MINUTES, TOLERANCE = 16, 16, 100, 60, 60
TICKS: Final = 2
OURS: Final = ("driver", "one task", "tasks")
CSV: Final = {"header": "true", "escape": '"'}  # as Spark needs it to read quotes that are doubled inside of fields
SCHEMA: Final = "k STRING, v INT, note STRING, ev TIMESTAMP"
QUERY: Final = """
CREATE STREAM o (m TIMESTAMP, k STRING, c BIGINT, s {kind}) USING parquet OPTIONS (path '{out}', ordered 'false');
CREATE PUMP p AS INSERT INTO o SELECT STREAM FLOOR(t.ROWTIME TO MINUTE) AS m, k, COUNT(*) AS c, {value} AS s
FROM (SELECT STREAM ev AS ROWTIME, {key} AS k, v FROM a ORDER BY ev WITHIN INTERVAL '60' SECOND) AS t
GROUP BY FLOOR(t.ROWTIME TO MINUTE), k;
"""


@dataclass(frozen=True)
class Asked:
    """The key and the aggregate of a query."""

    key: str
    value: str

    def query(self, out: Path) -> str:
        """Return the query for a folder of output."""
        kind = "BIGINT" if self.value == "SUM(v)" else "DOUBLE"
        return QUERY.format(out=out, key=self.key, value=self.value, kind=kind)


FAMILIES: Final[Mapping[str, Asked]] = {
    "case of a text": Asked("UPPER(k)", "SUM(v)"),
    "regular expression": Asked("REGEXP_EXTRACT(k, '([0-9]+)', 1)", "SUM(v)"),
    "parts of a text": Asked("CONCAT_WS('-', LEFT(k, 2), SPLIT(note, ',')[0])", "SUM(v)"),
    "hash": Asked("SUBSTRING(SHA2(k, 256), 1, 2)", "SUM(v)"),
    "numbers": Asked("k", "SUM(ROUND(SQRT(v), 2))"),
    "decimals": Asked("k", "CAST(SUM(CAST(v / 7 AS DECIMAL(12, 4))) AS DOUBLE)"),
    "texts as numbers": Asked("k", "SUM(CAST(SUBSTRING(k, 2) AS DOUBLE))"),
    "dates": Asked("CAST(DAYOFWEEK(ev) AS STRING)", "SUM(v)"),
    "JSON": Asked("""GET_JSON_OBJECT(CONCAT('{"a": "', k, '"}'), '$.a')""", "SUM(v)"),
    "deviation": Asked("k", "STDDEV(v)"),
    "median": Asked("k", "MEDIAN(v)"),
    "only Catalyst: a value": Asked("INITCAP(k)", "SUM(v)"),
    "only Catalyst: an aggregate": Asked("k", "SKEWNESS(v)"),
}
"""A query of each family of functions."""

Run = tuple[float, float, set[tuple[Any, ...]]]
"""Seconds, the jobs of a tick, and the groups."""


def records(number: int, rows: int, parts: int = 1) -> Iterator[dict[str, Any]]:
    """Yield the rows of one file or partition: of the hour, or of one of its ``parts``, in order up to 30 s."""
    random = np.random.default_rng(number)
    count, span = rows // FILES, MINUTES * 60 // parts
    start = BEGIN + number * span * (parts > 1)
    times = start + np.arange(count) * span // count - random.integers(0, 30, count)
    columns = [random.integers(0, most, count).tolist() for most in (KEYS, 1000)]
    for n, (at, key, value) in enumerate(zip(times.tolist(), *columns, strict=True)):
        ev = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
        yield {"k": f"k{key}", "v": value, "note": f'a, "b" {n}', "ev": ev}


def write_json(path: Path, number: int, rows: int) -> None:
    path.write_text("\n".join(map(json.dumps, records(number, rows, FILES))))


def write_csv(path: Path, number: int, rows: int) -> None:
    with path.open("w") as file:
        file.write("k,v,note,ev\n")
        for row in records(number, rows, FILES):
            note = row["note"].replace('"', '""')
            file.write(f'{row["k"]},{row["v"]},"{note}",{row["ev"]}\n')


def write_parquet(path: Path, number: int, rows: int) -> None:
    table = pa.Table.from_pylist([*records(number, rows, FILES)])
    naive = table["ev"].cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us"))
    columns = {"k": table["k"], "v": table["v"].cast(pa.int32()), "note": table["note"], "ev": naive}
    pq.write_table(pa.table(columns), path)


def write_delta(path: Path, number: int, rows: int) -> None:
    table = pa.Table.from_pylist([*records(number, rows, FILES)])
    columns = {**{name: table[name] for name in ("k", "note")}, "v": table["v"].cast(pa.int32())}
    columns["ev"] = table["ev"].cast(pa.timestamp("us", "UTC"))
    write_deltalake(path.parent, pa.table(columns), mode="append")


WRITERS: Final[Mapping[str, Callable[[Path, int, int], None]]] = {
    "json": write_json,
    "csv": write_csv,
    "parquet": write_parquet,
    "delta": write_delta,
}


def fill(folder: Path, kind: str, rows: int) -> None:
    """Write the files; each covers a sixteenth of the hour of its number, so that ticks see time pass."""
    folder.mkdir(parents=True)
    for number in range(FILES):
        path = folder / f"{number:02}.{kind}"
        WRITERS[kind](path, number, rows)
        if path.exists():
            os.utime(path, (BEGIN + number, BEGIN + number))


def send(broker: Broker, rows: int) -> None:
    from confluent_kafka import Producer  # noqa: PLC0415 - an extra

    broker.create_topic("records", PARTITIONS)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "queue.buffering.max.messages": 2_000_000})
    for number in range(PARTITIONS):
        for row in records(number, rows):
            producer.produce("records", json.dumps(row).encode(), partition=number)
            producer.poll(0)
    producer.flush()


class OneTask(SparkJob):
    """A tick is never divided."""

    def tasks(self, spark: SparkSession) -> int:  # noqa: ARG002 - the contract's
        """Return one."""
        return 1


def ours(  # noqa: PLR0913 - a source, and how it is read
    spark: SparkSession, source: str, place: Path, small_ticks: str, limits: rt.Limits, *, of: Asked, end: bool
) -> Run:
    """Run rowtime to the end of its present input."""
    where = "driver" if small_ticks == "driver" else "spark"
    pipeline = rt.Pipeline(spark, home=place / "home", small_ticks=where)
    pipeline.sql(f"CREATE STREAM a ({SCHEMA}) {source};" + of.query(place / "out"))
    jobs: list[int] = []
    began = time.perf_counter()
    engine = pipeline._engine(place / "check", limits, ends=end)  # noqa: SLF001 - a benchmark counts its jobs
    engine.available_now = True
    if small_ticks == "one task":
        engine.tasks = Tasks(OneTask()).over(engine.sources.values())
    while True:
        before = engine._job_times.next()  # noqa: SLF001 - as above
        if engine.tick() is None:
            break
        jobs.append(engine._job_times.next() - before)  # noqa: SLF001 - as above
    engine.stop()
    return time.perf_counter() - began, median(jobs), groups(place / "out", "m")


def native(spark: SparkSession, source: Callable[[SparkSession], DataFrame], place: Path, of: Asked) -> Run:
    """Run Spark's engine to the end of the present input."""
    began = time.perf_counter()
    window = F.window("ev", "1 minute")
    timed = source(spark).withWatermark("ev", f"{TOLERANCE} seconds")
    grouped = timed.groupBy(window, F.expr(of.key).alias("k"))
    totals = grouped.agg(F.count("*").alias("c"), F.expr(of.value).alias("s")).selectExpr(
        "window.start AS m", "k", "c", "s"
    )
    options = {"path": str(place / "out"), "checkpointLocation": str(place / "check")}
    query = totals.writeStream.format("parquet").options(**options).trigger(availableNow=True).start()
    query.awaitTermination()
    return time.perf_counter() - began, 0.0, groups(place / "out", "m")


def groups(folder: Path, time_column: str) -> set[tuple[Any, ...]]:
    files = [str(path) for path in folder.glob("*.parquet")]
    table = ds.dataset(files).to_table()
    at = table[time_column].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
    values = [float(f"{value:.9g}") if isinstance(value, float) else value for value in table["s"].to_pylist()]
    return {*zip(at, *(table[name].to_pylist() for name in "kc"), values, strict=True)}


def measure(spark: SparkSession, name: str, forms: Mapping[str, Callable[[Path], Run]], tries: int) -> None:
    seconds: dict[str, list[float]] = {form: [] for form in forms}
    jobs: dict[str, float] = {}
    answers: dict[str, set[tuple[Any, ...]]] = {}
    for turn in range(tries + 1):  # the first one is not counted
        for form, run in forms.items():
            with tempfile.TemporaryDirectory() as folder:
                spent, jobs[form], answers[form] = run(Path(folder))
            seconds[form] += [spent] if turn else []
    assert spark.sparkContext is not None
    mine, theirs = answers["driver"], answers["native"]
    equal = all(answers[form] == mine for form in OURS) and theirs <= mine and len(theirs) > 0.9 * len(mine)
    middles = {form: median(each) for form, each in seconds.items()}
    speed = {form: round(middles["native"] / middles[form], 2) for form in OURS}
    shown = {form: round(each, 2) for form, each in middles.items()}
    jobs_a_tick = {form: jobs[form] for form in OURS}
    result = {"input": name, "seconds": shown, "jobs a tick": jobs_a_tick, "speed against Spark": speed}
    print(json.dumps({**result, "answers": "equal" if equal else "DIFFERENT"}), flush=True)
    if not equal:
        sys.exit(1)


def main() -> None:
    """Measure each input."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--tries", type=int, default=3)
    parser.add_argument("--only", choices=["kafka", *WRITERS])
    parser.add_argument("--key", default="k")
    parser.add_argument("--value", default="SUM(v)")
    parser.add_argument("--functions", action="store_true")
    asked_for = parser.parse_args()
    kinds = [asked_for.only] if asked_for.only else ["kafka", *WRITERS]
    jars = ",".join([*(find_connector().jars or []), *([delta_jars()] if "delta" in kinds else [])])
    builder = SparkSession.builder.master("local[2]").config("spark.jars", jars).config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "4g").config("spark.sql.session.timeZone", "UTC")
    for name, value in SETTINGS.items() if "delta" in kinds else ():
        builder = builder.config(name, value)
    spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    place = Path(tempfile.mkdtemp())
    try:
        if asked_for.functions:
            measure_functions(spark, place / "parquet", asked_for)
            return
        for kind in kinds:
            (measure_kafka if kind == "kafka" else measure_files)(spark, place / kind, kind, asked_for)
    finally:
        spark.stop()
        shutil.rmtree(place, ignore_errors=True)


def measure_functions(spark: SparkSession, folder: Path, asked_for: argparse.Namespace) -> None:
    fill(folder, "parquet", asked_for.rows)
    for family, of in FAMILIES.items():
        measure_query(spark, folder, "parquet", family, of, asked_for.tries)


def measure_files(spark: SparkSession, folder: Path, kind: str, asked_for: argparse.Namespace) -> None:
    fill(folder, kind, asked_for.rows)
    measure_query(spark, folder, kind, kind, Asked(asked_for.key, asked_for.value), asked_for.tries)


def measure_query(  # noqa: PLR0913 - a query over files
    spark: SparkSession, folder: Path, kind: str, name: str, of: Asked, tries: int
) -> None:
    given = CSV if kind == "csv" else {}
    options = ", ".join(f"{name} '{value}'" for name, value in {"path": folder, **given}.items())
    source = f"USING {kind} OPTIONS ({options})"
    limits = rt.Limits(files=FILES // TICKS)

    def theirs(session: SparkSession) -> DataFrame:
        reader = session.readStream.option("maxFilesPerTrigger", FILES // TICKS)
        reader = reader if kind == "delta" else reader.schema(SCHEMA)
        return reader.options(**given).format(kind).load(str(folder))

    forms: dict[str, Callable[[Path], Run]] = {
        "driver": lambda place: ours(spark, source, place, "driver", limits, of=of, end=True),
        "one task": lambda place: ours(spark, source, place, "one task", limits, of=of, end=True),
        "tasks": lambda place: ours(spark, source, place, "spark", limits, of=of, end=True),
        "native": lambda place: native(spark, theirs, place, of),
    }
    measure(spark, name, forms, tries)


def measure_kafka(spark: SparkSession, _folder: Path, kind: str, asked_for: argparse.Namespace) -> None:
    with Broker() as broker:
        send(broker, asked_for.rows)
        options = f"kafka.bootstrap.servers '{broker.bootstrap}', subscribe 'records'"
        source = f"USING kafka OPTIONS ({options}, format 'json')"
        limits, of = rt.Limits(rows=asked_for.rows // TICKS), Asked(asked_for.key, asked_for.value)

        def theirs(session: SparkSession) -> DataFrame:
            reader = session.readStream.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap)
            reader = reader.option("subscribe", "records").option("startingOffsets", "earliest")
            rows = reader.option("maxOffsetsPerTrigger", asked_for.rows // TICKS).load()
            return rows.select(F.from_json(F.col("value").cast("string"), SCHEMA).alias("r")).select("r.*")

        forms: dict[str, Callable[[Path], Run]] = {
            "driver": lambda place: ours(spark, source, place, "driver", limits, of=of, end=False),
            "one task": lambda place: ours(spark, source, place, "one task", limits, of=of, end=False),
            "tasks": lambda place: ours(spark, source, place, "spark", limits, of=of, end=False),
            "native": lambda place: native(spark, theirs, place, of),
        }
        measure(spark, f"{kind}, {PARTITIONS} partitions", forms, asked_for.tries)


if __name__ == "__main__":
    main()
