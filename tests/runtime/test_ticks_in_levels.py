"""A tick of many rows: tasks of Spark read, judge and combine a part of them each, and one task has the rest."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

import rowtime as rt
from rowtime.runtime.executors import tasks as tasks_module
from rowtime.runtime.executors.executor import InProcess, SparkJob
from rowtime.runtime.executors.tasks import Tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.runtime.executors.executor import Job

SQL: Final = """
CREATE STREAM a (k STRING, v INT, ev TIMESTAMP) USING {kind} OPTIONS (path '{source}');
CREATE VIEW sorted AS SELECT STREAM ev AS ROWTIME, k, v FROM a ORDER BY ev WITHIN INTERVAL '5' SECOND;
CREATE STREAM minutes (m TIMESTAMP, k STRING, c BIGINT, s BIGINT, f INT)
  USING parquet OPTIONS (path '{out}', ordered 'false');
CREATE PUMP p AS INSERT INTO minutes
  SELECT STREAM FLOOR(t.ROWTIME TO MINUTE) AS m, k, COUNT(*) AS c, SUM(v) AS s, FIRST_VALUE(v) AS f
  FROM sorted AS t WHERE v <> 3 GROUP BY FLOOR(t.ROWTIME TO MINUTE), k;
SELECT STREAM k, v, SUM(v) OVER (ORDER BY ROWTIME RANGE INTERVAL '2' SECOND PRECEDING) AS s FROM sorted WHERE v = 7;
"""
OF_SPARK: Final = (
    SQL.replace("ev AS ROWTIME, k, v", "ev AS ROWTIME, INITCAP(k) AS k, v")
    .replace("FIRST_VALUE(v) AS f", "CAST(BROUND(CBRT(SUM(v)), 0) AS INT) AS f")
    .replace("SELECT STREAM k, v, SUM(v)", "SELECT STREAM HEX(k) AS k, v, SUM(v)")
)
"""The same with values that only Spark computes, on both levels."""
BEGIN: Final = 1_704_067_200_000_000
FILES: Final = 8
ROWS: Final = 6_000  # of a file
KEYS: Final = "abc"


@dataclass(frozen=True)
class Counting(SparkJob):
    """Counts the ticks that are divided, by their tasks."""

    ticks: list[int] = field(default_factory=list)
    keyed: list[int] = field(default_factory=list)
    cores: int = 3

    def tasks(self, spark: SparkSession) -> int:  # noqa: ARG002 - the contract's
        """Return the number: the session of the tests may have one core."""
        return self.cores

    def divided(self, spark: SparkSession, job: Job) -> bytes:
        """Compute them, and count the tick."""
        self.ticks.append(job.many)
        self.keyed.append(job.keyed)
        return super().divided(spark, job)


def write_files(folder: Path, kind: str, chance: random.Random, overlap: int) -> None:
    """Write files in the order of time; each begins ``overlap`` µs before the end of the one before."""
    folder.mkdir(parents=True)
    for number in range(FILES):
        begin = BEGIN + number * (ROWS * 1000 - overlap)
        times = [begin + n * 1000 + chance.randrange(-6_000_000, 6_000_000) for n in range(ROWS)]
        columns = {
            "k": [chance.choice(KEYS) for _ in times],
            "v": pa.array([chance.randrange(9) for _ in times], pa.int32()),
        }
        table = pa.table({**columns, "ev": pa.array(times, pa.timestamp("us"))})
        path = folder / f"{number}.{kind}"
        if kind == "delta":
            write_deltalake(
                folder, table.set_column(2, "ev", table["ev"].cast(pa.timestamp("us", "UTC"))), mode="append"
            )
            continue
        if kind == "csv":
            pc.write_csv(table, path, pc.WriteOptions(include_header=False))
        else:
            pq.write_table(table, path)
        os.utime(path, (1_700_000_000 + number,) * 2)


def run(
    spark: SparkSession, place: Path, source: Path, kind: str, executor: SparkJob | None, sql: str = SQL
) -> dict[str, Any]:
    small_ticks = "driver" if executor is None else "spark"
    pipeline = rt.Pipeline(spark, home=place / "home", small_ticks=small_ticks)
    pipeline.sql(sql.format(kind=kind, source=source, out=place / "out"))
    got: list[Any] = []
    pipeline.sink("result", lambda batch: got.append((batch.tick, batch.table().to_pylist())))
    jobs = []
    engine = pipeline._engine(place / "check", rt.Limits(files=FILES // 2), ends=True)
    engine.tasks = None if executor is None else Tasks(executor).over(engine.sources.values())
    while True:
        before = engine._job_times.next()
        if engine.tick() is None:
            break
        jobs.append(engine._job_times.next() - before)
    refused = [
        row
        for file in sorted((place / "check").rglob("rejected/**/*.parquet"))
        for row in pq.read_table(file).to_pylist()
    ]
    entry = engine.entry
    engine.stop()
    minutes = [row for file in (place / "out").glob("*.parquet") for row in pq.read_table(file).to_pylist()]
    own = ("link", "proof")  # of this checkpoint
    scalars = {name: {key: of[key] for key in of if key not in own} for name, of in entry["control"].items()}
    return {
        "rows": got,
        "minutes": sorted(minutes, key=repr),
        "totals": dict(entry["totals"]),
        "refused": sorted(refused, key=repr),
        "scalars": scalars,
        "jobs": jobs,
        "cost": entry["cost"],
    }


@pytest.mark.parametrize("kind", ["parquet", "csv", "delta"])
@pytest.mark.parametrize("overlap", [0, 4_000_000], ids=["files in order", "files that overlap"])
def test_several_tasks_give_what_one_process_gives(
    spark: SparkSession, tmp_path: Path, kind: str, overlap: int
) -> None:
    write_files(tmp_path / "in", kind, random.Random(overlap), overlap)
    executor = Counting()
    driver = run(spark, tmp_path / "driver", tmp_path / "in", kind, None)
    tasks = run(spark, tmp_path / "tasks", tmp_path / "in", kind, executor)
    late = driver["totals"]["sorted"]["LATE"]
    assert late > 100, driver["totals"]
    for name in ("totals", "minutes", "rows", "refused", "scalars"):
        assert tasks[name] == driver[name], name
    assert {*executor.ticks} == {3}
    rows = ROWS * FILES // 2  # of a tick; each of three tasks has whole files
    assert (tasks["cost"]["tasks"], tasks["cost"]["largest"]) == (4, rows // 2)
    assert 0 < tasks["cost"]["shuffled"] < 60 * rows
    assert not {"tasks", "largest", "shuffled"} & {*driver["cost"]}
    assert len(executor.ticks) == sum(tasks["jobs"])  # no tick was computed by one task, or on the driver
    assert max(tasks["jobs"]) <= 2
    assert overlap or tasks["jobs"][0] == 2  # rows of a file are late because of those before it


def test_spark_computes_values_on_both_levels(spark: SparkSession, tmp_path: Path) -> None:
    write_files(tmp_path / "in", "parquet", random.Random(2), 0)
    executor = Counting()
    given = tmp_path / "in", "parquet"
    driver, tasks = (run(spark, tmp_path / str(of), *given, of, OF_SPARK) for of in (None, executor))
    for name in ("totals", "minutes", "rows", "refused", "scalars"):
        assert tasks[name] == driver[name], name
    assert {row["k"] for row in tasks["minutes"]} == {*KEYS.upper()}
    first, *others = tasks["jobs"]
    assert len(executor.ticks) == sum(tasks["jobs"])
    # Groups in tasks of keys show what else they ask for, then the level above, and rows of a file are late.
    assert first <= 4
    assert max(others) <= 2


def test_row_groups_of_one_file_are_divided(spark: SparkSession, tmp_path: Path) -> None:
    write_files(tmp_path / "files", "parquet", random.Random(3), 0)
    rows = pa.concat_tables(pq.read_table(tmp_path / "files" / f"{number}.parquet") for number in range(FILES))
    (tmp_path / "in").mkdir()
    pq.write_table(rows, tmp_path / "in" / "0.parquet", row_group_size=ROWS + 7)
    executor = Counting()
    driver, tasks = (run(spark, tmp_path / str(of), tmp_path / "in", "parquet", of) for of in (None, executor))
    for name in ("totals", "minutes", "rows", "refused", "scalars"):
        assert tasks[name] == driver[name], name
    assert {*executor.ticks} == {3}


def test_a_part_has_no_more_rows_than_a_process_holds(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path / "in", "parquet", random.Random(4), 0)
    monkeypatch.setattr(tasks_module, "MOST", ROWS)
    executor = Counting(cores=1)
    assert max(run(spark, tmp_path / "tasks", tmp_path / "in", "parquet", executor)["jobs"]) <= 2
    assert {*executor.ticks} == {FILES // 2}


STREAM: Final = "CREATE STREAM a (k {k}, v INT{check}, ev TIMESTAMP) USING parquet OPTIONS (path '{source}');"
SORTED: Final = "CREATE VIEW s AS SELECT STREAM ev AS ROWTIME, k, v FROM a ORDER BY ev WITHIN INTERVAL '5' SECOND;"
MINUTE: Final = "GROUP BY FLOOR(s.ROWTIME TO MINUTE), k"
HOP: Final = "s.ROWTIME, INTERVAL '1' SECOND, INTERVAL '3' SECOND"
KINDS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "rows that a check refuses": (f"SELECT STREAM k, SUM(v) AS n FROM s {MINUTE}", {"check": " CHECK (v <> 5)"}),
    "texts of a length": (f"SELECT STREAM k, SUM(v) AS n FROM s {MINUTE}", {"k": "VARCHAR(1)"}),
    "rows that are made": (
        f"SELECT STREAM k, x, COUNT(*) AS n FROM s LATERAL VIEW EXPLODE(SEQUENCE(1, 2)) AS x {MINUTE}, x",
        {},
    ),
    "windows that overlap": (
        f"SELECT STREAM k, HOP_END({HOP}) AS e, COUNT(*) AS n, MAX(v) AS m FROM s GROUP BY HOP({HOP}), k",
        {},
    ),
    "aggregates without a partial form": (f"SELECT STREAM k, MEDIAN(v) AS m, COLLECT_LIST(v) AS l FROM s {MINUTE}", {}),
    "different values": (f"SELECT STREAM k, COUNT(DISTINCT v) AS n, AVG(v) AS m FROM s {MINUTE}", {}),
    "groups of the last rows": (f"SELECT STREAM k, MAX_BY(v, v % 5) AS b, LAST_VALUE(v) AS l FROM s {MINUTE}", {}),
    "groups within a tolerance": (
        "SELECT STREAM k, COUNT(*) AS n FROM a GROUP BY FLOOR(ev TO MINUTE) WITHIN INTERVAL '5' SECOND, k",
        {},
    ),
    "rows as they are": ("SELECT STREAM k, v FROM s WHERE v > 3", {}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_queries_of_all_kinds_give_the_same(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    write_files(tmp_path / "in", "parquet", random.Random(kind), 3_000_000)
    query, given = KINDS[kind]
    created = STREAM.format(source=tmp_path / "in", k=given.get("k", "STRING"), check=given.get("check", ""))
    results = []
    for way, parts in (("driver", 0), ("parts", 3)):
        pipeline = rt.Pipeline(spark, home=tmp_path / way, small_ticks="driver").sql(f"{created}{SORTED}{query};")
        got: list[Any] = []
        pipeline.sink("result", lambda batch, got=got: got.append((batch.tick, batch.table().to_pylist())))
        engine = pipeline._engine(tmp_path / f"{way} checkpoint", rt.Limits(files=FILES // 2), ends=True)
        engine.tasks = Tasks(InProcess(parts)) if parts else None
        while (report := engine.tick()) is not None:
            assert (report.cost.spread.tasks > parts) == bool(parts)
        results.append((got, dict(engine.entry["totals"])))
        engine.stop()
    assert results[0] == results[1]
    assert results[0][0]


def test_a_tick_of_few_rows_is_one_task(spark: SparkSession, tmp_path: Path) -> None:
    write_files(tmp_path / "in", "parquet", random.Random(1), 0)
    executor = Counting(few=ROWS * FILES)
    assert run(spark, tmp_path / "tasks", tmp_path / "in", "parquet", executor)["jobs"] == [1, 1]
    assert not executor.ticks


@pytest.mark.parametrize("limit", [64 << 20, 1])
def test_ticks_that_are_divided_get_larger(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """Up to a file's rows for each task; not if a task got too many bytes of the others."""
    monkeypatch.setattr("rowtime.runtime.engine.MOST", ROWS)
    monkeypatch.setattr(tasks_module, "_RECEIVED", limit)
    write_files(tmp_path / "in", "parquet", random.Random(1), 0)
    read = [0]
    pipeline = rt.Pipeline(spark, home=tmp_path / "home", small_ticks="driver")
    pipeline.sql(SQL.format(kind="parquet", source=tmp_path / "in", out=tmp_path / "out"))
    pipeline.sink("result", lambda _batch: None)
    engine = pipeline._engine(tmp_path / "check", rt.Limits(), ends=True)
    engine.tasks = Tasks(InProcess(3))
    while engine.tick() is not None:
        read += engine.entry["sources"]["a"]["offsets"].values()
    engine.stop()
    sizes = [after - before for before, after in pairwise(read) if after > before]
    assert sizes == ([1, 2, 3, 2] if limit > 1 else [1, 2, *[1] * (FILES - 3)])  # one file cannot be divided
