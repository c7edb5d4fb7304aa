"""Of files and lake tables a tick reads only the columns that somebody needs; refused rows have all of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

import rowtime as rt
from rowtime.plan.program import compile_script
from rowtime.plan.required_columns import columns_of_streams
from rowtime.runtime import local_rows
from rowtime.runtime.executors.executor import InProcess
from rowtime.runtime.executors.tasks import Tasks
from rowtime.runtime.sources.files import FilesSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.runtime.sources.contract import Slice

STREAM: Final = """CREATE STREAM a (ev TIMESTAMP, k STRING, v INT CHECK (v < 90), w INT, x STRING, y VARCHAR(2),
z DOUBLE) USING {kind} OPTIONS (path '{source}', rowtime.column 'ev');"""
MINUTE: Final = "CEIL(a.ROWTIME TO MINUTE)"
QUERIES: Final[Mapping[str, set[str] | None]] = {
    f"SELECT STREAM k, SUM(w) AS s FROM a GROUP BY k, {MINUTE}": {"k", "w"},
    f"SELECT STREAM COUNT(*) AS n FROM a GROUP BY {MINUTE}": set(),
    "SELECT STREAM w + 1 AS n FROM a WHERE x <> 'x3'": {"w", "x"},
    "SELECT STREAM k, z FROM (SELECT STREAM k, w, z FROM a) AS a WHERE w > 2": {"k", "w", "z"},
    "SELECT STREAM ev AS ROWTIME, k FROM a ORDER BY ev WITHIN INTERVAL '1' SECOND": {"ev", "k"},
    "SELECT STREAM * FROM a": None,
    "SELECT STREAM a.k, b.w FROM a JOIN a AS b ON a.k = b.k AND a.ROWTIME = b.ROWTIME WHERE a.w = 7": {"k", "w"},
}
JUDGED: Final = {"v", "y"}  # by the check, and by the length of its texts


@pytest.mark.parametrize("sql", QUERIES)
def test_which_columns_are_needed(sql: str) -> None:
    program = compile_script(f"{STREAM.format(kind='parquet', source='/in')} {sql};")
    assert not program.problems, program.problems
    expected = QUERIES[sql]
    assert columns_of_streams(program.operators).get("a") == (None if expected is None else expected | JUDGED)


def test_a_guarded_stream_has_all_columns() -> None:
    guarded = STREAM.replace(";", " EARLY BEYOND INTERVAL '1' SECOND RESYNC AFTER 2 ROWS;")
    program = compile_script(f"{guarded.format(kind='parquet', source='/in')} SELECT STREAM k FROM a;")
    assert not program.problems, program.problems
    assert not columns_of_streams(program.operators)


def write(folder: Path, kind: str) -> None:
    for number in range(3):
        times = [1_704_067_200_000_000 + (number * 40 + n) * 1_000_000 for n in range(40)]
        times[20] -= 3_600_000_000  # goes back
        table = pa.table(
            {
                "ev": pa.array(times, pa.timestamp("us", "UTC")),
                "k": [f"k{n % 3}" for n in range(40)],
                "v": pa.array([95 if n == 7 else n for n in range(40)], pa.int32()),
                "w": pa.array(range(40), pa.int32()),
                "x": [f"x{n % 5}" for n in range(40)],
                "y": ["long" if n == 9 else "y" for n in range(40)],
                "z": [n / 2 for n in range(40)],
            }
        )
        if kind == "delta":
            write_deltalake(folder, table, mode="append")
        else:
            folder.mkdir(exist_ok=True)
            pq.write_table(table, folder / f"{number}.parquet")


@pytest.mark.parametrize("kind", ["parquet", "delta"])
@pytest.mark.parametrize("sql", [sql for sql, columns in QUERIES.items() if columns is not None])
def test_the_results_are_those_of_all_columns(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, sql: str
) -> None:
    write(tmp_path / "in", kind)
    read, rows = list[set[str]](), FilesSource.rows

    def noted(self: FilesSource, part: Slice, wanted: Mapping[str, str]) -> Any:
        read.append({name for name in wanted if not name.startswith("__")})
        return rows(self, part, wanted)

    monkeypatch.setattr(FilesSource, "rows", noted)
    results = []
    for way, parts in (("all", 0), ("driver", 0), ("one task", 1), ("three parts", 3)):
        pipeline = rt.Pipeline(spark, home=tmp_path / way, small_ticks="driver")
        pipeline.sql(STREAM.format(kind=kind, source=tmp_path / "in") + sql + ";")
        got: list[Any] = []
        pipeline.sink("result", lambda batch, got=got: got.append(batch.table().to_pylist()))
        engine = pipeline._engine(tmp_path / f"{way} checkpoint", rt.Limits(), ends=True)
        engine.tasks = Tasks(InProcess(parts)) if parts else None
        if way == "all":
            engine.tap = lambda _node, _delta: None
        read.clear()
        while engine.tick() is not None:
            pass
        refused = [
            pq.read_table(file).to_pylist() for file in (tmp_path / f"{way} checkpoint").rglob("rejected/**/*.parquet")
        ]
        results.append(
            (got, sorted((row for of in refused for row in of), key=lambda row: str(row["ev"])), engine.entry["totals"])
        )
        engine.stop()
        if way != "all":
            assert QUERIES[sql] | JUDGED in read  # type: ignore[operator]
    assert results[0] == results[1] == results[2] == results[3]
    refused = results[0][1]
    assert len(refused) == 9
    assert {row["x"] for row in refused} == {"x0", "x2", "x4"}
    assert all(row["z"] == row["w"] / 2 for row in refused)


def test_what_spark_reads_is_read_once(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has all columns, so refused rows need no other look."""
    write(tmp_path / "in", "parquet")
    read, scanned = list[int](), local_rows._of_scan

    def noted(*given: Any) -> Any:
        read.append(1)
        return scanned(*given)

    monkeypatch.setattr(local_rows, "_of_scan", noted)
    pipeline = rt.Pipeline(spark, home=tmp_path / "home", small_ticks="driver")
    options = STREAM.replace("path '{source}'", "path '{source}', datetimeRebaseMode 'CORRECTED'")
    pipeline.sql(options.format(kind="parquet", source=tmp_path / "in") + "SELECT STREAM k, w FROM a;")
    pipeline.sink("result", lambda batch: batch.table())
    engine = pipeline._engine(tmp_path / "check", rt.Limits(), ends=True)
    engine.tasks = None
    assert engine.tick() is not None
    engine.stop()
    assert engine.entry["totals"]["a"]["MALFORMED"] == 6
    assert len(read) == 1
