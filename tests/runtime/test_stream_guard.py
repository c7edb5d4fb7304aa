"""EARLY BEYOND of a stream: one row from the future makes no other row late, whatever the source."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.core.time import to_micros

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(8)

LOG = "CREATE STREAM s (n INT) EARLY BEYOND INTERVAL '1' HOUR;"
BOTH = LOG + (
    "CREATE PUMP kept AS INSERT INTO good SELECT STREAM n FROM s;"
    "CREATE PUMP refused AS INSERT INTO bad SELECT STREAM n, reason, refused_by FROM s.rejected;"
)
FUTURE = "2099-01-01 00:00:00"


class Kept:
    """The results of the two pumps: numbers of accepted rows, and (number, reason) of refused ones."""

    def __init__(self) -> None:
        self.good: list[int] = []
        self.rows: list[dict[str, Any]] = []
        self.bad: list[tuple[int, str]] = []

    def pipeline(self, spark: SparkSession, folder: Path, sql: str = BOTH) -> rt.Pipeline:
        pipeline = rt.Pipeline(spark, home=folder / "home").sql(sql)
        pipeline.sink("good", self._accepted)
        return pipeline.sink("bad", self._refused)

    def _accepted(self, batch: rt.Batch) -> None:
        rows = batch.table().to_pylist() if batch.count else []
        self.rows += rows
        self.good += [row["n"] for row in rows]

    def _refused(self, batch: rt.Batch) -> None:
        rows = batch.table().to_pylist() if batch.count else []
        self.bad.extend((row["n"], row["reason"]) for row in rows)


def minutes(count: int) -> list[str]:
    return [f"2024-01-01 10:{minute:02}:00" for minute in range(count)]


def send(folder: Path, times: Sequence[str | None], first: int = 0, writer: str = "phone") -> None:
    with rt.writer("s", home=folder / "home", writer=writer) as log:
        log.insert([{"n": n, **({"rowtime": at} if at else {})} for n, at in enumerate(times, first)])


def defined(pipeline: rt.Pipeline) -> rt.Pipeline:
    for stream in pipeline.compile().defines:
        pipeline.home.define(stream.name, stream.as_json(), replace=True)
    return pipeline


@pytest.mark.parametrize("cuts", [[9], [1, 3, 4, 6, 9]], ids=["one tick", "five starts"])
def test_early_rows_of_a_log(spark: SparkSession, tmp_path: Path, cuts: list[int]) -> None:
    times = [*minutes(3), FUTURE, *minutes(9)[3:6], FUTURE, "2024-01-01 11:05:00"]
    kept, before = Kept(), 0
    for upto in cuts:
        pipeline = defined(kept.pipeline(spark, tmp_path))
        send(tmp_path, times[before:upto], before)
        query = pipeline.run_available(tmp_path / "check")
        before = upto
    assert kept.good == [0, 1, 2, 4, 5, 6, 8]
    assert kept.bad == [(3, "EARLY"), (7, "EARLY")]
    assert query.ledger["s"] == {"in": 9, "accepted": 7, "EARLY": 2}
    assert query.bounds["s"] == "2024-01-01 11:05:00"


def test_the_bounds_of_a_writer_count_but_make_no_row_the_first(spark: SparkSession, tmp_path: Path) -> None:
    kept = Kept()
    pipeline = defined(kept.pipeline(spark, tmp_path))
    with rt.writer("s", home=tmp_path / "home") as log:
        log.set_rowtime_bound("2000-01-01")
        log.insert([{"n": 0, "rowtime": "2024-01-01 10:00:00"}])
        log.set_rowtime_bound("2024-01-01 12:00:00")  # the re-sync allows half past twelve
        log.insert([{"n": 1, "rowtime": "2024-01-01 12:30:00"}, {"n": 2, "rowtime": "2024-01-01 13:30:01"}])
    pipeline.run_available(tmp_path / "check")
    assert (kept.good, kept.bad) == ([0, 1], [(2, "EARLY")])


def test_times_of_arrival_are_never_early_but_move_the_clock(spark: SparkSession, tmp_path: Path) -> None:
    kept = Kept()
    pipeline = defined(kept.pipeline(spark, tmp_path))
    send(tmp_path, ["2024-01-01 10:00:00", None, "2099-01-01 00:00:00", None])
    send(tmp_path, ["2024-01-01 10:00:00"], 4, writer="slow")
    with rt.writer("s", home=tmp_path / "home", writer="slow") as log:
        log.set_rowtime_bound("2199-01-01")
    pipeline.run_available(tmp_path / "check")
    assert (sorted(kept.good), kept.bad) == ([0, 1, 3, 4], [(2, "EARLY")])
    assert max(row["rowtime"].year for row in kept.rows) < 2099  # a later arrival is not raised to it


def test_early_rows_come_back_with_their_rowtime(spark: SparkSession, tmp_path: Path) -> None:
    kept = Kept()
    pipeline = defined(kept.pipeline(spark, tmp_path))
    send(tmp_path, ["2024-01-01 10:00:00", "2024-01-01 11:30:00", "2024-01-01 10:20:00"])
    pipeline.run_available(tmp_path / "check")
    assert kept.bad == [(1, "EARLY")]
    (found,) = rt.readmit(tmp_path / "check", home=tmp_path / "home")
    assert (found.gate, found.stream, found.admitted, found.early) == ("s", "s", 0, 1)
    send(tmp_path, ["2024-01-01 11:15:00"], 3)
    kept.pipeline(spark, tmp_path).run_available(tmp_path / "check")
    assert rt.readmit(tmp_path / "check", home=tmp_path / "home")[0].admitted == 1
    send(tmp_path, ["2024-01-01 11:40:00"], 4)
    kept.pipeline(spark, tmp_path).run_available(tmp_path / "check")
    assert kept.good == [0, 2, 3, 1, 4]


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_early_rows_of_files(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    times = [*minutes(3), FUTURE, *minutes(6)[3:], FUTURE]
    folder = tmp_path / "in"
    folder.mkdir()
    for number, part in enumerate((times[:4], times[4:])):
        rows = [{"n": number * 4 + n, "at": at} for n, at in enumerate(part)]
        path = folder / f"{number}.{kind}"
        if kind == "parquet":
            stamps = pa.array([to_micros(at) for at in part], pa.int64()).cast(pa.timestamp("us", "UTC"))
            pq.write_table(pa.table({"n": pa.array([row["n"] for row in rows], pa.int32()), "at": stamps}), path)
        elif kind == "csv":
            path.write_text("".join(f"{row['n']},{row['at']}\n" for row in rows))
        else:
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.utime(path, (number + 1, number + 1))
    stream = f"""CREATE STREAM s (n INT, at TIMESTAMP) USING {kind} OPTIONS (path '{folder}', rowtime.column 'at')
      EARLY BEYOND INTERVAL '1' HOUR;"""
    kept = Kept()
    query = kept.pipeline(spark, tmp_path, BOTH.replace(LOG, stream)).run_available(tmp_path / "check")
    assert (kept.good, kept.bad) == ([0, 1, 2, 4, 5, 6], [(3, "EARLY"), (7, "EARLY")])
    assert query.ledger["s"] == {"in": 8, "accepted": 6, "EARLY": 2}


@pytest.mark.slow
@pytest.mark.parametrize("ordered", [True, False], ids=["with an order", "as sets"])
def test_early_rows_of_a_streaming_dataframe(spark: SparkSession, tmp_path: Path, ordered: bool) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    times = [minutes(1)[0], "2024-01-01 10:30:00", FUTURE, "2024-01-01 11:10:00"]
    for n, at in enumerate(times):
        path = folder / f"{n}.json"
        path.write_text(json.dumps({"n": n, "at": at}) + "\n")
        os.utime(path, (n + 1, n + 1))
    frame = spark.readStream.schema("n INT, at TIMESTAMP").option("maxFilesPerTrigger", "1").json(str(folder))
    names = {"rowtime": "at", **({"position": "n"} if ordered else {"unordered": True})}
    kept = Kept()
    pipeline = kept.pipeline(spark, tmp_path, BOTH.replace(LOG, ""))
    pipeline.source("s", frame, **names, early_beyond=timedelta(hours=1)).run_available(tmp_path / "check")
    assert (kept.good, kept.bad) == ([0, 1, 3], [(2, "EARLY")])


VOTED = BOTH.replace("'1' HOUR;", "'1' HOUR RESYNC AFTER 2 ROWS;", 1)


@pytest.mark.parametrize("cuts", [[8], [1, 3, 4, 5, 8]], ids=["one tick", "five starts"])
def test_a_first_row_from_the_future_refuses_no_later_row(spark: SparkSession, tmp_path: Path, cuts: list[int]) -> None:
    times = [FUTURE, *minutes(2), "2024-01-01 12:00:00", *minutes(4)[2:], "2024-01-01 13:30:00", "2024-01-01 13:31:00"]
    kept, before = Kept(), 0
    for upto in cuts:
        pipeline = defined(kept.pipeline(spark, tmp_path, VOTED))
        send(tmp_path, times[before:upto], before)
        query = pipeline.run_available(tmp_path / "check")
        before = upto
    (wait,) = (one for one in query.waiting() if one.operator == "s")
    assert (wait.kind, wait.held, wait.writer) == ("stream", 2, "phone")
    assert wait.release == "the rows after its row 6 decide whether that row counts: send more"
    assert kept.good == [1, 2, 4, 5]
    assert kept.bad == [(0, "EARLY"), (3, "EARLY")]
    with rt.writer("s", home=tmp_path / "home", writer="phone") as log:
        log.insert([{"n": 8, "rowtime": "2024-01-01 13:32:00"}])
        log.set_rowtime_bound("2024-01-01 13:40:00")
    query = kept.pipeline(spark, tmp_path, VOTED).run_available(tmp_path / "check")
    assert kept.good == [1, 2, 4, 5, 6, 7, 8]
    assert query.bounds["s"] == "2024-01-01 13:40:00"
    assert query.ledger["s"] == {"in": 9, "accepted": 7, "EARLY": 2}


def test_the_end_of_a_writer_decides_its_open_rows(spark: SparkSession, tmp_path: Path) -> None:
    kept = Kept()
    pipeline = defined(kept.pipeline(spark, tmp_path, VOTED))
    send(tmp_path, minutes(3))
    send(tmp_path, ["2024-01-01 15:00:00"], 3)
    pipeline.run_available(tmp_path / "check")
    assert (kept.good, kept.bad) == ([0, 1, 2], [])
    with rt.writer("s", home=tmp_path / "home", writer="phone") as log:
        log.end()
    query = kept.pipeline(spark, tmp_path, VOTED).run_available(tmp_path / "check")
    assert (kept.good, kept.bad, query.bounds["s"]) == ([0, 1, 2], [(3, "EARLY")], "+∞")


def test_rows_that_are_readmitted_need_no_others(spark: SparkSession, tmp_path: Path) -> None:
    kept = Kept()
    pipeline = defined(kept.pipeline(spark, tmp_path, VOTED))
    later = [f"2024-01-01 10:{minute}:00" for minute in (50, 52, 58)]
    send(tmp_path, [*minutes(3), "2024-01-01 11:55:00", *later])
    pipeline.run_available(tmp_path / "check")
    assert kept.bad == [(3, "EARLY")]
    (found,) = rt.readmit(tmp_path / "check", home=tmp_path / "home")
    assert (found.gate, found.admitted) == ("s", 1)
    kept.pipeline(spark, tmp_path, VOTED).run_available(tmp_path / "check")
    send(tmp_path, ["2024-01-01 11:56:00"], 7)
    kept.pipeline(spark, tmp_path, VOTED).run_available(tmp_path / "check")
    assert kept.good == [0, 1, 2, 4, 5, 6, 3, 7]


def test_a_rowtime_far_above_its_arrival_is_early(spark: SparkSession, tmp_path: Path) -> None:
    sql = BOTH.replace("'1' HOUR;", "'5' MINUTE AFTER ARRIVAL;", 1)
    kept = Kept()
    pipeline = defined(kept.pipeline(spark, tmp_path, sql))
    send(tmp_path, [FUTURE, *minutes(2), None, FUTURE, None])
    query = pipeline.run_available(tmp_path / "check")
    assert (kept.good, kept.bad) == ([1, 2, 3, 5], [(0, "EARLY"), (4, "EARLY")])
    assert query.ledger["s"] == {"in": 6, "accepted": 4, "EARLY": 2}
    assert max(row["rowtime"].year for row in kept.rows) < 2099


def test_a_streaming_dataframe_has_the_same_limits(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for n, at in enumerate([FUTURE, *minutes(4), "2024-01-01 12:30:00", "2199-01-01 00:00:00", *minutes(6)[4:]]):
        (folder / f"{n}.json").write_text(json.dumps({"n": n, "at": at}) + "\n")
        os.utime(folder / f"{n}.json", (n + 1, n + 1))
    frame = spark.readStream.schema("n INT, at TIMESTAMP").option("maxFilesPerTrigger", "2").json(str(folder))
    limits = {"early_beyond": timedelta(hours=1), "resync_after": 2, "early_beyond_arrival": timedelta(days=36500)}
    kept = Kept()
    pipeline = kept.pipeline(spark, tmp_path, BOTH.replace(LOG, ""))
    pipeline.source("s", frame, rowtime="at", position="n", **limits).run_available(tmp_path / "check")
    assert kept.good == [1, 2, 3, 4, 7, 8]
    assert sorted(kept.bad) == [(0, "EARLY"), (5, "EARLY"), (6, "EARLY")]
    with pytest.raises(rt.Refused, match="R190"):
        rt.Pipeline(spark).sql("SELECT STREAM n FROM s").source("s", frame, unordered=True, resync_after=2).compile()


PUMPED = """CREATE STREAM raw (n INT);
CREATE STREAM s (n INT) EARLY BEYOND INTERVAL '1' HOUR;
CREATE PUMP fill AS INSERT INTO s SELECT STREAM n FROM raw;
CREATE PUMP kept AS INSERT INTO good SELECT STREAM n FROM s;
CREATE PUMP refused AS INSERT INTO bad SELECT STREAM n, reason, refused_by FROM s.rejected;"""


@pytest.mark.parametrize("cuts", [[6], [2, 3, 6]], ids=["one tick", "three starts"])
def test_rows_of_a_pump_in_the_same_script_are_judged_too(spark: SparkSession, tmp_path: Path, cuts: list[int]) -> None:
    times = [*minutes(2), "2024-01-01 12:00:00", "2024-01-01 12:01:00", "2024-01-01 12:02:00", FUTURE]
    kept, before = Kept(), 0
    for upto in cuts:
        pipeline = defined(kept.pipeline(spark, tmp_path, PUMPED))
        with rt.writer("raw", home=tmp_path / "home", writer="phone") as log:
            log.insert([{"n": n, "rowtime": times[n]} for n in range(before, upto)])
        query = pipeline.run_available(tmp_path / "check")
        before = upto
    assert kept.bad == [(2, "EARLY"), (3, "EARLY"), (4, "EARLY"), (5, "EARLY")]
    assert kept.good == [0, 1]
    assert query.ledger["s.fill"] == {"in": 6, "accepted": 2, "EARLY": 4}
    with rt.writer("s", home=tmp_path / "home", writer="other") as log:
        log.insert([{"n": 9, "rowtime": "2024-01-01 11:30:00"}])
    kept.pipeline(spark, tmp_path, PUMPED).run_available(tmp_path / "check")
    found = {
        one.gate: (one.stream, one.admitted, one.early)
        for one in rt.readmit(tmp_path / "check", home=tmp_path / "home")
    }
    assert found == {"s": ("s", 0, 0), "s.fill": ("s", 3, 1)}
