"""Sinks whose rows need no merge are written by all tasks of a tick, in the order of these."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import rowtime as rt
from rowtime.plan.levels import Levels
from rowtime.plan.program import compile_script
from rowtime.runtime.executors.executor import InProcess
from rowtime.runtime.executors.level_ticks import LastTick
from rowtime.runtime.executors.tasks import Tasks
from rowtime.runtime.sinks.staging import Stage
from rowtime.runtime.sources.files import FilesSource
from tests.runtime.test_ticks_in_levels import Counting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.runtime.engine import Engine
    from rowtime.runtime.sources.contract import Division, Slice

BEGIN: Final = 1_704_067_200_000_000
FILES: Final = 9
ROWS: Final = 50  # of a file
STREAM: Final = (
    "CREATE STREAM a (at TIMESTAMP, k STRING, v INT) USING parquet OPTIONS (path '{source}', rowtime.column 'at');"
)
OUTPUTS: Final[Mapping[str, str]] = {
    "ordered": "parquet OPTIONS (path '{out}/ordered')",
    "unordered": "parquet OPTIONS (path '{out}/unordered', ordered 'false')",
    "small": "parquet OPTIONS (path '{out}/small', maxRecordsPerFile '1000')",
    "folders": "parquet PARTITIONED BY (k) OPTIONS (path '{out}/folders')",
    "json": "json OPTIONS (path '{out}/json')",
    "csv": "csv OPTIONS (path '{out}/csv', header 'true')",
    "delta": "delta OPTIONS (path '{out}/delta')",
    "checked": "parquet OPTIONS (path '{out}/checked')",
}
COLUMNS: Final = {"checked": "v TINYINT CHECK (v <> 17), at TIMESTAMP, k VARCHAR(2)"}
PUMPS: Final = {
    name: f"CREATE STREAM {name} ({COLUMNS.get(name, 'v INT, at TIMESTAMP, k STRING')}) USING {text};"
    f"CREATE PUMP p_{name} AS INSERT INTO {name} SELECT STREAM v, at, k FROM a WHERE v <> 13;"
    for name, text in OUTPUTS.items()
}
SQL: Final = STREAM + "".join(PUMPS.values())
SQL_AND_MORE: Final = (
    SQL + "CREATE STREAM logged (v INT, k STRING);"
    "CREATE PUMP p_logged AS INSERT INTO logged SELECT STREAM v, k FROM a WHERE v <> 13;"
    "CREATE VIEW minutes AS SELECT STREAM COUNT(*) AS c FROM logged GROUP BY FLOOR(logged.ROWTIME TO MINUTE);"
    "SELECT STREAM k, v, a.ROWTIME AS w FROM a WHERE v % 2 = 0;"
)


def write(folder: Path) -> None:
    """Write files in the order of time; in some the rowtime goes back, behind those of the file before."""
    folder.mkdir(parents=True)
    for number in range(FILES):
        times = [BEGIN + (number * ROWS + n) * 1_000_000 for n in range(ROWS)]
        if number % 3 == 1:
            times[7] -= 20_000_000
            times[0] -= 2_000_000
        columns = {"k": [f"k{n % 3}" for n in range(ROWS)], "v": pa.array(range(ROWS), pa.int32())}
        path = folder / f"{number}.parquet"
        pq.write_table(pa.table({"at": pa.array(times, pa.timestamp("us", "UTC")), **columns}), path)
        os.utime(path, (1_700_000_000 + number,) * 2)


@dataclass
class Outcome:
    """What a run has given, and the files that its tasks have written for each sink."""

    rows: list[Any] = field(default_factory=list)
    outputs: dict[str, list[Any]] = field(default_factory=dict)
    scalars: dict[str, Any] = field(default_factory=dict)
    files: dict[str, list[int]] = field(default_factory=dict)
    totals: dict[str, Any] = field(default_factory=dict)
    shuffled: list[int] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    given: list[Any] = field(default_factory=list)
    tasks: list[int] = field(default_factory=list)
    refused: list[Any] = field(default_factory=list)


def read(out: Path) -> dict[str, list[Any]]:
    """The rows of each table, in the order of its files."""

    def lines(folder: str) -> list[str]:
        return [line for file in sorted((out / folder).glob("part-*")) for line in file.read_text().splitlines()]

    def tables(folder: str) -> list[Any]:
        return [row for file in sorted((out / folder).glob("part-*")) for row in pq.read_table(file).to_pylist()]

    return {
        **{name: tables(name) for name in ("ordered", "small", "checked")},
        "unordered": sorted(tables("unordered"), key=repr),
        **{f"k={n}": tables(f"folders/k=k{n}") for n in range(3)},
        "json": lines("json"),
        "csv": [line for line in lines("csv") if line[0] != "r"],  # files have a header each
        "delta": sorted(DeltaTable(out / "delta").to_pyarrow_table().to_pylist(), key=repr),
    }


def run(
    spark: SparkSession,
    place: Path,
    source: Path,
    executor: Any = None,
    sql: str = SQL_AND_MORE,
    each: Callable[[Engine], object] = lambda _engine: None,
) -> Outcome:
    """Run a script; ``each`` is called after every tick."""
    pipeline = rt.Pipeline(spark, home=place / "home", small_ticks="driver")
    pipeline.sql(sql.format(source=source, out=place / "out"))
    done = Outcome()
    pipeline.sink("result", lambda batch: done.rows.append((batch.tick, batch.first, batch.table().to_pylist())))
    engine = pipeline._engine(place / "check", rt.Limits(files=FILES // 3), ends=True)
    engine.tasks = None if executor is None else Tasks(executor)
    while (report := engine.tick()) is not None:
        each(engine)
        done.shuffled.append(report.cost.spread.shuffled)
        done.tasks.append(report.cost.spread.tasks)
        done.given.append(dict(report.cost.given))
        for name, of in engine.entry["outputs"].items():
            done.files.setdefault(name, []).append(len(of["files"]))
    refused = (place / "check").rglob("rejected/**/*.parquet")
    rows = [{"at": row.get("at"), **row} for file in refused for row in pq.read_table(file).to_pylist()]
    done.refused = sorted(rows, key=repr)
    own = ("link", "proof")
    scalars = engine.entry["control"].items()
    done.scalars = {name: {key: of[key] for key in of if key not in own} for name, of in scalars}
    done.totals = dict(engine.entry["totals"])
    engine.stop()
    done.outputs = read(place / "out") if sql == SQL_AND_MORE else {}
    done.left = [path.name for path in (place / "out").rglob("_rowtime/**/part-*")]
    return done


def same(one: Outcome, other: Outcome) -> None:
    for name in ("totals", "rows", "outputs", "refused", "scalars"):
        assert getattr(one, name) == getattr(other, name), name


def test_all_tasks_write_for_sinks_of_all_kinds(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in")
    driver, tasks = (run(spark, tmp_path / str(of), tmp_path / "in", of) for of in (None, InProcess(3)))
    same(driver, tasks)
    assert len(driver.outputs["ordered"]) == FILES * (ROWS - 1) - driver.totals["a"]["OUT_OF_ORDER"]
    assert driver.totals["a"]["OUT_OF_ORDER"] == 6
    assert driver.totals["p_checked"]["MALFORMED"] == FILES
    assert len(driver.refused) == FILES + 6
    assert tasks.files["p_ordered.sink"] == tasks.files["p_json.sink"] == [3, 3, 3]
    assert driver.files["p_ordered.sink"] == [1, 1, 1]
    assert not tasks.left


def test_a_query_without_state_passes_no_rows_on(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in")
    sql = STREAM + "SELECT STREAM k, v, REPEAT(k, 1000 + v) AS t FROM a;"
    executor = Counting(few=0, few_written=1)
    driver, tasks = (run(spark, tmp_path / str(of), tmp_path / "in", of, sql) for of in (None, executor))
    assert driver.rows == tasks.rows
    assert {*executor.ticks} == {3}
    assert max(tasks.shuffled) < 30_000
    assert len(tasks.rows) == 3


def test_few_rows_are_written_by_the_last_task(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in")
    sql = STREAM + "SELECT STREAM k, v FROM a WHERE v = 3;"  # 150 rows are read, 3 are written
    limits = (
        {"few_written": ROWS, "few_files": 0},
        {"few_files": 2},
        {"few_files": 3},
    )  # 150 rows are read, 3 are written
    executors = [Counting(few=0, **of) for of in limits]
    made = [run(spark, tmp_path / str(n), tmp_path / "in", of, sql) for n, of in enumerate(executors)]
    assert made[0].rows == made[1].rows == made[2].rows
    assert [of.files["query.result"] for of in made] == [[3, 1, 1], [1, 1, 1], [3, 3, 3]]
    assert [{*executor.ticks} for executor in executors] == [{3}] * 3


@dataclass
class Noted:
    """The reasons for which one task computes a tick."""

    why: list[str] = field(default_factory=list)

    def __call__(self, message: str, *given: Any, **_extra: Any) -> None:
        if message.startswith("one task"):
            self.why.append(message % given)


def test_tasks_that_are_out_of_order_are_noticed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "in")
    driver, noted, divided = run(spark, tmp_path / "driver", tmp_path / "in"), Noted(), FilesSource.divided

    def swapped(self: FilesSource, part: Slice, many: int) -> Division | None:
        division = divided(self, part, many)
        return division and type(division)(division.fields, [division.parts[1], division.parts[0], *division.parts[2:]])

    monkeypatch.setattr(FilesSource, "divided", swapped)
    monkeypatch.setattr("rowtime.runtime.executors.tasks.LOG.info", noted)
    # Rows of the second file would be early for the first one: marks show it, or else places.
    same(driver, run(spark, tmp_path / "tasks", tmp_path / "in", InProcess(3)))
    assert noted.why


@pytest.mark.parametrize("fault", ["a lost file", "a file twice"])
def test_planted_faults_are_seen(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    write(tmp_path / "in")
    driver, plain = run(spark, tmp_path / "driver", tmp_path / "in"), Stage.__call__

    def planted(self: Stage, tick: Any, node: Any, delta: Any, before: Any = ()) -> Any:
        before = [*before[:1], *before[2:]] if fault == "a lost file" else [*before, *before[-1:]]
        return plain(self, tick, node, delta, before)

    monkeypatch.setattr(Stage, "__call__", planted)
    with pytest.raises((AssertionError, FileNotFoundError, rt.RowtimeError)):
        same(driver, run(spark, tmp_path / "tasks", tmp_path / "in", InProcess(3)))


def test_files_of_an_abandoned_attempt_are_removed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of a file are late because of those in the file before, which another task has."""
    write(tmp_path / "in")
    again, starts = list[int](), LastTick.starts

    def noted(self: LastTick) -> Any:
        again.append(self.number)
        return starts(self)

    monkeypatch.setattr(LastTick, "starts", noted)
    staged: list[set[str]] = []

    def each(engine: Engine) -> None:
        entry = {path for of in engine.entry["outputs"].values() for path, _ in of["files"]}
        state = {path.name for path in (tmp_path / "tasks" / "check" / "output").rglob("part-*")}
        staged.append(state - entry)

    sql = f"{STREAM}{PUMPS['ordered']}{PUMPS['checked']} SELECT STREAM k FROM a;"
    done = run(spark, tmp_path / "tasks", tmp_path / "in", InProcess(3), sql, each)
    assert again == [0, 1, 2]
    assert not done.left
    assert not any(staged)


TABLE: Final = "CREATE TABLE t (k STRING, n INT) USING parquet OPTIONS (path '{table}');"
OF_TABLES: Final = (
    "SELECT STREAM a.v, t.n FROM a JOIN t ON a.k = t.k",
    "SELECT STREAM a.v, t.n FROM a LEFT JOIN t ON a.k = t.k AND t.n > 1 WHERE a.v <> 3",
    "SELECT STREAM v FROM a WHERE k IN (SELECT k FROM t WHERE n > 1)",
    "SELECT STREAM v FROM a WHERE k NOT IN (SELECT k FROM t WHERE n > 1)",
    "SELECT STREAM v, (SELECT MAX(n) FROM t) AS m FROM a",
    "SELECT STREAM t.n, COUNT(*) AS c FROM a JOIN t ON a.k = t.k GROUP BY FLOOR(a.ROWTIME TO MINUTE), t.n",
    (
        "SELECT STREAM b.v, t.n FROM (SELECT STREAM v, k, COUNT(*) OVER (ROWS 2 PRECEDING) AS c FROM a) AS b "
        "JOIN t ON b.k = t.k"
    ),
    (
        "SELECT STREAM b.v, t.n FROM (SELECT STREAM a.v, a.k, COUNT(*) OVER (ROWS 2 PRECEDING) AS c FROM a JOIN t "
        "ON a.k = t.k) AS b JOIN t ON b.k = t.k"
    ),
)


@pytest.mark.parametrize("sql", OF_TABLES)
def test_each_task_joins_with_all_rows_of_a_table(spark: SparkSession, tmp_path: Path, sql: str) -> None:
    write(tmp_path / "in")
    pq.write_table(pa.table({"k": ["k0", "k1", "k1"], "n": pa.array([1, 2, 3], pa.int32())}), tmp_path / "t.parquet")
    script = STREAM + TABLE.replace("{table}", str(tmp_path / "t.parquet")) + f"{sql};"
    driver, tasks = (run(spark, tmp_path / str(of), tmp_path / "in", of, script) for of in (None, InProcess(3)))
    same(driver, tasks)
    assert driver.given == tasks.given
    assert driver.rows
    assert min(tasks.tasks) >= 3


def test_a_table_that_is_read_again_has_one_task() -> None:
    table = TABLE.replace(";", " REFRESH EVERY INTERVAL '1' MINUTE;").format(table="/t")
    program = compile_script(f"{STREAM.format(source='/in')}{table}{OF_TABLES[0]};")
    assert not program.problems, program.problems
    assert [node.name for node in Levels.of(program.operators).first] == ["a"]


QUERIES: Final[Mapping[str, bool]] = {
    "SELECT STREAM k FROM a": True,
    "SELECT STREAM k FROM a WHERE v > 2": True,
    "SELECT STREAM a.ROWTIME, COUNT(*) OVER (ORDER BY ROWTIME ROWS 3 PRECEDING) AS c FROM a": False,
    "SELECT STREAM COUNT(*) AS c FROM a GROUP BY FLOOR(a.ROWTIME TO MINUTE)": False,
    "SELECT STREAM k FROM a UNION ALL SELECT STREAM k FROM a": False,
    "SELECT STREAM at AS ROWTIME, k FROM a ORDER BY at WITHIN INTERVAL '1' SECOND": False,
}


@pytest.mark.parametrize("sql", QUERIES)
def test_which_sinks_any_task_writes(sql: str) -> None:
    program = compile_script(f"{STREAM.format(source='/in')} {sql};")
    assert not program.problems, program.problems
    first = [node.name for node in Levels.of(program.operators).first]
    assert ("query.result" in first) == QUERIES[sql]


@pytest.mark.parametrize("name", OUTPUTS)
def test_folders_are_written_by_one_task(name: str) -> None:
    program = compile_script(SQL.format(source="/in", out="/out"))
    assert not program.problems, program.problems
    first = [node.name for node in Levels.of(program.operators).first]
    assert (f"p_{name}.sink" in first) == (name != "folders")
