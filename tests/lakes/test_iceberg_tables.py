"""Iceberg tables as targets of pumps: each row is there once, whatever dies; a table that does not fit is refused."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog

import rowtime as rt
from rowtime.api.verification import verify
from rowtime.core.errors import Failure, Refused, RowtimeError
from rowtime.runtime.sinks.iceberg_table import IcebergTable
from rowtime.state.checkpoint import Checkpoint
from tests.lakes import deaths
from tests.lakes.test_delta_tables import define, run, send

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.runtime.sinks.lake import Ready

CATALOG = """catalog 'here', catalog.type 'sql', catalog.uri 'sqlite:///{folder}/catalog.db',
  catalog.warehouse 'file://{folder}/lake'"""
SQL = f"""CREATE STREAM a (n BIGINT, day DATE);
CREATE STREAM o (n BIGINT, day DATE NOT NULL) USING iceberg PARTITIONED BY (day) OPTIONS (table 'db.o', {CATALOG});
CREATE PUMP even AS INSERT INTO o SELECT STREAM n, day FROM a WHERE n % 2 = 0;
CREATE PUMP odd AS INSERT INTO o SELECT STREAM n, day FROM a WHERE n % 2 = 1;"""
ONE = f"""CREATE STREAM a (n BIGINT, day DATE);
CREATE STREAM o (n BIGINT) USING iceberg OPTIONS (table 'db.o', {CATALOG});
CREATE PUMP p AS INSERT INTO o SELECT STREAM n FROM a;"""


def catalog(folder: Path) -> Catalog:
    uri, warehouse = f"sqlite:///{folder}/catalog.db", f"file://{folder}/lake"
    return load_catalog("here", type="sql", uri=uri, warehouse=warehouse)


def rows(folder: Path) -> pa.Table:
    found = catalog(folder)
    return found.load_table("db.o").scan().to_arrow() if found.table_exists("db.o") else pa.table({"n": []})


def numbers(folder: Path) -> list[int]:
    return sorted(rows(folder)["n"].to_pylist())


def dies_in(spark: SparkSession, folder: Path, point: str, patch: pytest.MonkeyPatch) -> None:
    made = rt.Pipeline(spark, home=folder / "home").sql(SQL.format(folder=folder))
    deaths.dies_in(made._engine(folder / "check", rt.Limits(), ends=False), IcebergTable, point, patch)


@pytest.mark.slow
def test_a_driver_that_dies_at_any_point_loses_and_repeats_no_row(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    define(tmp_path, SQL)
    points = ("after journal", "files in place", "first commit", "second commit", "after output")
    for at, point in enumerate(points):
        send(tmp_path, range(at * 10, at * 10 + 10))
        dies_in(spark, tmp_path, point, monkeypatch)
        committed = {"first commit": 5, "second commit": 10, "after output": 10}.get(point, 0)
        assert len(numbers(tmp_path)) == at * 10 + committed, point
        run(spark, tmp_path, SQL)
        assert numbers(tmp_path) == list(range(at * 10 + 10)), point
    table = catalog(tmp_path).load_table("db.o")
    days = table.scan(row_filter="day = '2024-01-02'").to_arrow()
    assert sorted(days["n"].to_pylist()) == [n for n in range(50) if n % 3 == 1]
    assert len(table.inspect.partitions()) == 3
    found = verify(tmp_path / "check", spark=spark, home=tmp_path / "home")
    assert [(one.rows, one.how) for one in found.outputs if one.kind == "iceberg"] == [(25, "as a set")] * 2
    assert found.equal, found
    # The mark of the pump outlives the snapshots that it wrote.
    table.maintenance.expire_snapshots().older_than(datetime.now(UTC) + timedelta(days=1)).commit()
    assert len(catalog(tmp_path).load_table("db.o").snapshots()) == 1
    place = Checkpoint(tmp_path / "check")
    place.published -= 1
    send(tmp_path, range(50, 52))
    run(spark, tmp_path, SQL)
    assert numbers(tmp_path) == list(range(52))
    table = catalog(tmp_path).load_table("db.o")
    table.delete("n = 7")
    assert verify(tmp_path / "check", spark=spark, home=tmp_path / "home").equal, "counted: others change it"


def test_foreign_writers_and_another_driver_come_between(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    define(tmp_path, ONE)
    send(tmp_path, range(5))
    run(spark, tmp_path, ONE)
    real, left = IcebergTable.commit, [2]

    def commit(self: IcebergTable, ready: Ready) -> None:
        if left[0]:
            left[0] -= 1
            other = catalog(tmp_path).load_table("db.o")
            one = {"rowtime": pa.array([0], pa.timestamp("us", "UTC")), "n": pa.array([1000 + left[0]], pa.int64())}
            other.append(pa.table(one))
        real(self, ready)

    with monkeypatch.context() as patch:
        patch.setattr(IcebergTable, "commit", commit)
        send(tmp_path, range(5, 10))
        run(spark, tmp_path, ONE)
    assert not left[0]
    assert numbers(tmp_path) == [*range(10), 1000, 1001]

    def twice(self: IcebergTable, ready: Ready) -> None:
        """Another program commits the same tick first; the open table does not know that."""
        other = IcebergTable(self._called, self._given, self._name, self._pump)
        other.look(ready.app)
        real(other, ready)
        real(self, ready)

    monkeypatch.setattr(IcebergTable, "commit", twice)
    send(tmp_path, range(10, 15))
    run(spark, tmp_path, ONE)
    assert numbers(tmp_path) == [*range(15), 1000, 1001]


def refusal(spark: SparkSession, folder: Path, sql: str = ONE, **how: Any) -> RowtimeError:
    with pytest.raises((Refused, Failure)) as raised:
        run(spark, folder, sql, **how)
    return raised.value


def test_columns_that_do_not_fit_are_refused_at_the_start(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    define(tmp_path, ONE)
    send(tmp_path, range(5))
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "pyiceberg.catalog", None)
        found = refusal(spark, tmp_path).problems[0]
        assert (found.code, "rowtime[iceberg]" in found.hint) == ("R560", True)
    homeless = ONE.replace(",\n  catalog.warehouse 'file://{folder}/lake'", "")
    assert homeless != ONE
    assert (
        refusal(spark, tmp_path, homeless.replace("CREATE STREAM o", "CREATE OR REPLACE STREAM o")).problems[0].code
        == "R572"
    )
    there = catalog(tmp_path)
    there.create_namespace("db")
    schema = pa.schema([("n", pa.string()), ("rowtime", pa.timestamp("us"))])
    there.create_table("db.o", schema)
    assert [problem.code for problem in refusal(spark, tmp_path).problems] == ["R561", "R561"]
    there.drop_table("db.o")
    fields = [pa.field("n", pa.int32(), nullable=False), pa.field("rowtime", pa.timestamp("us", "UTC"), nullable=False)]
    there.create_table("db.o", pa.schema([*fields, pa.field("more", pa.string())]))
    with rt.writer("a", home=tmp_path / "home") as log:
        log.insert([{"n": n, "rowtime": 60_000_000 * 4} for n in (None, 2**40)])
    query = run(spark, tmp_path, ONE)
    assert query.ledger["p"] == {"in": 7, "accepted": 5, "MALFORMED": 2}, "a table that is there is the typed edge"
    assert numbers(tmp_path) == list(range(5))
    assert verify(tmp_path / "check", spark=spark, home=tmp_path / "home").equal
    there.drop_table("db.o")
    send(tmp_path, range(5, 10))
    found = refusal(spark, tmp_path).problems[0]
    assert (found.code, "is gone" in found.message) == ("R564", True)
    there.create_table("db.o", pa.schema([("rowtime", pa.timestamp("us", "UTC")), ("n", pa.int64())]))
    assert refusal(spark, tmp_path).problems[0].code == "R564", "another table of the same name"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ("table 'db.o'", "R504"),
        ("catalog 'c', table 'o'", "R541"),
        ("catalog 'c', table 'db.o', uri 'x'", "R540"),
        ("catalog 'c', table 'db.o', key 'm'", "R504"),
        ("catalog 'c', table 'db.o', optimize.files '1'", "R541"),
    ],
)
def test_options_that_do_not_fit_are_refused_by_check(tmp_path: Path, options: str, code: str) -> None:
    sql = f"""CREATE STREAM a (n BIGINT); CREATE STREAM o (n BIGINT NOT NULL) USING iceberg OPTIONS ({options});
    INSERT INTO o SELECT STREAM n FROM a;"""
    with pytest.raises(Refused) as raised:
        rt.Pipeline(home=tmp_path / "home").sql(sql).compile()
    assert code in {problem.code for problem in raised.value.problems}, raised.value
