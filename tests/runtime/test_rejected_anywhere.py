"""Refused rows can go wherever a stream can; the sums of the ledger agree in journal, query and progress."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds
import pytest

import rowtime as rt
from rowtime.core.errors import Failure
from rowtime.operators.contract.gates import Verdict
from rowtime.runtime.clock_pass import clock_pass
from rowtime.state.checkpoint import Checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """CREATE STREAM s (ev TIMESTAMP, n INT);
CREATE VIEW sorted AS SELECT STREAM ev AS ROWTIME, n, ev FROM s
  ORDER BY ev WITHIN INTERVAL '1' MINUTE EARLY BEYOND INTERVAL '1' HOUR;
CREATE STREAM kept (n INT, reason STRING) USING parquet OPTIONS (path '{folder}/kept');
CREATE STREAM logged (n INT, reason STRING);
CREATE PUMP to_files AS INSERT INTO kept SELECT STREAM n, reason FROM sorted.rejected;
CREATE PUMP to_a_log AS INSERT INTO logged SELECT STREAM n, reason FROM sorted.rejected;
CREATE PUMP corrected AS INSERT INTO result
  SELECT STREAM n, 'on time' AS how FROM sorted UNION ALL
  SELECT STREAM n, 'corrected' AS how FROM sorted.rejected WHERE reason = 'LATE';
"""
MINUTES = [10, 12, 11, 5, None, 200, 14, 3, 15]
REFUSED = {3: "LATE", 4: "NULL_ROWTIME", 5: "EARLY", 7: "LATE"}


def test_refused_rows_go_to_files_to_a_stream_and_into_a_result(spark: SparkSession, tmp_path: Path) -> None:
    got: list[tuple[int, str]] = []
    progress: Counter[str] = Counter()
    for start, stop in ((0, 4), (4, 9)):
        pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(SQL.replace("{folder}", str(tmp_path)))
        pipeline.sink("result", lambda b: got.extend((r["n"], r["how"]) for r in b.table().to_pylist() if b.count))
        for stream in pipeline.compile().defines:
            pipeline.home.define(stream.name, stream.as_json(), replace=True)
        with rt.writer("s", home=tmp_path / "home") as log:
            log.insert([{"n": n, "ev": _time(MINUTES[n])} for n in range(start, stop)])
            if stop == len(MINUTES):
                log.end()
        query = pipeline.run_available(tmp_path / "check")
        for tick in query.recentProgress:
            progress.update(tick["observedMetrics"].get("sorted", {}))
    assert {row["n"]: row["reason"] for row in ds.dataset(tmp_path / "kept").to_table().to_pylist()} == REFUSED
    assert _logged(spark, tmp_path) == REFUSED
    on_time = [(n, "on time") for n in range(9) if n not in REFUSED]
    assert sorted(got) == sorted([*on_time, *((n, "corrected") for n, why in REFUSED.items() if why == "LATE")])
    expected = {"in": 9, "accepted": 5, "LATE": 2, "NULL_ROWTIME": 1, "EARLY": 1}
    assert query.ledger["sorted"] == expected
    assert {reason: count for reason, count in progress.items() if count} == expected
    last = Checkpoint(tmp_path / "check").journal.last()
    assert last is not None
    assert last["totals"]["sorted"] == expected


@pytest.mark.parametrize("wrong", [{"in": 4}, {"accepted": 2}, {"LATE": 0}])
def test_a_ledger_that_does_not_add_up_stops_the_tick_before_its_commit(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: dict[str, int]
) -> None:
    judge = clock_pass.judge

    def misjudged(*given: Any) -> Verdict:
        verdict = judge(*given)
        assert verdict.counts == {"in": 3, "accepted": 1, "LATE": 1, "NULL_ROWTIME": 1}
        return replace(verdict, counts={**verdict.counts, **wrong})

    monkeypatch.setattr(clock_pass, "judge", misjudged)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("2024-01-01 10:00:00,1\n2024-01-01 09:00:00,2\n,3\n")
    sql = f"""CREATE STREAM s (ev TIMESTAMP, n INT) USING csv OPTIONS (path '{tmp_path}/in');
      CREATE VIEW v AS SELECT STREAM ev AS ROWTIME, n FROM s ORDER BY ev WITHIN INTERVAL '1' MINUTE;
      SELECT STREAM n FROM v"""
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(sql).sink("result", lambda _: None)
    with pytest.raises(Failure, match="R901 the ledger of v does not add up"):
        pipeline.run_available(tmp_path / "check", end=True)
    assert Checkpoint(tmp_path / "check").journal.last() is None


def _logged(spark: SparkSession, folder: Path) -> dict[int, str]:
    """The rows that another script reads from the stream that the pump has filled."""
    found: dict[int, str] = {}
    reader = rt.Pipeline(spark, home=folder / "home").sql("SELECT STREAM n, reason FROM logged")
    reader.sink("result", lambda b: found.update((r["n"], r["reason"]) for r in b.table().to_pylist() if b.count))
    reader.run_available(folder / "other")
    return found


def _time(minute: int | None) -> str | None:
    return None if minute is None else f"2024-01-01 {10 + minute // 60:02}:{minute % 60:02}:00"


def test_the_wall_clock_limit_uses_the_recorded_arrival(spark: SparkSession, tmp_path: Path) -> None:
    limit = "CURRENT_ROW_TIMESTAMP + INTERVAL '5' MINUTES"
    sql = f"""CREATE STREAM s (ev TIMESTAMP, n INT);
      CREATE PUMP good AS INSERT INTO good SELECT STREAM n FROM s WHERE ev < {limit};
      CREATE PUMP bad AS INSERT INTO bad SELECT STREAM n FROM s WHERE ev >= {limit};"""
    for again in range(2):  # a replay into another checkpoint gives the same rows
        got: dict[str, list[int]] = {"good": [], "bad": []}
        pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(sql)
        for name, kept in got.items():
            pipeline.sink(name, lambda b, kept=kept: kept.extend(b.table()["n"].to_pylist() if b.count else []))
        if not again:
            for stream in pipeline.compile().defines:
                pipeline.home.define(stream.name, stream.as_json(), replace=True)
            with rt.writer("s", home=tmp_path / "home") as log:
                log.insert([{"n": n, "ev": at} for n, at in enumerate(("2024-01-01", "2199-01-01", "2024-01-02"))])
                log.end()
        pipeline.run_available(tmp_path / f"check{again}")
        assert got == {"good": [0, 2], "bad": [1]}


def test_the_limit_of_arrival_refuses_the_first_row_too(spark: SparkSession, tmp_path: Path) -> None:
    sql = """CREATE STREAM s (ev TIMESTAMP, n INT);
      CREATE VIEW v AS SELECT STREAM ev AS ROWTIME, n FROM s
        ORDER BY ev WITHIN INTERVAL '1' HOUR EARLY BEYOND INTERVAL '5' MINUTE AFTER ARRIVAL;
      SELECT STREAM n FROM v; CREATE PUMP bad AS INSERT INTO bad SELECT STREAM n, reason FROM v.rejected"""
    got: list[int] = []
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(sql).sink("bad", lambda _: None)
    pipeline.sink("result", lambda b: got.extend(b.table()["n"].to_pylist() if b.count else []))
    for stream in pipeline.compile().defines:
        pipeline.home.define(stream.name, stream.as_json(), replace=True)
    with rt.writer("s", home=tmp_path / "home") as log:
        log.insert([{"n": n, "ev": at} for n, at in enumerate(("2199-01-01", "2024-01-01", "2024-01-02"))])
    query = pipeline.run_available(tmp_path / "check")
    assert got == [1]
    assert query.ledger["v"] == {"in": 3, "accepted": 2, "EARLY": 1}
    (found,) = rt.readmit(tmp_path / "check", home=tmp_path / "home")
    assert (found.admitted, found.early) == (0, 1)
