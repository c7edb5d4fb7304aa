"""What is wrong with a Delta table, on a disk and in a bucket: a code, who uses it, and what to do; nothing is lost."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import rowtime as rt
from reliability.stores.proxy import Faults, faulty
from rowtime.core.errors import RowtimeError
from rowtime.core.stores import ObjectPlace, place_of
from rowtime.runtime.sources.lakes import static_rows
from rowtime.runtime.store_access import deltalake_settings
from tests.lakes.test_delta_tables_on_stores import ONE, Run
from tests.stores import conftest as stores
from tests.stores.server import BUCKET, address

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

READ = """CREATE STREAM clicks (n BIGINT) USING delta OPTIONS (path '{url}/in');
CREATE STREAM o (n BIGINT) USING delta OPTIONS (path '{folder}/o', rowtime.column '');
CREATE PUMP p AS INSERT INTO o SELECT STREAM n FROM clicks;"""

bucket = stores.bucket


@pytest.fixture(params=["disk", pytest.param("bucket", marks=pytest.mark.slow)])
def place(request: pytest.FixtureRequest, tmp_path: Path, bucket: str) -> str:
    """Where tables are."""
    return str(tmp_path / "tables") if request.param == "disk" else bucket


@pytest.fixture
def faults(bucket: str) -> Iterator[Faults]:
    """What befalls the requests of the driver to the bucket."""
    assert bucket
    with faulty(address()) as (proxy, found):
        rt.configure_stores({f"s3://{BUCKET}": {"endpoint": proxy}, "s3://no-such-bucket": {"endpoint": proxy}})
        yield found
    rt.configure_stores({})


def write(url: str, numbers: list[int], name: str = "n", **how: Any) -> None:
    rows, settings = pa.table({name: numbers}), deltalake_settings(place_of(url))
    write_deltalake(url, rows, mode=how.pop("mode", "append"), storage_options=settings, **how)


def opened(url: str) -> DeltaTable:
    return DeltaTable(url, storage_options=deltalake_settings(place_of(url)))


def remove(url: str) -> None:
    place = place_of(url)
    if isinstance(place, ObjectPlace):
        for path in [*place.rglob()]:
            path.unlink()
    else:
        shutil.rmtree(place)


def reads(spark: SparkSession, folder: Path, url: str) -> Callable[[], None]:
    made = rt.Pipeline(spark, home=folder / "reader").sql(READ.format(url=url, folder=folder))
    return lambda: made.run_available(folder / "read") and None


def said(what: Callable[[], object]) -> str:
    """The code, the message and the hint of what is refused."""
    with pytest.raises(RowtimeError) as raised:
        what()
    assert raised.value.problems[0].hint
    return str(raised.value)


def written(folder: Path) -> list[int]:
    return sorted(DeltaTable(str(folder / "o")).to_pyarrow_table()["n"].to_pylist())


def test_a_table_that_is_read_and_is_not_there_or_another_or_gone(
    spark: SparkSession, tmp_path: Path, place: str
) -> None:
    go = reads(spark, tmp_path, place)
    assert "R501 the stream clicks: the Delta table" in said(go)
    write(f"{place}/in", [1], "m")
    assert f"R577 the Delta table {place}/in has no column n, which clicks declares" in said(go)
    write(f"{place}/in", [1, 2], mode="overwrite", schema_mode="overwrite")
    go()
    write(f"{place}/in", [3])
    go()
    assert written(tmp_path) == [1, 2, 3]
    remove(f"{place}/in")
    assert "R576 the stream clicks: the Delta table" in said(go)
    write(f"{place}/in", [1, 2, 3, 4])
    assert "it was made anew" in said(go)
    assert written(tmp_path) == [1, 2, 3], "and nothing of the other table is read"


def test_a_static_table_of_a_version_that_was_vacuumed(spark: SparkSession, place: str) -> None:
    write(f"{place}/days", [1])
    write(f"{place}/days", [2], mode="overwrite")
    opened(f"{place}/days").vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    source = ("delta", [("path", f"{place}/days"), ("versionAsOf", "0")])
    found = said(lambda: static_rows(spark, "days", source, {"n": "BIGINT"}))
    assert "R578 the table days: the Delta table" in found
    assert "is gone (VACUUM?)" in found
    assert [row.n for row in static_rows(spark, "days", ("delta", source[1][:1]), {"n": "BIGINT"}).collect()] == [2]


def test_a_table_that_is_written_and_is_another_or_gone(spark: SparkSession, tmp_path: Path, place: str) -> None:
    write(f"{place}/out", [1], "m")
    run = Run(spark, tmp_path, place, ONE)
    run.send(range(2))
    assert re.search(r"R561 .* has no column n, which the pump p writes", said(run.go))
    remove(f"{place}/out")
    run.go()
    remove(f"{place}/out")
    run.send(range(2, 4))
    assert "R564 the pump p has given 2 rows to" in said(run.go)


@pytest.mark.slow
def test_a_bucket_that_is_not_there_and_credentials_that_are_refused(
    spark: SparkSession, tmp_path: Path, bucket: str, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "R581 the stream clicks: the bucket s3://no-such-bucket" in said(
        reads(spark, tmp_path / "a", "s3://no-such-bucket")
    )
    missing = ("delta", [("path", "s3://no-such-bucket/days")])
    assert "R581 the table days: the bucket" in said(lambda: static_rows(spark, "days", missing, {"n": "BIGINT"}))
    write(f"{bucket}/in", [1, 2])
    run, go = Run(spark, tmp_path, bucket, ONE), reads(spark, tmp_path, bucket)
    run.send(range(2))
    run.go()
    go()
    run.send(range(2, 4))
    write(f"{bucket}/in", [3])
    with monkeypatch.context() as patch:
        denied = b"<Error><Code>InvalidAccessKeyId</Code></Error>"
        patch.setattr(faults, "ask", lambda *_: (403, {}, denied))
        for what, name in ((run.go, "p"), (go, "the stream clicks")):
            found = said(what)
            assert f"R582 {name}: the bucket s3://{BUCKET}" in found
            assert "rowtime.toml" in found
    run.go()
    go()
    assert written(tmp_path) == [1, 2, 3]
    assert opened(f"{bucket}/out").to_pyarrow_table().num_rows == 4
