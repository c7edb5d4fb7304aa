"""Iceberg tables as sources: the rows of each snapshot once and in order; only appended rows are accepted."""

from __future__ import annotations

import shutil
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog

import rowtime as rt
from rowtime.api.verification import verify
from rowtime.core.errors import Failure, Refused
from rowtime.runtime.sources.iceberg_history import IcebergHistory
from rowtime.runtime.sources.table_history import NOTHING
from tests.deaths import Died, dying

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyspark.sql import SparkSession

CATALOG = """catalog 'here', catalog.type 'sql', catalog.uri 'sqlite:///{folder}/catalog.db',
  catalog.warehouse 'file://{folder}/lake'"""
SQL = f"""CREATE STREAM clicks (n BIGINT, s STRING, day DATE)
  USING iceberg OPTIONS (table 'db.t'{{options}}, {CATALOG});
CREATE STREAM o (n BIGINT, s STRING, day DATE) USING delta OPTIONS (path '{{folder}}/out', rowtime.column '');
CREATE PUMP p AS INSERT INTO o SELECT STREAM n * 2 AS n, s, day FROM clicks{{now}} WHERE n >= 0;"""
SCHEMA = pa.schema([("n", pa.int64()), ("s", pa.string()), ("day", pa.date32())])


def catalog(folder: Path) -> Catalog:
    uri, warehouse = f"sqlite:///{folder}/catalog.db", f"file://{folder}/lake"
    return load_catalog("here", type="sql", uri=uri, warehouse=warehouse)


def created(folder: Path) -> None:
    found = catalog(folder)
    found.create_namespace_if_not_exists("db")
    with found.create_table_transaction("db.t", SCHEMA) as made, made.update_spec() as spec:
        spec.add_identity("day")
        spec.add_identity("s")


def table(folder: Path) -> Table:
    return catalog(folder).load_table("db.t")


def append(folder: Path, numbers: range) -> None:
    rows = [{"n": n, "s": f"s {n % 2}/ä", "day": None if n % 3 == 0 else date(2024, 1, n % 3)} for n in numbers]
    table(folder).append(pa.Table.from_pylist(rows, schema=SCHEMA))


def pipeline(spark: SparkSession, folder: Path, sql: str, out: str, **given: str) -> rt.Pipeline:
    text = sql.format(folder=folder, **{"options": "", "now": "", **given})
    return rt.Pipeline(spark, home=folder / f"home of {out}").sql(text)


def run(spark: SparkSession, folder: Path, check: str = "check", sql: str = SQL, **given: Any) -> rt.Query:
    limits = rt.Limits(files=given.pop("files", None))
    return pipeline(spark, folder, sql, check, **given).run_available(folder / check, limits=limits)


def refusal(spark: SparkSession, folder: Path, check: str = "check", **given: Any) -> str:
    with pytest.raises((Refused, Failure)) as raised:
        run(spark, folder, check, **given)
    return str(raised.value)


def found(folder: Path) -> list[dict[str, Any]]:
    from deltalake import DeltaTable

    rows = DeltaTable(str(folder / "out")).to_pyarrow_table().to_pylist()
    return sorted(rows, key=lambda row: row["n"])


def expected(numbers: Any) -> list[dict[str, Any]]:
    days = {0: None, 1: date(2024, 1, 1), 2: date(2024, 1, 2)}
    return [{"n": 2 * n, "s": f"s {n % 2}/ä", "day": days[n % 3]} for n in numbers]


@pytest.mark.slow
def test_the_unread_rest_is_reported_in_bytes_or_in_versions(spark: SparkSession, tmp_path: Path) -> None:
    created(tmp_path)
    for number in range(4):
        append(tmp_path, range(3 * number, 3 * number + 1))
    first = table(tmp_path).snapshots()[0].snapshot_id

    def told(check: str, **given: str) -> list[tuple[str, int, int]]:
        seen: list[Any] = []
        text = SQL.format(**{"options": "", "now": "", "folder": tmp_path, **given}).partition(";")[0]
        made = rt.Pipeline(spark, home=tmp_path / f"home of {check}").sql(f"{text}; SELECT STREAM n FROM clicks")
        made.sink("result", lambda _: None).run_available(
            tmp_path / check, limits=rt.Limits(files=2), listener=seen.append
        )
        backlogs = [source["backlog"] for progress in seen for source in progress["sources"]]
        return [(one["unit"], one["taken"], one["left"]) for one in backlogs]

    whole = told("whole")
    assert [unit for unit, *_ in whole] == ["bytes", "bytes"]
    assert (whole[0][2], whole[1][2]) == (whole[1][1], 0)
    behind = told("behind", options=f", startingVersion '{first}'")
    assert [one[0] for one in behind] == ["versions", "bytes"]
    assert (behind[0], behind[1][2]) == (("versions", 2, 2), 0)
    given = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/lake"}
    history = IcebergHistory("here", given, "db.t")
    assert history.look() is not None
    assert [history.behind(place) for place in (first, NOTHING, 12_345)] == [3, 4, 4], (
        "of an unknown place, all there are"
    )


@pytest.mark.slow
def test_a_stream_reads_each_row_of_a_table_once_in_any_cut_and_across_crashes(
    spark: SparkSession, tmp_path: Path
) -> None:
    created(tmp_path)
    append(tmp_path, range(6))
    table(tmp_path).delete("n = 5")
    append(tmp_path, range(6, 8))
    run(spark, tmp_path, files=1)
    assert found(tmp_path) == expected([0, 1, 2, 3, 4, 6, 7])
    append(tmp_path, range(8, 12))
    for point in ("before journal", "after journal"):
        made = pipeline(spark, tmp_path, SQL, "check")
        engine = made._engine(tmp_path / "check", rt.Limits(files=1), ends=False)
        engine.hook = dying(point)
        with pytest.raises(Died):
            engine.tick()
        engine.stop()
    append(tmp_path, range(12, 14))
    run(spark, tmp_path)
    assert found(tmp_path) == expected([0, 1, 2, 3, 4, *range(6, 14)])
    again = verify(tmp_path / "check", spark=spark, home=tmp_path / "home of check")
    assert again.equal, again
    # A snapshot that changes rows is refused, the ones before it are read, and it can be skipped.
    append(tmp_path, range(14, 15))
    table(tmp_path).delete("n = 2")
    append(tmp_path, range(15, 16))
    said = refusal(spark, tmp_path)
    assert "R574" in said, said
    assert f"version {table(tmp_path).snapshots()[-2].snapshot_id} (" in said, said
    assert len(found(tmp_path)) == 14
    run(spark, tmp_path, options=", skipChangeCommits 'true'")
    assert found(tmp_path) == expected([0, 1, 2, 3, 4, *range(6, 16)])
    # A snapshot that expires before it is read is reported.
    append(tmp_path, range(16, 17))
    append(tmp_path, range(17, 18))
    table(tmp_path).maintenance.expire_snapshots().older_than(datetime.now(UTC) + timedelta(days=1)).commit()
    assert "R576" in refusal(spark, tmp_path, options=", skipChangeCommits 'true'")


@pytest.mark.slow
def test_the_beginning_of_a_stream_and_misfits(spark: SparkSession, tmp_path: Path) -> None:
    created(tmp_path)
    run(spark, tmp_path, "empty")
    for first in (0, 2, 4):
        append(tmp_path, range(first, first + 2))
    run(spark, tmp_path, "empty")
    assert found(tmp_path) == expected(range(6))
    shutil.rmtree(tmp_path / "out")
    second = table(tmp_path).snapshots()[1].snapshot_id
    run(spark, tmp_path, "second", options=f", startingVersion '{second}'")
    assert found(tmp_path) == expected(range(2, 6))
    shutil.rmtree(tmp_path / "out")
    run(spark, tmp_path, "now", now=" FROM NOW")
    append(tmp_path, range(6, 8))
    run(spark, tmp_path, "now", now=" FROM NOW")
    assert found(tmp_path) == expected(range(6, 8))
    (tmp_path / "out").rename(tmp_path / "of now")
    assert "R578" in refusal(spark, tmp_path, "other", options=", startingVersion '12'")
    assert "R577" in refusal(spark, tmp_path, "types", sql=SQL.replace("day DATE", "day INT"))
    shutil.rmtree(tmp_path / "out")
    (tmp_path / "of now").rename(tmp_path / "out")
    with table(tmp_path).update_schema() as change:
        change.rename_column("n", "m")
    assert "R575" in refusal(spark, tmp_path, "now", now=" FROM NOW")
    catalog(tmp_path).drop_table("db.t")
    assert "R576" in refusal(spark, tmp_path, "now", now=" FROM NOW")
    created(tmp_path)
    append(tmp_path, range(2))
    assert "R576" in refusal(spark, tmp_path, "now", now=" FROM NOW"), "another table"


def test_a_static_table_has_the_snapshot_that_is_named(spark: SparkSession, tmp_path: Path) -> None:
    created(tmp_path)
    append(tmp_path, range(2))
    append(tmp_path, range(2, 4))
    first = table(tmp_path).snapshots()[0].snapshot_id
    sql = f"""CREATE STREAM a (n BIGINT) USING delta OPTIONS (path '{{folder}}/in');
    CREATE TABLE t (n INT, s STRING) USING iceberg OPTIONS (table 'db.t', versionAsOf '{first}', {CATALOG});
    CREATE STREAM o (n BIGINT, s STRING) USING delta OPTIONS (path '{{folder}}/out', rowtime.column '');
    CREATE PUMP p AS INSERT INTO o SELECT STREAM a.n, t.s FROM a LEFT JOIN t ON a.n = t.n;"""
    from deltalake import write_deltalake

    write_deltalake(str(tmp_path / "in"), pa.table({"n": [1, 2]}))
    run(spark, tmp_path, sql=sql)
    assert found(tmp_path) == [{"n": 1, "s": "s 1/ä"}, {"n": 2, "s": None}]
