"""`rowtime skip` sets aside rows that a lake table does not accept: they are refused, and the pump continues."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from typer.testing import CliRunner

import rowtime as rt
from rowtime.cli.main import app
from rowtime.core.stores import place_of
from rowtime.runtime.sinks.delta_log import DeltaLog
from rowtime.runtime.sinks.iceberg_table import IcebergTable
from rowtime.runtime.store_access import deltalake_settings
from tests.lakes import deaths
from tests.lakes.test_iceberg_tables import CATALOG, catalog
from tests.stores import conftest as stores

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SQL = """CREATE STREAM a (n BIGINT);
CREATE STREAM o (n BIGINT NOT NULL) USING {using};
CREATE PUMP p AS INSERT INTO o SELECT STREAM n FROM a;"""
bucket = stores.bucket


def numbers(folder: Path, at: str) -> list[int]:
    if at:
        told = DeltaTable(at, storage_options=deltalake_settings(place_of(at)))
        return sorted(told.to_pyarrow_table()["n"].to_pylist())
    return sorted(catalog(folder).load_table("db.o").scan().to_arrow()["n"].to_pylist())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["delta", "delta with a key", "iceberg", "iceberg with a secret", "delta in a bucket"])
def test_rows_that_are_set_aside_are_in_no_table(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bucket: str, kind: str
) -> None:
    at = f"{bucket if 'bucket' in kind else tmp_path}/out" if "delta" in kind else ""
    options = f"path '{at}'" if at else f"table 'db.o', {CATALOG.format(folder=tmp_path)}"
    using = f"{kind.partition(' ')[0]} OPTIONS ({options}{', key ' + repr('n') if 'key' in kind else ''})"

    secrets = {"uri": f"sqlite:///{tmp_path}/catalog.db"} if "secret" in kind else {}
    for name, value in secrets.items():
        using = using.replace(value, f"${{{name}}}")

    def made() -> rt.Pipeline:
        return rt.Pipeline(spark, home=tmp_path / "home").sql(SQL.format(using=using), secrets)

    def skip(tick: int) -> str:
        told = [part for name, value in secrets.items() for part in ("--set", f"{name}={value}")]
        asked = ["skip", str(tmp_path / "check"), "p", str(tick), "--home", str(tmp_path / "home"), *told]
        return CliRunner().invoke(app, asked).output

    def send(*given: int) -> None:
        with rt.writer("a", home=tmp_path / "home") as writer:
            writer.insert([{"n": n, "rowtime": n} for n in given])

    for stream in made().compile().defines:
        made().home.define(stream.name, stream.as_json())
    log = DeltaLog if at else IcebergTable
    send(0, 1)
    made().run_available(tmp_path / "check")
    for point, given in (("after journal", (2, 3)), ("files in place", (4, 5))):
        send(*given)
        deaths.dies_in(made()._engine(tmp_path / "check", rt.Limits(), ends=False), log, point, monkeypatch)
        tick = 1 if point == "after journal" else 3  # the entry of `skip` belongs to tick 2
        assert "2 rows of tick" in skip(tick)
        assert "R445" in skip(tick)
    send(6)
    deaths.dies_in(made()._engine(tmp_path / "check", rt.Limits(), ends=False), log, "first commit", monkeypatch)
    assert "R445" in skip(5), "the table has them, and would have them beside those set aside"
    send(7)
    query = made().run_available(tmp_path / "check")
    assert numbers(tmp_path, at) == [0, 1, 6, 7]
    assert query.ledger["p"]["SKIPPED"] == 4
    kept = [row for path in query.rejected("p") for row in pq.read_table(path).to_pylist()]
    assert sorted((row["n"], row["reason"]) for row in kept) == [(n, "SKIPPED") for n in (2, 3, 4, 5)]
    found = rt.verify(tmp_path / "check", spark=spark, home=tmp_path / "home", variables=secrets)
    assert found.equal, found
