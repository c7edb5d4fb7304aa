"""Iceberg tables with a key: one snapshot per tick, with the last row of each key, also after crashes."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyspark.sql.types import LongType, StringType, StructField, StructType

import rowtime as rt
from rowtime.api.verification import verify
from rowtime.core.errors import Failure
from rowtime.runtime.sinks import iceberg_merge, lake_files
from rowtime.runtime.sinks.iceberg_table import IcebergTable
from rowtime.runtime.sinks.lake import Mark, Ready
from tests.lakes import deaths
from tests.lakes.test_delta_tables import define, run, send
from tests.lakes.test_iceberg_tables import CATALOG, catalog, numbers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LATEST = f"""CREATE STREAM a (n BIGINT, day DATE);
CREATE STREAM o (day DATE NOT NULL, n BIGINT, change STRING) USING iceberg PARTITIONED BY (day)
  OPTIONS (table 'db.o', {CATALOG}, key 'day', mode 'changes', rowtime.column '');
CREATE PUMP p AS INSERT INTO o
  SELECT STREAM day, n, CASE WHEN n % 10 = 9 THEN 'RETRACT' ELSE 'INSERT' END AS change FROM a;"""
MANY = f"""CREATE STREAM a (n BIGINT, day DATE);
CREATE STREAM o (k BIGINT NOT NULL, s STRING NOT NULL, n BIGINT) USING iceberg
  OPTIONS (table 'db.o', {CATALOG}, key 'k, s', rowtime.column '');
CREATE PUMP p AS INSERT INTO o SELECT STREAM n % 400 AS k, 'it''s' AS s, n FROM a;"""


@pytest.mark.slow
def test_the_last_row_of_a_key_counts_whenever_the_driver_dies(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    define(tmp_path, LATEST)
    left: dict[int, int] = {}
    for at, point in enumerate(("after journal", "first commit", "files in place", "after output")):
        given = range(at * 7, at * 7 + 7)
        send(tmp_path, given)
        made = rt.Pipeline(spark, home=tmp_path / "home").sql(LATEST.format(folder=tmp_path))
        deaths.dies_in(made._engine(tmp_path / "check", rt.Limits(), ends=False), IcebergTable, point, monkeypatch)
        run(spark, tmp_path, LATEST)
        for n in given:
            left[n % 3] = n
        left = {key: n for key, n in left.items() if n % 10 != 9}
        assert numbers(tmp_path) == sorted(left.values()), point
    said = [
        dict(one.summary.additional_properties)["rowtime.tick"]
        for one in catalog(tmp_path).load_table("db.o").snapshots()
    ]
    assert said == ["0", "1", "2", "3"], "one snapshot a tick"
    send(tmp_path, range(29, 30))  # removes a row that does not exist: a snapshot without files has the mark
    run(spark, tmp_path, LATEST)
    assert numbers(tmp_path) == sorted(n for n in left.values() if n % 3 != 29 % 3)
    found = verify(tmp_path / "check", spark=spark, home=tmp_path / "home")
    assert found.equal, found
    catalog(tmp_path).load_table("db.o").delete("day = '2024-01-01'")
    assert not verify(tmp_path / "check", spark=spark, home=tmp_path / "home").equal


def test_a_commit_that_changes_nothing_and_arrives_late_does_not_set_the_mark_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/lake"}
    requests: list[tuple[Any, ...]] = []
    real: Any = SqlCatalog.commit_table

    def commit(catalog: SqlCatalog, *given: Any) -> Any:
        requests.append((catalog, *given))
        return real(catalog, *given)

    monkeypatch.setattr(SqlCatalog, "commit_table", commit)
    table = IcebergTable("here", given, "db.o", "p")
    table.create(StructType([StructField("k", StringType(), nullable=False), StructField("n", LongType())]), ())
    (tmp_path / "lake/db/o/data").mkdir(exist_ok=True, parents=True)
    for tick, (key, change) in enumerate([("a", "INSERT"), *[("gone", "RETRACT")] * 3]):
        pq.write_table(pa.table({"k": [key], "n": [tick], "change": [change]}), tmp_path / f"{tick}.parquet")
        assert table.look("rowtime/c/p") is not None
        table.commit(Ready("rowtime/c/p", [tmp_path / f"{tick}.parquet"], Mark(tick, tick + 1), 0, ("k",), "change"))
    assert len(requests) == 5, "the table, a row, and three ticks without"
    for late in requests[:-1]:
        with pytest.raises(CommitFailedException):
            real(*late)
    found = table.look("rowtime/c/p")
    assert found is not None
    assert found.mark == Mark(3, 4)
    scanned = SqlCatalog("here", **given).load_table("db.o").scan().to_arrow()
    assert scanned.to_pylist() == [{"k": "a", "n": 0}]


def test_a_disk_that_fails_while_files_are_merged_has_a_code_and_leaves_no_file(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    define(tmp_path, MANY)
    send(tmp_path, range(600))
    run(spark, tmp_path, MANY)
    send(tmp_path, range(600, 900))

    def is_full(path: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    with monkeypatch.context() as patch:
        patch.setattr(lake_files, "sync", is_full)
        with pytest.raises(Failure, match=r"R511 p cannot write to .*: No space left on device") as failed:
            run(spark, tmp_path, MANY)
    disk = failed.value.__cause__
    assert isinstance(disk, OSError)
    assert disk.__cause__ is None
    assert len(numbers(tmp_path)) == 400
    run(spark, tmp_path, MANY)
    assert numbers(tmp_path) == sorted({n % 400: n for n in range(900)}.values())
    assert _there(tmp_path) == _named(tmp_path)


def test_many_keys_are_found_in_the_files_that_have_them_beside_foreign_writers(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    define(tmp_path, MANY)
    send(tmp_path, range(900))
    run(spark, tmp_path, MANY)
    expected = {n % 400: n for n in range(900)}
    assert numbers(tmp_path) == sorted(expected.values())
    real, left = IcebergTable.commit, [2]

    def commit(self: IcebergTable, ready: Ready) -> None:
        if left[0]:
            left[0] -= 1
            other = catalog(tmp_path).load_table("db.o")
            row = {"k": 1000 + left[0], "s": "theirs", "n": -left[0]}
            other.append(pa.Table.from_pylist([row], schema=other.schema().as_arrow()))
        real(self, ready)

    monkeypatch.setattr(IcebergTable, "commit", commit)
    send(tmp_path, range(900, 1200))
    run(spark, tmp_path, MANY)
    expected |= {n % 400: n for n in range(900, 1200)}
    assert numbers(tmp_path) == sorted([*expected.values(), 0, -1])
    assert _there(tmp_path) == _named(tmp_path), "a commit that failed leaves no file"

    # A planted fault: old rows of the keys are not removed.
    monkeypatch.setattr(iceberg_merge, "_others", lambda rows, keys: rows)
    send(tmp_path, range(1200, 1300))
    run(spark, tmp_path, MANY)
    assert len(numbers(tmp_path)) > len(expected) + 2


def _named(folder: Path) -> set[str]:
    """The files of the snapshots."""
    return set(catalog(folder).load_table("db.o").inspect.all_files()["file_path"].to_pylist())


def _there(folder: Path) -> set[str]:
    return {f"file://{path}" for path in (folder / "lake" / "db" / "o" / "data").glob("*.parquet")}
