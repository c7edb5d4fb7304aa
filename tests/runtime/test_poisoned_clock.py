"""A record dated 2099: with the guard no good row is lost; without it, `waiting` names the record."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.runtime.clock_pass import gate_verdicts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """CREATE STREAM s (ev TIMESTAMP, n INT);
SELECT STREAM ev AS ROWTIME, n FROM s ORDER BY ev WITHIN INTERVAL '30' SECOND"""
MINUTES = [f"2024-01-01 10:{n:02}:00" for n in range(20)]
POISONED = [*MINUTES[:8], "2099-01-01 00:00:00", *MINUTES[8:]]


def run(spark: SparkSession, folder: Path, sql: str, times: list[str], cuts: list[int]) -> tuple[rt.Query, list[int]]:
    got: list[int] = []
    before = 0
    for upto in cuts:
        pipeline = rt.Pipeline(spark, home=folder / "home").sql(sql)
        pipeline.sink("result", lambda batch: got.extend(batch.table()["n"].to_pylist() if batch.count else []))
        for stream in pipeline.compile().defines:
            pipeline.home.define(stream.name, stream.as_json(), replace=True)
        with rt.writer("s", home=folder / "home", writer="phone") as log:
            log.insert([{"ev": times[n], "n": n} for n in range(before, upto)])
        query = pipeline.run_available(folder / "check")
        before = upto
    return query, got


@pytest.mark.parametrize("cuts", [[21], [5, 9, 12, 21]], ids=str)
@pytest.mark.parametrize("piece", [pytest.param(2, marks=pytest.mark.slow), gate_verdicts.PIECE])
def test_without_the_guard_the_record_is_named(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cuts: list[int], piece: int
) -> None:
    monkeypatch.setattr(gate_verdicts, "PIECE", piece)
    query, _ = run(spark, tmp_path, SQL, POISONED, cuts)
    assert query.ledger["query"]["LATE"] == 12
    found, *_ = query.waiting()
    assert str(found).startswith(
        "row 8 of writer phone of s raised the clock of query from 2024-01-01 10:07:00 to 2099-01-01 00:00:00, "
        "and 12 of the 12 rows since were LATE; if it is wrong, let a guard refuse it: write "
    )
    assert found.as_json()["position"] == 8


@pytest.mark.parametrize("cuts", [[21], [5, 9, 12, 21]], ids=str)
@pytest.mark.parametrize(
    "guard", ["", " EARLY BEYOND INTERVAL '40000' DAY"], ids=["alone", "with a guard that is too wide"]
)
def test_the_record_is_named_in_large_ticks_too(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cuts: list[int], guard: str
) -> None:
    csv, at = tmp_path / "in", 0
    csv.mkdir()
    for number, upto in enumerate(cuts):  # files that only Spark can read
        (csv / f"{number}.csv").write_text("".join(f"{POISONED[n]},{n}\n" for n in range(at, upto)))
        at = upto
    sql = SQL.replace("(ev TIMESTAMP, n INT)", f"(ev TIMESTAMP, n INT) USING csv OPTIONS (path '{csv}')") + guard
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(sql).sink("result", lambda _: None)
    query = pipeline.run_available(tmp_path / "check", end=True, limits=rt.Limits(files=1))
    assert query.ledger["query"] == {"in": 21, "accepted": 9, "LATE": 12}
    found, *_ = query.waiting()
    assert "from 2024-01-01 10:07:00 to 2099-01-01 00:00:00, and 12 of the 12 rows since were LATE" in str(found)
    place = found.as_json()["position"]
    files = (tmp_path / "check").rglob("rejected/**/*.parquet")
    refused = [position for file in files for position in pq.read_table(file)["position"].to_pylist()]
    assert place < min(refused)


@pytest.mark.parametrize("cuts", [[21], [5, 9, 12, 21]], ids=str)
def test_with_the_guard_all_good_rows_are_kept(spark: SparkSession, tmp_path: Path, cuts: list[int]) -> None:
    query, got = run(spark, tmp_path, SQL + " EARLY BEYOND INTERVAL '1' HOUR", POISONED, cuts)
    assert query.ledger["query"] == {"in": 21, "accepted": 20, "EARLY": 1}
    assert got == [n for n in range(20) if n != 8], "all but the last, which the tolerance holds"
    assert all(found.kind != "poisoned clock" for found in query.waiting())


def test_a_quiet_night_does_not_poison_the_clock(spark: SparkSession, tmp_path: Path) -> None:
    morning = [f"2024-01-02 10:{n:02}:00" for n in range(6)]
    query, _ = run(spark, tmp_path, SQL, [*MINUTES[:6], *morning, MINUTES[6], *MINUTES[7:9]], [8, 15])
    assert query.ledger["query"]["LATE"] == 3
    assert all(found.kind != "poisoned clock" for found in query.waiting())
