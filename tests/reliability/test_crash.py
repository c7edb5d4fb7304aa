"""The crash harness finds differences from the undisturbed run."""

from __future__ import annotations

import errno
import os
import random
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyiceberg.catalog import load_catalog

from reliability.crash.campaign import _counts
from reliability.crash.cases import KINDS, Case, once, seen
from reliability.crash.first_starts import first_starts
from reliability.crash.inside import Sample, Tally, faults, stops, undisturbed
from reliability.crash.lakes import Delta, others_write, rows_of_tables, tables_below, torn_versions
from reliability.crash.runs import Sequence, sequences
from reliability.crash.writes import failing, watched
from rowtime.runtime.handing_over import HandingOver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(4)


def test_the_matrix_of_versions_understands_the_last_line() -> None:
    expected = re.search(r'case \$crash in \*"(.+?)"\*\)', Path("scripts/matrix.sh").read_text())
    assert expected is not None
    assert expected[1] in f"{_counts(Tally())}; 9 s"


def test_a_difference_is_a_loss() -> None:
    tally = Tally()
    tally.check({"log": ["a"], "adds up": True}, {"log": ["a"], "adds up": True}, "here")
    assert not tally.losses
    tally.check({"log": ["a"]}, {"log": ["a", "b"]}, "there")
    tally.check({"totals": {}, "adds up": False}, {"totals": {}, "adds up": False}, "everywhere")
    assert [loss.split(":")[0] for loss in tally.losses] == ["there", "everywhere"]


def test_a_sample_is_evenly_spread_and_begins_where_chance_says() -> None:
    chosen = []
    for seed in range(20):
        sample = Sample(random.Random(seed), 5)
        chosen.append([number for number in range(30) if sample.has_next()])
    assert all(found == list(range(found[0], 30, 5)) for found in chosen)
    assert {found[0] for found in chosen} == set(range(5))


def test_only_writes_below_the_folder_fail_also_of_other_threads(tmp_path: Path) -> None:
    ours, theirs, synced, failed = tmp_path / "1", tmp_path / "10", list[str](), list[str]()
    for folder in (ours, theirs):
        folder.mkdir()

    def sync(folder: Path) -> None:
        with (folder / "file").open("rb") as file:
            try:
                os.fsync(file.fileno())
            except OSError as error:
                failed.append(error.filename)
            else:
                synced.append(folder.name)

    def sync_both() -> None:
        sync(theirs)
        sync(ours)

    for folder in (ours, theirs):
        (folder / "file").touch()
    with watched(ours, failing(0, errno.EIO)):
        thread = threading.Thread(target=sync_both)
        thread.start()
        thread.join()
        (theirs / "another").touch()
        sync_both()
    assert synced == ["10", "10", "1"]
    assert failed == [str(ours / "file")]


def test_a_process_that_hangs_ends_and_shows_where() -> None:
    code = """if True:
        import time
        from reliability.crash.inside import patience
        with patience(60):
            pass
        with patience(0.2):
            time.sleep(60)
    """
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=False)
    assert ended.returncode == 1
    assert 'File "<string>", line 7 in <module>' in ended.stderr


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([(0, "a"), (1, "b"), (0, "a")], ["a", "b"]),
        ([(0, "a"), (2, "c")], ["numbers are missing: [0, 2]"]),
        ([(0, "a"), (0, "b")], ["row 0 is a and b"]),
    ],
)
def test_rows_that_come_again_are_taken_once_and_lost_ones_are_reported(
    rows: list[tuple[int, str]], found: list[str]
) -> None:
    assert once(rows) == found


@pytest.mark.parametrize("header", ["rowtime,k\n", ""])
def test_no_row_counts_as_a_header_however_many_files_there_are(tmp_path: Path, header: str) -> None:
    for number, line in enumerate(("2024-01-01T10:00:00.000000Z,k0", "2024-01-01T10:00:01.000000Z,k1")):
        (tmp_path / f"{number}.csv").write_text(f"{header}{line}\n")
    assert [row for path in sorted(tmp_path.iterdir()) for row in seen(path)] == [
        "2024-01-01T10:00:00.000000Z,k0",
        "2024-01-01T10:00:01.000000Z,k1",
    ]


def test_a_driver_that_does_not_finish_what_was_committed_is_found(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(KINDS.index("sums over frames"), tmp_path / "live")
    run = undisturbed(case, spark, tmp_path / "kept", Sample(random.Random(0), 6))
    failed, stopped = Tally(), Tally()
    monkeypatch.setattr(HandingOver, "finish", lambda *_: None)
    faults(run, spark, failed, Later(0), 20)
    stops(run, spark, stopped, random.Random(0), 0.0)
    assert failed.counts["failed writes"] > 10
    assert failed.losses
    assert stopped.losses
    assert all(": files is" in loss for loss in [*failed.losses, *stopped.losses])


class Later(random.Random):
    """Choose the last value, if it is a number: the last tick."""

    def randrange(self, *bounds: int) -> int:  # type: ignore[override]
        return range(*bounds)[-1]


@pytest.mark.slow
def test_runs_in_sequence_lose_nothing_when_each_dies_once(spark: SparkSession, tmp_path: Path) -> None:
    tally = Tally()
    for number in range(3):
        sequences(spark, tmp_path / str(number), tally, number)
    assert not tally.losses
    assert tally.counts["sequences of runs"] == 3
    assert tally.counts["runs that died"] > 3


@pytest.mark.slow
def test_a_stop_that_ends_the_stream_is_found(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tally, run = Tally(), Sequence.run
    monkeypatch.setattr(Sequence, "run", lambda self, spark, end: run(self, spark, end=True))
    sequences(spark, tmp_path, tally, 1)
    assert any("accepted" in loss for loss in tally.losses), tally.losses


@pytest.mark.slow
def test_first_starts_that_are_killed_leave_nothing_or_all(spark: SparkSession, tmp_path: Path) -> None:
    tally = Tally()
    first_starts(spark, tmp_path, tally, 0, deaths=2)
    assert not tally.losses
    assert tally.counts["first starts that died"]


def test_all_rows_of_lake_tables_are_compared_except_foreign_ones(tmp_path: Path) -> None:
    out = tmp_path / "out"
    row = pa.table({"k": ["x", "x"], "v": [1, 1]})
    write_deltalake(out / "rows", row)
    catalog = load_catalog("here", type="sql", uri=f"sqlite:///{out}/catalog.db", warehouse=f"file://{out}/lake")
    catalog.create_namespace("db")
    catalog.create_table("db.latest", row.schema).append(row)
    before = rows_of_tables(tables_below(out))
    assert before == {"rows": ["[('k', 'x'), ('v', 1)]"] * 2, "latest": ["[('k', 'x'), ('v', 1)]"] * 2}
    assert others_write(tables_below(out)) == {
        f"{what} {kind} tables{by}": 1
        for what, by in (("appends of others to", ""), ("compactions of", " by others"))
        for kind in ("Delta", "Iceberg")
    }
    assert rows_of_tables(tables_below(out)) == before
    write_deltalake(out / "rows", row, mode="append")
    assert rows_of_tables(tables_below(out)) != before


def test_a_version_of_a_table_with_half_a_tick_or_one_twice_is_found(tmp_path: Path) -> None:
    def written(name: str, versions: list[list[tuple[str, int]]]) -> Delta:
        for rows in versions:
            table = pa.table({"k": ["x"] * len(rows), "p": [p for p, _ in rows], "v": [v for _, v in rows]})
            write_deltalake(tmp_path / name, table, mode="append")
        return Delta(tmp_path / name)

    first, second = [("p1", 1), ("p1", 2), ("p2", 3)], [("p1", 4), ("p2", 5)]
    after_one, after_two = (written(name, ticks) for name, ticks in (("one", [first]), ("two", [first, second])))
    states = [{"files": rows_of_tables({"rows": table})} for table in (after_one, after_two)]
    states.insert(0, {"files": {}})
    assert torn_versions({"rows": after_two}, states) == (2, [])
    half = torn_versions({"rows": written("half", [first[:1]])}, states)
    assert [what.partition(":")[0] for what in half[1]] == ["version 0 of rows has of p1 what no tick leaves"]
    twice = torn_versions({"rows": written("twice", [first, second[1:], second[1:]])}, states)
    assert [what.partition(":")[0] for what in twice[1]] == ["version 2 of rows has of p2 what no tick leaves"]
