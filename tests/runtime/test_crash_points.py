"""A driver that dies at any named point of any tick leaves no trace in the output."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.client.log_items import Rows
from rowtime.client.stream_log import scan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(8)

POINTS = ("before state", "after state", "before journal", "after journal", "after output")
SQL = """
CREATE STREAM a (k STRING, ev TIMESTAMP); CREATE STREAM b (k STRING, ev TIMESTAMP);
CREATE VIEW sa AS SELECT STREAM ev AS ROWTIME, k FROM a ORDER BY ev WITHIN INTERVAL '20' SECOND;
CREATE VIEW sb AS SELECT STREAM ev AS ROWTIME, k FROM b ORDER BY ev WITHIN INTERVAL '20' SECOND;
CREATE VIEW both AS SELECT STREAM k FROM sa UNION ALL SELECT STREAM k FROM sb;
CREATE STREAM minutes (m TIMESTAMP NOT NULL, k CHAR(3), c TINYINT CHECK (10 / (c - 1) > 0))
  USING parquet OPTIONS (path '{out}');
CREATE STREAM merged (k VARCHAR(2) CHECK (k <> 'b1'));
CREATE PUMP counts AS INSERT INTO minutes SELECT STREAM FLOOR(x.ROWTIME TO MINUTE) AS m, k, COUNT(*) AS c
  FROM both AS x GROUP BY FLOOR(x.ROWTIME TO MINUTE), k;
CREATE PUMP passes AS INSERT INTO merged SELECT STREAM k FROM both;
"""
TICKS = 5


class Died(BaseException):
    """Stands for the death of the driver."""


def pipeline(spark: SparkSession, folder: Path) -> rt.Pipeline:
    return rt.Pipeline(spark, home=folder / "home").sql(SQL.format(out=folder / "out"))


def feed(folder: Path, number: int) -> None:
    """The items of one tick: disorder, ties, late rows, a null time."""
    for stream, shift in (("a", 0), ("b", 7)):
        rows = [(number * 40 + second + shift) % 240 for second in (0, 15, 5, 15)]
        with rt.writer(stream, home=folder / "home") as log:
            items = [
                {"k": f"{stream}{second % 2}", "ev": f"2024-01-01 10:{second // 60:02}:{second % 60:02}"}
                for second in rows
            ]
            late = {"k": "late", "ev": "2024-01-01 09:00:00" if number % 2 else None}
            log.insert([*items, late])
            if number == TICKS - 1:
                log.end()


def define(made: rt.Pipeline) -> None:
    for stream in made.compile().defines:
        made.home.define(stream.name, stream.as_json(), replace=True)


def outcome(folder: Path, query_engine: Any) -> dict[str, Any]:
    """All output of a pipeline: the content of files, the log with its positions, the ledger."""
    visible = [p for p in (folder / "out").glob("*") if not p.name.startswith(("_", "."))]
    rows = [tuple(row.values()) for path in visible for row in pq.read_table(path).to_pylist()]
    entries = scan(folder / "home" / "logs" / "merged", {})
    logged = [
        (row["__t"], row["k"])
        for entry in next(iter(entries.values()), [])
        if isinstance(entry, Rows)
        for row in pq.read_table(folder / "home" / "logs" / "merged" / entry.path).to_pylist()
    ]
    rejected = sorted(
        (gate, row["writer"], row["position"], row["reason"])
        for gate in ("sa", "sb", "counts", "passes")
        for path in query_engine.checkpoint.rejected(gate, query_engine.entry["tick"])
        for row in pq.read_table(path).to_pylist()
    )
    return {"rows": sorted(rows), "log": logged, "ledger": query_engine.entry["totals"], "rejected": rejected}


def play(spark: SparkSession, folder: Path, deaths: Iterator[tuple[int, str]]) -> dict[str, Any]:
    """All ticks, with one crash at each of ``deaths``; a new engine continues after each."""
    made = pipeline(spark, folder)
    define(made)
    wanted = dict(deaths)
    engine = None
    for number in range(TICKS):
        feed(folder, number)
        point = wanted.get(number)

        def hook(here: str, point: str | None = point) -> None:
            if here == point:
                raise Died

        engine = made._engine(folder / "check", rt.Limits(), ends=False)
        engine.hook = hook
        try:
            engine.tick()
        except Died:
            engine.stop()
            close_writers(engine)
            engine = made._engine(folder / "check", rt.Limits(), ends=False)
            engine.tick()
        engine.stop()
        close_writers(engine)
    assert engine is not None
    return outcome(folder, engine)


def close_writers(engine: Any) -> None:
    """Release the locks as the death of the process does."""
    for stage in engine.stages.values():
        writer = getattr(stage.sink, "_writer", None)
        if writer is not None:
            writer.close()


@pytest.fixture(scope="module")
def undisturbed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    found = play(spark, tmp_path_factory.mktemp("undisturbed"), iter(()))
    assert len(found["rows"]) > 5
    for pump, target in (("counts", "rows"), ("passes", "log")):
        counts = found["ledger"][pump]
        assert len(found[target]) == counts["accepted"]
        assert counts["MALFORMED"] == counts["in"] - counts["accepted"] > 0
    assert {len(row[2]) for row in found["rows"]} == {3}, "CHAR(3)"
    assert {reason for *_, reason in found["rejected"]} == {"LATE", "NULL_ROWTIME", "MALFORMED"}
    return found


@pytest.mark.parametrize("point", POINTS)
def test_a_crash_at_a_point_of_every_tick_changes_nothing(
    spark: SparkSession, tmp_path: Path, undisturbed: dict[str, Any], point: str
) -> None:
    assert play(spark, tmp_path, iter((tick, point) for tick in range(TICKS))) == undisturbed


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import test_crash_points as case
from rowtime.runtime.session import new_spark
import rowtime as rt
folder, point = Path(sys.argv[2]), sys.argv[3]
made = case.pipeline(new_spark(master="local[2]", conf={"spark.ui.enabled": "false"}), folder)
engine = made._engine(folder / "check", rt.Limits(), ends=False)
passed = []
def hook(here):
    passed.append(here)
    if passed.count(point) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
engine.hook = hook
engine.tick()
case.feed(folder, 1)
engine.tick()
"""


@pytest.mark.slow
@pytest.mark.parametrize("point", ["after state", "after journal"])
def test_a_killed_process_is_continued_by_the_next(
    spark: SparkSession, tmp_path: Path, undisturbed: dict[str, Any], point: str
) -> None:
    made = pipeline(spark, tmp_path)
    define(made)
    feed(tmp_path, 0)
    arguments = [sys.executable, "-c", KILLED, str(Path(__file__).parent), str(tmp_path), point]
    killed = subprocess.run(arguments, check=False, capture_output=True, text=True, env={**os.environ})
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]
    engine = None
    for number in range(2, TICKS):
        feed(tmp_path, number)
        engine = made._engine(tmp_path / "check", rt.Limits(), ends=False)
        engine.tick()
        engine.stop()
        close_writers(engine)
    assert outcome(tmp_path, engine) == undisturbed


def test_a_second_driver_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    made = pipeline(spark, tmp_path)
    engine = made._engine(tmp_path / "check", rt.Limits(), ends=False)
    with pytest.raises(rt.Refused) as refused:
        made._engine(tmp_path / "check", rt.Limits(), ends=False)
    assert refused.value.problems[0].code == "R404"
    engine.stop()


class Full(OSError):
    """Stands for a disk that is full for a moment."""


def test_a_sink_that_fails_after_the_commit_gets_its_rows_with_the_next_tick(
    spark: SparkSession, tmp_path: Path
) -> None:
    got: list[tuple[int, str]] = []
    failing = [True]

    def take(batch: rt.Batch) -> None:
        if batch.count and failing:
            failing.pop()
            raise Full
        got.extend(
            (batch.first + n, row["k"]) for n, row in enumerate(batch.table().to_pylist() if batch.count else ())
        )

    made = rt.Pipeline(spark, home=tmp_path / "home").sql("CREATE STREAM a (k STRING); SELECT STREAM k FROM a")
    made.sink("result", take)
    define(made)
    engine = made._engine(tmp_path / "check", rt.Limits(), ends=False)
    with rt.writer("a", home=tmp_path / "home") as log:
        log.insert([{"rowtime": "2024-01-01 10:00:00", "k": "first"}])
        with pytest.raises(rt.Failure, match="R509"):
            engine.tick()
        log.insert([{"rowtime": "2024-01-01 10:00:01", "k": "second"}])
        engine.tick()
    assert got == [(0, "first"), (1, "second")]
    engine.stop()


def test_a_driver_that_was_away_for_long_cannot_commit(tmp_path: Path) -> None:
    from rowtime.state.journal import KEPT_ENTRIES, Journal

    journal = Journal(tmp_path)
    for tick in range(2 * KEPT_ENTRIES + 1):
        journal.commit(tick, {})
    for tick in (0, KEPT_ENTRIES, 2 * KEPT_ENTRIES):
        with pytest.raises(rt.Refused) as refused:
            journal.commit(tick, {})
        assert refused.value.problems[0].code == "R403"
    assert (journal.last() or {})["tick"] == 2 * KEPT_ENTRIES
    assert min(entry["tick"] for entry in journal.entries()) > 0
