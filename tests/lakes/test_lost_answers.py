"""A commit or compaction succeeded, but its answer is lost or is an error: each row is there once."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
import requests
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException
from pyspark.sql.types import LongType, StructField, StructType
from sqlalchemy.exc import IntegrityError, OperationalError

import rowtime as rt
from reliability.stores.proxy import LATE, LOSE, SLOW, THROTTLE, Faults, faulty
from rowtime.core.errors import Failure
from rowtime.runtime.lake_targets import optimize
from rowtime.runtime.sinks import delta_log
from rowtime.runtime.sinks.iceberg_table import IcebergTable
from tests.lakes import test_delta_tables_on_stores as delta
from tests.lakes import test_iceberg_tables_on_stores as iceberg
from tests.stores import conftest as stores
from tests.stores.server import BUCKET, address

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

bucket = stores.bucket

ANSWERS: Final[dict[str, Exception]] = {
    "unknown": CommitStateUnknownException("500"),
    "none": requests.ConnectionError("Connection aborted."),
    "a locked database": OperationalError("COMMIT", {}, Exception("database is locked")),
    "a refusal": CommitFailedException("409"),  # as if a proxy had repeated the request
}


class Catalog:
    """Answers to commits are lost while ``lost`` is above 0; ``made``: the number of commits."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.lost: list[Exception] = []
        self.made = 0
        real: Callable[..., Any] = SqlCatalog.commit_table

        def commit(catalog: SqlCatalog, *given: Any) -> Any:
            found = real(catalog, *given)
            self.made += 1
            if self.lost:
                raise self.lost.pop()
            return found

        patch.setattr(SqlCatalog, "commit_table", commit)


@pytest.fixture
def catalog(monkeypatch: pytest.MonkeyPatch) -> Catalog:
    """A catalog that may lose answers."""
    return Catalog(monkeypatch)


@pytest.fixture
def faults(bucket: str) -> Iterator[Faults]:
    """The failures of requests to the bucket."""
    assert bucket
    with faulty(address()) as (proxy, found):
        rt.configure_stores({f"s3://{BUCKET}": {"endpoint": proxy}})
        yield found
    rt.configure_stores({})


@pytest.mark.slow
@pytest.mark.parametrize("where", ["disk", "bucket"])
def test_a_commit_to_a_catalog_whose_answer_is_lost_is_made_once(
    spark: SparkSession, tmp_path: Path, bucket: str, catalog: Catalog, where: str
) -> None:
    url = f"file://{tmp_path}/lake" if where == "disk" else bucket
    run = iceberg.made(spark, tmp_path, url, iceberg.SQL)
    for at, answer in enumerate((None, *ANSWERS.values())):
        catalog.lost = [answer] * 3 if answer else []  # of two pumps, and of the changes by key
        run.send(range(at * 10, at * 10 + 10))
        run.go()
        assert not catalog.lost, answer
        assert iceberg.numbers(tmp_path, url) == [*range(at * 10 + 10)], answer
        left = {n % 3: n for n in range(at * 10 + 10)}
        assert iceberg.numbers(tmp_path, url, "last") == sorted(n for n in left.values() if n % 10 != 9), answer
        said = (one.summary["rowtime.tick"] for one in iceberg.table(tmp_path, url).snapshots())
        ticks = [tick for tick in said if tick is not None]  # a compaction adds none
        assert ticks == [str(tick) for tick in range(at + 1) for _ in ("even", "odd")], answer
        catalog.lost = [answer] if answer else []
        if at % 2:
            assert [one.files > 1 for one in optimize(tmp_path / "check", "odd")] == [True], answer
            assert not catalog.lost, answer
            assert iceberg.numbers(tmp_path, url) == [*range(at * 10 + 10)], answer
    assert rt.verify(tmp_path / "check", spark=spark, home=tmp_path / "home").equal


@pytest.mark.slow
def test_a_commit_that_the_catalog_refuses_leaves_no_file_behind(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, real = f"file://{tmp_path}/lake", SqlCatalog.commit_table
    run = iceberg.made(spark, tmp_path, url, iceberg.SQL)
    refusals: list[str] = []

    def refuse(catalog: SqlCatalog, *given: Any) -> Any:
        refusals.append("")
        if len(refusals) % 2:
            raise CommitFailedException("another writer was faster")
        return real(catalog, *given)

    monkeypatch.setattr(SqlCatalog, "commit_table", refuse)
    for at in range(2):
        run.send(range(at * 10, at * 10 + 10))
        run.go()
    assert len(refusals) > 10
    assert iceberg.numbers(tmp_path, url) == [*range(20)]
    named = iceberg.table(tmp_path, url, "last").inspect.all_files()["file_path"].to_pylist()
    there = {str(path) for path in (tmp_path / "lake" / "db" / "last" / "data").rglob("*.parquet")}
    assert there == {one.removeprefix("file://") for one in named}


def test_a_namespace_that_somebody_else_creates_concurrently_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/lake"}
    table = IcebergTable("here", given, "db.o", "p")
    real: Callable[..., Any] = SqlCatalog.create_namespace

    def second(catalog: SqlCatalog, *given: Any) -> None:
        real(catalog, *given)
        raise IntegrityError("INSERT", {}, Exception("UNIQUE constraint failed"))

    monkeypatch.setattr(SqlCatalog, "create_namespace", second)
    table.create(StructType([StructField("n", LongType())]), ())
    assert table.look("p") is not None
    monkeypatch.setattr(SqlCatalog, "create_namespace", real)
    monkeypatch.setattr(SqlCatalog, "create_namespace_if_not_exists", lambda *_: 1 / 0)
    with pytest.raises(Failure, match="R565"):
        IcebergTable("here", given, "other.o", "p").create(StructType([StructField("n", LongType())]), ())


@pytest.mark.slow
@pytest.mark.parametrize("befalls", [[LOSE, LOSE], [THROTTLE, LOSE], [SLOW], [LATE], [LATE, LOSE]])
def test_a_compaction_of_a_delta_table_whose_answer_is_lost_is_made_once(
    spark: SparkSession, tmp_path: Path, bucket: str, faults: Faults, befalls: list[str]
) -> None:
    run = delta.Run(spark, tmp_path, bucket, delta.ONE)
    for at in range(3):
        run.send(range(at * 10, at * 10 + 10))
        run.go()
    faults.put("out/_delta_log", *befalls)
    optimize(tmp_path / "check")
    assert not faults.next
    faults.deliver()
    assert delta.numbers(f"{bucket}/out") == [*range(30)]
    assert len(delta.table(f"{bucket}/out").file_uris()) == 1
    assert optimize(tmp_path / "check")[0].files in (0, 1)
    run.send(range(30, 40))
    run.go()
    assert delta.numbers(f"{bucket}/out") == [*range(40)]


@pytest.mark.slow
def test_a_disk_that_fails_after_a_commit_or_a_compaction_has_each_row_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = str(tmp_path / "tables")
    run = delta.Run(spark, tmp_path, place, delta.ONE)

    def fails(_path: Path) -> None:
        raise OSError(errno.EIO, "Input/output error", str(_path))

    for at in range(3):
        run.send(range(at * 10, at * 10 + 10))
        with monkeypatch.context() as patch:
            patch.setattr(delta_log.DeltaLog, "_keep", lambda *_: fails(tmp_path))
            with pytest.raises(Failure, match="R511 p cannot write"):
                run.go()
        run.go()
        assert sorted(DeltaTable(f"{place}/out").to_pyarrow_table()["n"].to_pylist()) == [*range(at * 10 + 10)]
    with monkeypatch.context() as patch:
        patch.setattr(delta_log.DeltaLog, "_keep", lambda *_: fails(tmp_path))
        with pytest.raises(Failure, match="R565"):
            optimize(tmp_path / "check")
    optimize(tmp_path / "check")
    assert sorted(DeltaTable(f"{place}/out").to_pyarrow_table()["n"].to_pylist()) == [*range(30)]
