"""Refused rows and the ledger in lake tables of both formats: each row once, with the raw text of malformed records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

import rowtime as rt
from rowtime.api.verification import verify
from rowtime.runtime.sinks.delta_log import DeltaLog
from rowtime.runtime.sinks.iceberg_table import IcebergTable
from tests.lakes import deaths

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

DELTA = "USING delta OPTIONS (path '{folder}/{name}')"
ICEBERG = """USING iceberg OPTIONS (catalog 'c', table 'db.{name}', catalog.type 'sql',
  catalog.uri 'sqlite:///{folder}/c.db', catalog.warehouse 'file://{folder}/lake')"""
LAKES = {"delta": (DELTA, DeltaLog), "iceberg": (ICEBERG, IcebergTable)}
SQL = """CREATE STREAM clicks (n BIGINT, at TIMESTAMP) USING json OPTIONS (path '{folder}/in');
CREATE VIEW sorted AS SELECT STREAM at AS ROWTIME, n FROM clicks ORDER BY at WITHIN INTERVAL '1' MINUTE;
CREATE STREAM o (n BIGINT) {o};
CREATE STREAM refused (gate STRING, reason STRING, n BIGINT, raw_record STRING) {refused};
CREATE STREAM audit (tick BIGINT, gate STRING, rows_in BIGINT, accepted BIGINT, late BIGINT, malformed BIGINT) {audit};
CREATE PUMP p AS INSERT INTO o SELECT STREAM n FROM sorted;
CREATE PUMP undecoded AS INSERT INTO refused SELECT STREAM 'clicks' AS gate, reason, n, raw_record FROM clicks.rejected;
CREATE PUMP too_late AS INSERT INTO refused SELECT STREAM 'sorted' AS gate, reason, n, raw_record FROM sorted.rejected;
CREATE PUMP told AS INSERT INTO audit SELECT STREAM tick, gate, rows_in, accepted, late, malformed FROM LEDGER;"""


def rows(folder: Path, kind: str, name: str) -> list[dict[str, Any]]:
    if kind == "delta":
        found: pa.Table = DeltaTable(str(folder / name)).to_pyarrow_table()
    else:
        catalog = load_catalog("c", type="sql", uri=f"sqlite:///{folder}/c.db", warehouse=f"file://{folder}/lake")
        found = catalog.load_table(f"db.{name}").scan().to_arrow()
    return [*found.to_pylist()]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_refused_rows_and_counts_are_in_the_tables_once_whatever_dies(
    spark: SparkSession, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    form, log = LAKES[kind]
    tables = {name: form.format(folder=tmp_path, name=name) for name in ("o", "refused", "audit")}
    made = rt.Pipeline(spark, home=tmp_path / "home").sql(SQL.format(folder=tmp_path, **tables))
    (tmp_path / "in").mkdir()
    expected = []
    for number, point in enumerate(("before journal", "after journal", "first commit", "second commit")):
        good = [json.dumps({"n": number, "at": f"2024-01-01T{number + 1:02}:00:00Z"})]
        late = [json.dumps({"n": 100 + number, "at": f"2024-01-01T{number:02}:30:00Z"})]
        broken = f'{{"n": {number}, "at": "no time'
        (tmp_path / "in" / f"{number}.json").write_text("\n".join([*good, broken, *late]))
        deaths.dies_in(made._engine(tmp_path / "check", rt.Limits(), ends=False), log, point, monkeypatch)
        query = made.run_available(tmp_path / "check")
        expected += [("clicks", "MALFORMED", None, broken), ("sorted", "LATE", 100 + number, None)]
        found = [(row["gate"], row["reason"], row["n"], row["raw_record"]) for row in rows(tmp_path, kind, "refused")]
        assert sorted(found, key=str) == sorted(expected, key=str), point
    told = rows(tmp_path, kind, "audit")
    assert len({(row["tick"], row["gate"]) for row in told}) == len(told)
    for gate, reason in (("clicks", "malformed"), ("sorted", "late")):
        mine = [row for row in told if row["gate"] == gate]
        assert sum(row["rows_in"] for row in mine) == query.ledger[gate]["in"] == 12 - 4 * (gate == "sorted")
        assert sum(row[reason] for row in mine) == query.ledger[gate][reason.upper()] == 4
    again = verify(tmp_path / "check", spark=spark, home=tmp_path / "home")
    assert again.equal, again
