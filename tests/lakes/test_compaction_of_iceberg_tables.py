"""Compaction of small files of Iceberg tables is one snapshot that changes no row, also if others write."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import rowtime as rt
from rowtime.api.verification import verify
from rowtime.cli.main import app
from rowtime.core.errors import Failure
from rowtime.runtime.lake_targets import optimize
from rowtime.runtime.sinks import iceberg_compaction
from rowtime.runtime.sinks.iceberg_compaction import Replace
from rowtime.runtime.sinks.iceberg_table import IcebergTable
from rowtime.runtime.sinks.lake import Conflict
from tests.lakes.test_delta_tables import define, run, send
from tests.lakes.test_iceberg_tables import ONE, SQL, catalog, numbers

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyspark.sql import SparkSession

BY_COUNT = ONE.replace("(table 'db.o'", "(table 'db.o', optimize.files '3'")


def table(folder: Path) -> Table:
    return catalog(folder).load_table("db.o")


def files(folder: Path) -> list[str]:
    return [path.rpartition("/")[2] for path in table(folder).inspect.files()["file_path"].to_pylist()]


def operations(folder: Path) -> list[str]:
    return [one.summary.operation.value for one in table(folder).snapshots() if one.summary]


def ours(folder: Path) -> IcebergTable:
    given = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/lake"}
    return IcebergTable("here", given, "db.o", "p")


def row(n: int) -> pa.Table:
    return pa.table({"rowtime": pa.array([0], pa.timestamp("us", "UTC")), "n": pa.array([n], pa.int64())})


def test_small_files_are_combined_by_count_and_manually(spark: SparkSession, tmp_path: Path) -> None:
    assert BY_COUNT != ONE
    define(tmp_path, BY_COUNT)
    made = rt.Pipeline(spark, home=tmp_path / "home").sql(BY_COUNT.format(folder=tmp_path))
    engine = made._engine(tmp_path / "check", rt.Limits(), ends=False)
    counts = []
    for at in range(5):
        send(tmp_path, range(at * 5, at * 5 + 5))
        engine.tick()
        counts.append(len(files(tmp_path)))
    assert counts == [1, 2, 1, 2, 3]
    before = table(tmp_path).current_snapshot()
    # With the command, while the pipeline runs.
    found = CliRunner().invoke(app, ["optimize", str(tmp_path / "check"), "p", "--json"])
    assert found.exit_code == 0, found.output
    assert json.loads(found.output) == [{"pump": "p", "table": "db.o", "files": 3}]
    assert len(files(tmp_path)) == 1
    assert operations(tmp_path) == [*["append"] * 3, "replace", *["append"] * 2, "replace"]
    after = table(tmp_path).current_snapshot()
    assert before is not None
    assert after is not None
    assert before.summary is not None
    assert after.summary is not None
    kept = ("total-records", "total-position-deletes")
    assert [after.summary[name] for name in kept] == [before.summary[name] for name in kept] == ["25", "0"]
    assert (after.summary["total-data-files"], after.summary["deleted-data-files"]) == ("1", "3")
    assert table(tmp_path).scan(snapshot_id=before.snapshot_id).to_arrow().num_rows == 25, "the old files are there"
    send(tmp_path, range(25, 30))
    engine.tick()
    engine.stop()
    assert numbers(tmp_path) == list(range(30))
    compared = verify(tmp_path / "check", spark=spark, home=tmp_path / "home")
    assert [(one.how, one.rows) for one in compared.outputs if one.kind == "iceberg"] == [("as a set", 30)]
    assert compared.equal, compared
    table(tmp_path).append(row(1000))
    compared = verify(tmp_path / "check", spark=spark, home=tmp_path / "home")
    assert compared.equal, "counted: nobody can tell whose the rows of a compacted file are"
    assert "R571" in CliRunner().invoke(app, ["optimize", str(tmp_path / "check"), "x"]).output


def filled(spark: SparkSession, folder: Path, sql: str = ONE, ticks: int = 4) -> None:
    define(folder, sql)
    for at in range(ticks):
        send(folder, range(at * 6, at * 6 + 6))
        run(spark, folder, sql)


@pytest.mark.slow
def test_each_partition_has_files_of_its_own_and_rows_stay_in_order(spark: SparkSession, tmp_path: Path) -> None:
    filled(spark, tmp_path, SQL)
    assert ours(tmp_path).compact() == 24
    found = table(tmp_path)
    assert len(found.inspect.files()) == 3
    days = found.scan(row_filter="day = '2024-01-02'")
    assert [len([*days.plan_files()]), days.to_arrow().num_rows] == [1, 8]
    [file] = [task.file.file_path.removeprefix("file://") for task in days.plan_files()]
    # A tick of six rows is two commits; that of the even rows is first.
    assert pq.read_table(file)["n"].to_pylist() == [4, 1, 10, 7, 16, 13, 22, 19]
    assert ours(tmp_path).compact() == 0, "there is nothing left to do"
    assert {one.how for one in verify(tmp_path / "check", spark=spark, home=tmp_path / "home").outputs} >= {"counted"}
    # Two files have the right size, and the third, the last one, is not changed.
    size = max(found.inspect.files()["file_size_in_bytes"].to_pylist())
    with found.transaction() as change:
        change.set_properties({"write.target-file-size-bytes": str(size * 2)})
    send(tmp_path, range(24, 30))
    run(spark, tmp_path, SQL)
    assert ours(tmp_path).compact() == 6
    assert sorted(entry.data_file.record_count for entry in entries(tmp_path)) == [1, 1, 1, 9, 9, 9]
    assert numbers(tmp_path) == list(range(30))


def during(patch: pytest.MonkeyPatch, happens: Callable[[], Any]) -> None:
    """Run something once before a compaction commits."""
    real, left = Replace.commit, [happens]

    def commit(self: Replace) -> None:
        if left:
            left.pop()()
        real(self)

    patch.setattr(Replace, "commit", commit)


def test_others_append_meanwhile(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(spark, tmp_path)

    def happens() -> None:
        table(tmp_path).append(row(1000))
        send(tmp_path, range(24, 30))
        run(spark, tmp_path, ONE)

    during(monkeypatch, happens)
    assert [one.files for one in optimize(tmp_path / "check")] == [4]
    assert operations(tmp_path)[-3:] == ["append", "append", "replace"]
    assert numbers(tmp_path) == [*range(30), 1000]
    assert len(files(tmp_path)) == 3
    numbered = {entry.sequence_number: entry.data_file.record_count for entry in entries(tmp_path)}
    assert numbered == {4: 24, 5: 1, 6: 6}, "rows that were compacted stay before those that came later"
    run(spark, tmp_path, ONE)
    assert numbers(tmp_path) == [*range(30), 1000]


def entries(folder: Path) -> list[Any]:
    found = table(folder)
    snapshot = found.current_snapshot()
    assert snapshot is not None
    return [entry for one in snapshot.manifests(found.io) for entry in one.fetch_manifest_entry(found.io)]


SELDOM = [pytest.param(what, marks=pytest.mark.slow) for what in ("overwrite", "compaction")]


@pytest.mark.parametrize("what", ["delete", *SELDOM])
def test_the_first_writer_to_change_the_same_files_wins(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    filled(spark, tmp_path)

    def happens() -> None:
        if what == "delete":
            table(tmp_path).delete("n = 7")
        elif what == "overwrite":
            table(tmp_path).overwrite(row(7), overwrite_filter="n = 7")
        else:
            assert ours(tmp_path).compact() == 4

    during(monkeypatch, happens)
    with pytest.raises(Conflict):
        ours(tmp_path).compact()
    left = {name for name in files(tmp_path) if name.startswith("compacted")}
    there = {path.name for path in (tmp_path / "lake/db/o/data").glob("compacted*")}
    assert there == left, "a compaction that gave up leaves no file"
    assert numbers(tmp_path) == [n for n in range(24) if n != 7 or what != "delete"]
    # The next one starts from the present state.
    monkeypatch.undo()
    ours(tmp_path).compact()
    assert len(files(tmp_path)) == 1
    assert numbers(tmp_path) == [n for n in range(24) if n != 7 or what != "delete"]


@pytest.mark.slow
def test_a_compaction_that_would_lose_rows_changes_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(spark, tmp_path)
    real = iceberg_compaction.batches
    monkeypatch.setattr(iceberg_compaction, "batches", lambda *asked: [*real(*asked)][1:])  # a planted fault
    with pytest.raises(Failure, match=r"R565 the pump p .*4 files were to have 24 rows, and have 18"):
        ours(tmp_path).compact()
    assert operations(tmp_path) == ["append"] * 4
    assert not [*(tmp_path / "lake/db/o/data").glob("compacted*")]


@pytest.mark.slow
def test_a_compacted_table_is_traced_and_verified_as_before(spark: SparkSession, tmp_path: Path) -> None:
    define(tmp_path, ONE)
    for at in range(3):
        send(tmp_path, range(at * 5, at * 5 + 5))
        run(spark, tmp_path, ONE)
    there = (str(tmp_path / "check"), "--home", str(tmp_path / "home"), "--json")

    def told(*asked: str) -> str:
        found = CliRunner().invoke(app, [*asked, *there])
        assert found.exit_code == 0, found.output
        return found.output

    traced = [("trace", "--where", "n = 12"), ("trace", "--from", "a", "--where", "n = 3")]
    before = [told(*asked) for asked in traced]
    assert [one.files for one in optimize(tmp_path / "check")] == [3]
    assert [told(*asked) for asked in traced] == before
    assert '"n": 12' in before[0]
    told("verify")  # the status says whether all is equal
    table(tmp_path).append(row(99))  # somebody else's rows, which only allow to compare counts
    told("verify")
