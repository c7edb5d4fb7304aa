"""While a pipeline runs, crashes and restarts: what readers of its output see, and which process may continue."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.client.stream_log import scan
from tests.deaths import Died, dying

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.runtime.engine import Engine

pytestmark = pytest.mark.sampled(8)

POINTS = ("before state", "after state", "before journal", "after journal", "after output")
LONG = bool(os.environ.get("ROWTIME_LONG"))
SQL = """
CREATE STREAM s (n INT) USING parquet OPTIONS (path '{folder}/in', rowtime.column 'at');
CREATE STREAM minutes (m TIMESTAMP, c BIGINT) USING parquet OPTIONS (path '{folder}/minutes');
CREATE STREAM copies (n INT) USING parquet OPTIONS (path '{folder}/copies');
CREATE PUMP counts AS INSERT INTO minutes
  SELECT STREAM FLOOR(s.ROWTIME TO MINUTE) AS m, COUNT(*) AS c FROM s GROUP BY FLOOR(s.ROWTIME TO MINUTE);
CREATE PUMP passes AS INSERT INTO copies SELECT STREAM n FROM s;
"""
ONE_FILE = rt.Limits(files=1)
FILES, ROWS = 5, 40
START, APART = 1_704_103_200_000_000, 7_000_000  # 2024-01-01 10:00 UTC, a row every 7 s; µs


def write_input(folder: Path) -> None:
    (folder / "in").mkdir(parents=True)
    for number in range(FILES):
        rows = range(number * ROWS, (number + 1) * ROWS)
        at = pa.array([START + n * APART for n in rows], pa.timestamp("us", "UTC"))
        pq.write_table(pa.table({"n": pa.array(rows, pa.int32()), "at": at}), folder / "in" / f"{number}.parquet")


def made(spark: SparkSession, folder: Path, sql: str = SQL) -> rt.Pipeline:
    return rt.Pipeline(spark, home=folder / "home").sql(sql.format(folder=folder))


def engine_of(spark: SparkSession, folder: Path) -> Engine:
    return made(spark, folder)._engine(folder / "check", ONE_FILE, ends=True)


def visible(folder: Path) -> list[Path]:
    found = folder.glob("*") if folder.is_dir() else ()
    return sorted(path for path in found if not path.name.startswith(("_", ".")))


def numbers(spark: SparkSession, folder: Path) -> list[int]:
    """The rows of ``spark.read`` over the whole directory, without any knowledge of rowtime."""
    if not visible(folder / "copies"):
        return []
    return sorted(row["n"] for row in spark.read.parquet(str(folder / "copies")).collect())


def minutes(folder: Path) -> list[int]:
    rows = [row for path in visible(folder / "minutes") for row in pq.read_table(path).to_pylist()]
    return [row["c"] for row in sorted(rows, key=lambda row: row["m"])]


def expected_minutes() -> list[int]:
    counts = Counter((START + n * APART) // 60_000_000 for n in range(FILES * ROWS))
    return [count for _, count in sorted(counts.items())]


def tree(folder: Path) -> dict[str, bytes]:
    """Every file with its content, except locks, which name their holder."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


# -- visible output ---------------------------------------------------------------------


def test_at_every_point_a_plain_reader_sees_committed_rows_once(spark: SparkSession, tmp_path: Path) -> None:
    write_input(tmp_path)
    for tick in range(FILES if LONG else 2):
        for point in POINTS:
            engine = engine_of(spark, tmp_path)
            committed = (engine.entry["tick"] + 1) * ROWS
            assert numbers(spark, tmp_path) == list(range(committed)), "a start finishes the last commit"
            if committed == tick * ROWS:
                engine.hook = dying(point)
                with pytest.raises(Died):
                    engine.tick()
                assert numbers(spark, tmp_path) == list(range(committed)), "nothing is out before the commit"
            engine.stop()
    made(spark, tmp_path).run_available(tmp_path / "check", end=True, limits=ONE_FILE)
    assert numbers(spark, tmp_path) == list(range(FILES * ROWS))
    assert minutes(tmp_path) == expected_minutes()
    for name in ("copies", "minutes"):
        staged = [path for path in (tmp_path / name / "_rowtime").rglob("*") if path.suffix in (".parquet", ".csv")]
        assert staged == [], "nothing is left staged; who owns the directory stands beside it"


def test_a_reader_that_polls_sees_only_whole_prefixes(spark: SparkSession, tmp_path: Path) -> None:
    write_input(tmp_path)
    seen: list[list[int]] = []
    failures: list[BaseException] = []
    done = threading.Event()

    def poll() -> None:
        try:
            while not done.wait(0.005):
                seen.append([n for p in visible(tmp_path / "copies") for n in pq.read_table(p)["n"].to_pylist()])
        except BaseException as error:  # noqa: BLE001 - handed to the test, which fails with it
            failures.append(error)

    reader = threading.Thread(target=poll)
    reader.start()
    made(spark, tmp_path).run_available(tmp_path / "check", end=True, limits=ONE_FILE)
    done.set()
    reader.join()
    assert not failures
    for found in seen:
        assert found == list(range(len(found))), "in order, nothing twice, nothing left out"
        assert len(found) % ROWS == 0, "a file is there whole or not at all"
    assert numbers(spark, tmp_path) == list(range(FILES * ROWS))


def test_leftovers_of_a_torn_commit_are_removed_and_ignored(spark: SparkSession, tmp_path: Path) -> None:
    write_input(tmp_path)
    engine = engine_of(spark, tmp_path)
    engine.tick()
    staging = next(made.folder for made in engine.stages.values() if made.folder.is_relative_to(tmp_path / "copies"))
    engine.stop()
    check = tmp_path / "check"
    (check / "journal" / ".000000000001.json.0123456789abcdef").write_bytes(b'{"format":1,"tick":1,"sour')
    torn = [
        check / "state/gone/000000000001-00000-state-x.parquet",
        check / "rejected/s/000000000001-00000-rejected-x.parquet",
        staging / "0000000001-00000-part-x.parquet",
    ]
    for file in torn:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"PAR1 torn")
    query = made(spark, tmp_path).run_available(check, end=True, limits=ONE_FILE)
    assert numbers(spark, tmp_path) == list(range(FILES * ROWS))
    assert query.ledger["s"]["in"] == FILES * ROWS
    assert query.rejected("s") == []
    assert not [file for file in torn if file.exists()]


KILLED = """
import os, signal, sys
from pathlib import Path
import rowtime as rt
from rowtime.runtime.session import new_spark
folder, point, sql = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
pipeline = rt.Pipeline(new_spark(master="local[2]", conf={"spark.ui.enabled": "false"}), home=folder / "home").sql(sql)
engine = pipeline._engine(folder / "check", rt.Limits(files=1), ends=True)
engine.tick()
engine.hook = lambda here: os.kill(os.getpid(), signal.SIGKILL) if here == point else None
engine.tick()
"""


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS if LONG else ["before journal"])
def test_a_killed_driver_is_continued_without_a_trace(spark: SparkSession, tmp_path: Path, point: str) -> None:
    write_input(tmp_path)
    arguments = [sys.executable, "-c", KILLED, str(tmp_path), point, SQL.format(folder=tmp_path)]
    killed = subprocess.run(arguments, check=False, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]
    assert numbers(spark, tmp_path) == list(range(ROWS * (2 if point == "after output" else 1)))
    query = made(spark, tmp_path).run_available(tmp_path / "check", end=True, limits=ONE_FILE)
    assert numbers(spark, tmp_path) == list(range(FILES * ROWS))
    assert minutes(tmp_path) == expected_minutes()
    assert query.ledger["s"] == {"in": FILES * ROWS, "accepted": FILES * ROWS}


# -- which process may continue ---------------------------------------------------------


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("COUNT(*) AS c", "SUM(n) AS c"),
        ("CREATE STREAM s (n INT)", "CREATE OR REPLACE STREAM s (n INT, more STRING)"),
    ],
    ids=["another query", "another stream"],
)
def test_a_checkpoint_of_another_query_is_refused_and_nothing_is_written(
    spark: SparkSession, tmp_path: Path, was: str, now: str
) -> None:
    write_input(tmp_path)
    made(spark, tmp_path).run_available(tmp_path / "check", end=True, limits=rt.Limits())
    before = tree(tmp_path)
    with pytest.raises(rt.Refused) as refused:
        made(spark, tmp_path, SQL.replace(was, now)).run_available(tmp_path / "check", end=True)
    assert refused.value.problems[0].code == "R401"
    assert tree(tmp_path) == before, "neither the checkpoint, nor the output, nor a definition in the home"


@pytest.mark.parametrize("where", ["plan.json", "journal"])
def test_a_checkpoint_of_a_newer_format_is_refused_and_nothing_is_written(
    spark: SparkSession, tmp_path: Path, where: str
) -> None:
    write_input(tmp_path)
    engine = engine_of(spark, tmp_path)
    engine.tick()
    engine.stop()
    check = tmp_path / "check"
    path = check / where if where == "plan.json" else max((check / "journal").glob("*.json"))
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))
    before = tree(tmp_path)
    with pytest.raises(rt.Refused) as refused:
        made(spark, tmp_path).run_available(check, end=True, limits=ONE_FILE)
    assert refused.value.problems[0].code == "R402"
    assert tree(tmp_path) == before


# -- a log as output --------------------------------------------------------------------

LOGS = "CREATE STREAM a (n INT); CREATE STREAM b (n INT); CREATE PUMP p AS INSERT INTO b SELECT STREAM n FROM a"


def logs(spark: SparkSession, folder: Path) -> rt.Pipeline:
    pipeline = rt.Pipeline(spark, home=folder / "home").sql(LOGS)
    for stream in pipeline.compile().defines:
        pipeline.home.define(stream.name, stream.as_json(), replace=True)
    return pipeline


def insert(folder: Path, number: int) -> None:
    with rt.writer("a", home=folder / "home") as writer:
        writer.insert([{"n": number, "rowtime": f"2024-01-01 10:00:0{number}"}])


def test_a_query_that_has_ended_releases_its_writers(spark: SparkSession, tmp_path: Path) -> None:
    queries: list[rt.Query] = []
    for number in (1, 2):
        pipeline = logs(spark, tmp_path)
        insert(tmp_path, number)
        # When the second query starts, the first one and its sink still exist.
        queries.append(pipeline.run_available(tmp_path / "check", end=True))
    with rt.writer("b", home=tmp_path / "home", writer="pump.p") as writer:
        assert writer.position == 4, "two rows, and a bound after each"


@pytest.mark.parametrize("point", POINTS)
def test_a_log_gets_rows_and_bounds_once_at_their_positions(spark: SparkSession, tmp_path: Path, point: str) -> None:
    pipeline = logs(spark, tmp_path)
    for number in (1, 2):
        insert(tmp_path, number)
        engine = pipeline._engine(tmp_path / "check", rt.Limits(), ends=False)
        engine.hook = dying(point)
        with pytest.raises(Died):
            engine.tick()
        engine.stop()
        pipeline.run_available(tmp_path / "check", end=True)
    found = scan(tmp_path / "home" / "logs" / "b", {})["pump.p"]
    items = [("Rows", 0), ("Bound", 1), ("Rows", 2), ("Bound", 3)]
    assert [(type(entry).__name__, entry.first) for entry in found] == items
    staged = [path for path in (tmp_path / "check" / "handover").rglob("*") if path.is_file()]
    assert staged == [], "what a death left in the checkpoint is swept"
