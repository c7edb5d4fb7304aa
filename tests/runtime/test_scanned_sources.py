"""Sources that only Spark reads: one job a tick for each stream, or one for all, and the operators have the rows."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F  # noqa: N812 - Spark's name
from pyspark.sql.types import StringType, StructField, StructType

import rowtime as rt
from rowtime.core.errors import Failure
from rowtime.runtime.engine import TEXT, Portions
from rowtime.runtime.executors.tasks import Tasks
from rowtime.runtime.local_rows import of_source
from rowtime.runtime.sources.contract import Backlog, Limits, Slice, Source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """
CREATE STREAM a (k STRING, v INT, note STRING, ev TIMESTAMP) USING json OPTIONS (path '{a}', dateFormat 'yyyy-MM-dd');
CREATE STREAM b (k STRING, w DECIMAL(10, 2), note STRING, ev TIMESTAMP) USING csv OPTIONS (path '{b}', header 'true');
CREATE STREAM minutes (m TIMESTAMP, k STRING, c BIGINT, s BIGINT, x DOUBLE, l STRING)
  USING parquet OPTIONS (path '{out}');
CREATE VIEW sorted AS SELECT STREAM ev AS ROWTIME, k, v, note FROM a ORDER BY ev WITHIN INTERVAL '10' SECOND;
CREATE VIEW others AS SELECT STREAM ev AS ROWTIME, k, w, note AS n FROM b ORDER BY ev WITHIN INTERVAL '10' SECOND;
CREATE PUMP p AS INSERT INTO minutes
  SELECT STREAM FLOOR(t.ROWTIME TO MINUTE) AS m, k, COUNT(*) AS c, SUM(v) AS s, AVG(v * 0.1D) AS x, MAX(note) AS l
  FROM sorted AS t GROUP BY FLOOR(t.ROWTIME TO MINUTE), k;
SELECT STREAM t.k, v, w, note, n FROM sorted AS t JOIN others AS o ON t.k = o.k
  AND o.ROWTIME BETWEEN t.ROWTIME - INTERVAL '20' SECOND AND t.ROWTIME + INTERVAL '20' SECOND;
"""
TICKS = 3
SECONDS = (0, 20, 14, 40, 55)
WAYS = ("in tasks", "on the driver")


def write_files(place: Path, *, plain: bool) -> None:
    """A file of each stream for each tick; the second one has a row that is late and one that does not decode.

    ``plain``: other texts need no quotes.
    """
    for tick in range(TICKS):
        times = [f"2024-01-01T10:{tick:02}:{second:02}Z" for second in SECONDS] + ["2024-01-01T09:00:00Z"] * (tick == 1)
        rows = [{"k": "xy"[n % 2], "v": n + tick, "note": f'a, "b"\n{n}', "ev": at} for n, at in enumerate(times)]
        for name in "ab":
            (place / name).mkdir(exist_ok=True, parents=True)
        records = [json.dumps(row) for row in rows] + ['{"k": "x", "v": "none"}'] * (tick == 1)
        (place / "a" / f"{tick}.json").write_text("\n".join(records))
        with (place / "b" / f"{tick}.csv").open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["k", "w", "note", "ev"])
            notes = [f"b{n}" if plain else row["note"].replace("\n", " ") for n, row in enumerate(rows)]
            table.writerows(
                [row["k"], f"{row['v']}.25", note, row["ev"]] for row, note in zip(rows, notes, strict=True)
            )
        for path in (place / "a" / f"{tick}.json", place / "b" / f"{tick}.csv"):
            os.utime(path, (1_700_000_000 + tick, 1_700_000_000 + tick))


def run(spark: SparkSession, place: Path, way: str, sql: str = SQL, *, plain: bool = False) -> Mapping[str, Any]:
    write_files(place, plain=plain)
    return followed(spark, place, way, sql)


def followed(spark: SparkSession, place: Path, way: str, sql: str) -> Mapping[str, Any]:
    """Return what a run over files that are there gives, and how it went about it."""
    pipeline = rt.Pipeline(spark, home=place / "home")
    pipeline.sql(sql.format(a=place / "a", b=place / "b", out=place / "out"))
    got: list[Any] = []
    pipeline.sink("result", lambda batch: got.append((batch.tick, batch.first, batch.table().to_pylist())))
    engine = pipeline._engine(place / "check", rt.Limits(files=1), ends=True)
    engine.tasks = Tasks().over(engine.sources.values()) if way == "in tasks" else None
    jobs, copies, taken = list[int](), set[bool](), list[Any]()
    while True:
        before = engine._job_times.next()
        report = engine.tick()
        if report is None:
            break
        jobs.append(engine._job_times.next() - before)
        taken.append(dict(report.taken))
        copies.add(any(place.rglob("decoded/*.parquet")))
    needs, rounds = (engine.tasks.needs, engine.tasks._questions.rounds) if engine.tasks is not None else ("", 0)
    entry = dict(engine.entry)
    engine.stop()
    minutes = [row for path in (place / "out").glob("*.parquet") for row in pq.read_table(path).to_pylist()]
    return {
        "rows": got,
        "minutes": sorted(minutes, key=repr),
        "totals": entry["totals"],
        "clocks": entry["clocks"],
        "jobs": jobs[:TICKS],
        "needs": needs,
        "rounds": rounds,
        "copies": copies,
        "taken": taken,
    }


def test_every_way_gives_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    in_tasks, here = (run(spark, tmp_path / str(len(way)), way) for way in WAYS)
    assert here["totals"]["a"] == {"in": 17, "accepted": 16, "MALFORMED": 1}
    assert here["totals"]["sorted"]["LATE"] == 1
    assert len(here["minutes"]) == 2 * TICKS
    assert sum(len(rows) for _, _, rows in here["rows"]) > 2 * TICKS
    for name in ("rows", "minutes", "totals", "clocks"):
        assert in_tasks[name] == here[name], name
    assert {row["k"]: (row["c"], row["s"], row["l"]) for row in here["minutes"][:2]} == of_spark(spark, tmp_path)
    assert here["jobs"] == [2] * TICKS  # one of each stream
    assert in_tasks["jobs"] == [1] * TICKS
    assert in_tasks["needs"] == ""


def of_spark(spark: SparkSession, place: Path) -> dict[str, tuple[int, int, str]]:
    """The groups of the first minute, from the first file."""
    rows = spark.read.json(str(place / str(len(WAYS[1])) / "a" / "0.json"), "k STRING, v INT, note STRING")
    groups = rows.groupBy("k").agg(*map(F.expr, ("count(*) AS c", "sum(v) AS s", "max(note) AS l"))).collect()
    return {row.k: (row.c, row.s, row.l) for row in groups}


def test_catalyst_computes_values_of_what_spark_reads_in_the_same_job(spark: SparkSession, tmp_path: Path) -> None:
    sql = SQL.replace("MAX(note) AS l", "MAX(INITCAP(note)) AS l").replace(
        "v, w, note, n", "v, w, n, HEX(note) AS note"
    )
    in_tasks, here = (run(spark, tmp_path / str(len(way)), way, sql) for way in WAYS)
    for name in ("rows", "minutes", "totals", "clocks"):
        assert in_tasks[name] == here[name], name
    assert in_tasks["needs"] == ""
    assert in_tasks["rounds"] == 1
    assert in_tasks["jobs"][0] <= 2  # HEX is met once rows have joined
    assert in_tasks["jobs"][1:] == [1] * (TICKS - 1)


def test_plain_text_is_decoded_where_the_tick_is_computed(spark: SparkSession, tmp_path: Path) -> None:
    """The second tick has a record that only Spark decodes: a second job, with the same rows."""
    sql = SQL.replace(", dateFormat 'yyyy-MM-dd'", "").replace("w DECIMAL(10, 2)", "w DOUBLE")
    in_tasks, here = (run(spark, tmp_path / str(len(way)), way, sql, plain=True) for way in WAYS)
    assert here["totals"]["a"] == {"in": 17, "accepted": 16, "MALFORMED": 1}
    for name in ("rows", "minutes", "totals", "clocks"):
        assert in_tasks[name] == here[name], name
    assert here["jobs"] == [0, 1, 0]
    assert in_tasks["jobs"] == [1, 2, 1]
    assert here["taken"] == in_tasks["taken"]
    assert here["taken"][:TICKS] == [{"a": 5, "b": 5}, {"a": 7, "b": 6}, {"a": 5, "b": 5}]
    assert (in_tasks["needs"], in_tasks["rounds"]) == ("", 0)
    assert (in_tasks["copies"], here["copies"]) == ({False}, {False})


class Texts:
    """A source of text files of 100 MB; notes the limits that it is given."""

    def __init__(self) -> None:
        self.limits: list[Limits] = []

    def discover(self, start: Mapping[str, int], limits: Limits, state: Mapping[str, Any]) -> tuple[Slice, Any]:
        self.limits.append(limits)
        size = 100 << 20
        files = 1 if limits.bytes is not None and limits.bytes < 2 * size else 10
        return Slice(start, {"w": files}, rows=10_000_000, backlog=Backlog("bytes", files * size, 0)), state


def test_a_portion_of_text_has_a_size() -> None:
    portions, source = Portions(), Texts()
    before = {"offsets": {"w": 0}, "state": {}}
    for _ in range(2):
        part, _ = portions.take("a", source, before, Limits(bytes=1 << 30))  # type: ignore[arg-type]
        assert part.end == {"w": 1}
    assert [one.bytes for one in source.limits] == [1 << 30, TEXT, TEXT]


def test_a_portion_of_text_is_for_each_task() -> None:
    portions, source = Portions(lambda: 3), Texts()
    part, _ = portions.take("a", source, {"offsets": {"w": 0}, "state": {}}, Limits())  # type: ignore[arg-type]
    assert part.end == {"w": 10}
    assert [one.bytes for one in source.limits] == [None, 3 * TEXT]


class Large(Source):
    """Rows that Spark does not hand to the driver."""

    in_band, decodes, gives_rowtime, steady = False, False, False, True

    def __init__(self, why: str) -> None:
        self.schema = StructType([StructField("k", StringType())])
        self.why = why

    def read(self, _spark: object, _part: Slice) -> Large:
        return self

    def toArrow(self) -> pa.Table:  # noqa: N802 - Spark's name
        raise ValueError(self.why)


def test_rows_that_are_too_large_for_the_driver_are_for_a_task(spark: SparkSession) -> None:
    part = Slice({"w": 0}, {"w": 1}, rows=1000)
    session: Any = spark
    too_large: Any = Large("the total size of results is bigger than spark.driver.maxResultSize (1024.0 MiB)")
    with pytest.raises(Failure, match="R515 a tick has more rows than Spark hands out"):
        of_source(session, too_large, part)
    broken: Any = Large("no such topic")
    with pytest.raises(ValueError, match="no such topic"):
        of_source(session, broken, part)
