"""A replay of a checkpoint's recorded input gives the same rows, in as few ticks as possible or in the same ticks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.audit.replay import Replay, recorded, replay
from rowtime.state.checkpoint import Checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SORTED = """
CREATE STREAM s (k STRING, ev TIMESTAMP);
CREATE VIEW sorted AS SELECT STREAM ev AS ROWTIME, k FROM s ORDER BY ev WITHIN INTERVAL '10' SECOND;
SELECT STREAM k FROM sorted
"""
TICKS = 4


def at(second: int) -> str:
    return f"2024-01-01 10:{second // 60:02}:{second % 60:02}"


class Run:
    """A pipeline whose rows go to a function; each call of ``tick`` runs one tick."""

    def __init__(self, spark: SparkSession, folder: Path, sql: str) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.made = rt.Pipeline(spark, home=folder / "home").sql(sql).sink("result", self._take)
        self.home, self.checkpoint = folder / "home", Checkpoint(folder / "check")
        for stream in self.made.compile().defines:
            self.made.home.define(stream.name, stream.as_json())

    def _take(self, batch: rt.Batch) -> None:
        if batch.count:
            self.rows.extend(tuple(row.values()) for row in batch.table().to_pylist())

    def tick(self) -> None:
        engine = self.made._engine(self.checkpoint.folder, rt.Limits(), ends=False)
        engine.tick()
        engine.stop()

    def again(self, folder: Path, *, by_tick: bool = False) -> tuple[Replay, int]:
        parts = recorded(self.checkpoint, by_tick=by_tick)
        engine = replay(self.made, self.checkpoint, folder)
        done = list(engine.run(parts))
        engine.stop()
        return engine, len(done)


def rows_of(engine: Replay) -> list[tuple[Any, ...]]:
    (stage,) = engine.stages.values()
    return [tuple(row.values()) for file in stage.sink.files for row in pq.read_table(file).to_pylist()]


def insert(run: Run, writer: str, seconds: list[int]) -> None:
    with rt.writer("s", home=run.home, writer=writer) as log:
        log.insert([{"k": f"{writer}{second}", "ev": at(second)} for second in seconds])


@pytest.mark.slow
@pytest.mark.parametrize("by_tick", [False, True])
def test_the_same_rows_come_out_in_one_tick_or_in_all_of_them(
    spark: SparkSession, tmp_path: Path, by_tick: bool
) -> None:
    run = Run(spark, tmp_path, SORTED)
    for number in range(TICKS):
        insert(run, "a", [number * 20 + second for second in (5, 0, 9)] + [0])
        run.tick()
    again, ticks = run.again(tmp_path / "again", by_tick=by_tick)
    assert ticks == (TICKS if by_tick else 1)
    assert rows_of(again) == run.rows
    assert again.entry["totals"] == run.checkpoint.journal.last()["totals"]
    assert again.entry["clocks"] == run.checkpoint.journal.last()["clocks"]


def test_a_writer_that_joins_cuts_the_input(spark: SparkSession, tmp_path: Path) -> None:
    sql = "CREATE STREAM s (k STRING, ev TIMESTAMP); SELECT STREAM k FROM s"
    run = Run(spark, tmp_path, sql)

    def rows(writer: str, seconds: list[int]) -> None:
        with rt.writer("s", home=run.home, writer=writer) as log:
            log.insert([{"rowtime": at(second), "k": writer} for second in seconds])
        run.tick()

    rows("b", [10])
    rows("b", [20])
    rows("a", [5, 20, 30])
    rows("b", [40])
    rows("a", [50])
    assert [row[1] for row in run.rows][:3] == ["b", "b", "a"]
    again, ticks = run.again(tmp_path / "again")
    assert ticks == 2
    assert rows_of(again) == run.rows
    assert again.entry["totals"] == {"s": {"in": 7, "accepted": 6, "LATE": 1}}


def test_a_manual_bound_cuts_the_input(spark: SparkSession, tmp_path: Path) -> None:
    run = Run(spark, tmp_path, SORTED.replace("'10' SECOND", "'1' HOUR"))
    for number in range(3):
        insert(run, "a", [number * 10, number * 10 + 5])
        run.tick()
    engine = run.made._engine(run.checkpoint.folder, rt.Limits(), ends=False)
    engine.stop()
    rt.Query(engine, 0.0).set_watermark("sorted", at(21))
    insert(run, "a", [20, 30])
    run.tick()
    insert(run, "a", [19, 25])
    run.tick()
    again, ticks = run.again(tmp_path / "again")
    assert ticks == 2
    assert [row[1] for row in run.rows] == ["a0", "a5", "a10", "a15", "a20"]
    assert rows_of(again) == run.rows
    assert again.entry["totals"] == run.checkpoint.journal.last()["totals"]
    assert again.entry["totals"]["sorted"]["LATE"] == 2, "those behind the bound"


def test_without_a_tick_there_is_nothing_to_replay(tmp_path: Path) -> None:
    with pytest.raises(rt.Refused) as refused:
        recorded(Checkpoint(tmp_path))
    assert refused.value.problems[0].code == "R405"
