"""Reference data under the bounds of a data stream: lateness depends on when items arrived, not on ticks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.core.time import END, to_micros
from rowtime.state.checkpoint import Checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(8)

SQL = """
CREATE STREAM data (at TIMESTAMP, k INT) EVENT SHAPE POINT (at){generated};
CREATE STREAM prices (since TIMESTAMP, until TIMESTAMP, k INT, price INT)
  EVENT SHAPE EDGE (since, until) ON LATE {late} BOUND FROM data{delay};
CREATE STREAM answers (start TIMESTAMP, stop TIMESTAMP, k INT, price INT)
  USING parquet OPTIONS (path '{folder}/answers');
CREATE STREAM lost (price INT, reason STRING, writer STRING, position BIGINT)
  USING parquet OPTIONS (path '{folder}/lost');
CREATE PUMP p AS INSERT INTO answers (start, stop, k, price)
  SELECT STREAM d.k AS k, p.price AS price FROM data AS d JOIN prices AS p ON d.k = p.k EMIT INTERVALS (start, stop);
CREATE PUMP q AS INSERT INTO lost SELECT STREAM price, reason, writer, position FROM prices.rejected;
"""
Step = tuple[str, str, Any]  # stream, writer, a row or a bound


def _point(at: int, writer: str = "main") -> Step:
    return ("data", writer, {"at": at, "k": 1})


def _price(since: int, price: int, *, until: int | None = None, writer: str = "main") -> Step:
    return ("prices", writer, {"since": since, "until": until, "k": 1, "price": price})


def _bound(at: int, writer: str = "main") -> Step:
    return ("data", writer, at)


# The second price comes after the bound of 6, the end of the first one after that of 9.
STEPS = [_price(0, 10), _point(5), _bound(6), _price(3, 20), _point(8), _bound(9), _price(0, 10, until=12), _point(11)]
ENDS = [("prices", "main", END), ("data", "main", END)]


class Played:
    """A pipeline over both streams, in parts: one run for each."""

    def __init__(self, spark: SparkSession, folder: Path, **said: str) -> None:
        self.folder, self.checkpoint = folder, folder / "checkpoint"
        sql = SQL.format(**{"late": "ADJUST", "delay": "", "generated": "", "folder": folder, **said})
        self.spark, self.home = spark, folder / "home"
        self.pipeline = rt.Pipeline(spark, home=self.home).sql(sql)
        self.query = self.pipeline.run_available(self.checkpoint)

    def play(self, *pieces: Sequence[Step]) -> Played:
        for piece in pieces:
            for stream, name, what in piece:
                with rt.writer(stream, home=self.home, writer=name) as writer:
                    if isinstance(what, int):
                        writer.set_rowtime_bound(what)
                    else:
                        writer.insert([what])
            self.query = self.pipeline.run_available(self.checkpoint)
        return self

    def rows(self, table: str, *names: str) -> list[tuple[Any, ...]]:
        """The rows of a directory, sorted; times in µs."""
        files = sorted((self.folder / table).glob("*.parquet"))
        found = [row for file in files for row in pq.read_table(file, partitioning=None).to_pylist()]
        return sorted(tuple(map(_plain, (row[name] for name in names))) for row in found)

    @property
    def answers(self) -> list[tuple[Any, ...]]:
        return self.rows("answers", "start", "stop", "price")

    @property
    def ticks(self) -> int:
        entry = Checkpoint(self.checkpoint).journal.last()
        assert entry is not None
        return int(entry["tick"])

    def is_verified(self) -> bool:
        return rt.verify(self.checkpoint, spark=self.spark, home=self.home).equal


def _plain(value: Any) -> Any:
    return to_micros(value) if hasattr(value, "tzinfo") else value


@pytest.mark.parametrize("cut", [1, 3, len(STEPS)])
def test_lateness_depends_on_when_items_arrived(spark: SparkSession, tmp_path: Path, cut: int) -> None:
    pieces = [STEPS[n : n + cut] for n in range(0, len(STEPS), cut)]
    played = Played(spark, tmp_path).play(*pieces, ENDS)
    assert played.answers == [(5, 6, 10), (8, 9, 10), (8, 9, 20), (11, 12, 10), (11, 12, 20)]
    assert played.query.ledger["prices.events"] == {"in": 3, "accepted": 3, "ADJUSTED": 1}
    assert played.is_verified()


def test_a_delay_accepts_rows_that_are_behind_by_less(spark: SparkSession, tmp_path: Path) -> None:
    played = Played(spark, tmp_path, late="DROP", delay=" DELAY INTERVAL '3' MICROSECOND")
    played.play([*STEPS, _price(5, 30), _price(6, 40)], ENDS)
    assert [price for *_, price in played.answers if price > 20] == [40, 40]
    assert played.rows("lost", "price", "reason", "writer", "position") == [(30, "LATE", "main", 3)]


def test_a_silent_stream_holds_nothing_up(spark: SparkSession, tmp_path: Path) -> None:
    played = Played(spark, tmp_path).play([_price(0, 10)], [_point(5), _bound(7)])
    assert played.answers == [(5, 6, 10)]
    played.play([_point(8), _bound(10)])
    assert played.answers == [(5, 6, 10), (8, 9, 10)]
    ticks = played.ticks
    played.play([])  # only the wall clock has advanced, which releases nothing
    assert played.ticks == ticks


def test_bounds_generated_by_rows_are_imported(spark: SparkSession, tmp_path: Path) -> None:
    played = Played(spark, tmp_path, late="DROP", generated=" BOUND EVERY 2 ROWS")
    steps = [_price(0, 10), _point(5), _price(1, 20), _point(7), _price(6, 30), _price(7, 40), _point(8)]
    played.play(steps[:4], steps[4:], ENDS)
    assert played.rows("lost", "price", "reason") == [(30, "LATE")]
    assert [price for start, _, price in played.answers if start == 8] == [10, 20, 40]


def test_the_least_bound_of_all_writers_is_imported(spark: SparkSession, tmp_path: Path) -> None:
    played = Played(spark, tmp_path, late="DROP")
    steps = [_point(1), _point(2, "b"), _price(0, 10), _bound(9), _price(3, 20), _bound(5, "b"), _price(4, 30)]
    played.play(steps, [*ENDS, ("data", "b", END)])
    assert played.rows("lost", "price", "reason", "position") == [(30, "LATE", 2)]


@pytest.mark.slow
def test_rows_with_an_arrival_time_are_ordered_by_it(spark: SparkSession, tmp_path: Path) -> None:
    played = Played(spark, tmp_path, late="DROP")
    told = [("prices", 1, {"since": 0, "until": None, "k": 1, "price": 10}), ("data", 2, {"at": 5, "k": 1})]
    told += [("prices", 4, {"since": 3, "until": None, "k": 1, "price": 20}), ("data", 3, {"at": 6, "k": 1})]
    rows = [(stream, "main", {**row, "rowtime": at}) for stream, at, row in told]
    played.play(rows[:3], [_bound(6)], rows[3:], [_bound(7)], ENDS)
    # The bound of 6 is that of the row before it, at 2, so it is before the price of 4, which was read first.
    assert played.rows("lost", "price", "reason") == [(20, "LATE")]
    assert played.answers == [(5, 6, 10), (6, 7, 10)]


def test_writers_that_come_and_leave(spark: SparkSession, tmp_path: Path) -> None:
    played = Played(spark, tmp_path, late="DROP").play([_price(0, 10), _point(5), _bound(6), _point(5, "b")])
    played.play([_price(4, 20)])
    with rt.writer("data", home=played.home, writer="b") as writer:
        writer.close(leave=True)
    played.play([_bound(8)], [_price(7, 30)], [_point(9, "b")], [_price(6, 40), *ENDS, ("data", "b", END)])
    assert played.rows("lost", "price") == [(30,), (40,)]


DIRECTORIES = """
CREATE STREAM data (at TIMESTAMP, k INT) USING parquet OPTIONS (path '{0}/data') EVENT SHAPE POINT (at)
  BOUND EVERY 1 ROW;
CREATE STREAM prices (since TIMESTAMP, k INT, price INT) USING csv OPTIONS (path '{0}/prices')
  EVENT SHAPE POINT (since) BOUND FROM data DELAY INTERVAL '1' MINUTE;
SELECT STREAM k, price FROM prices EMIT POINTS (since);
"""


def test_files_arrive_at_their_times(spark: SparkSession, tmp_path: Path) -> None:
    hour = datetime(2024, 1, 1, 10, tzinfo=UTC)
    for name in ("data", "prices"):
        (tmp_path / name).mkdir()

    def data(number: int, minute: int) -> None:
        file = tmp_path / "data" / f"{number}.parquet"
        pq.write_table(pa.table({"at": [hour.replace(minute=minute)], "k": pa.array([1], pa.int32())}), file)
        os.utime(file, (10**9 + number,) * 2)

    def price(number: int, minute: int) -> None:
        file = tmp_path / "prices" / f"{number}.csv"
        file.write_text(f"2024-01-01 10:{minute:02}:00,1,{number}\n")
        os.utime(file, (10**9 + number,) * 2)

    price(1, 3)
    data(2, 5)
    price(3, 3)  # late: the bound is 10:05 less a minute
    price(4, 4)
    data(5, 9)
    price(6, 7)  # late: the bound is 10:09 less a minute
    rows: list[int] = []

    def keep(batch: rt.Batch) -> None:
        rows.extend(batch.table()["price"].to_pylist())

    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(DIRECTORIES.format(tmp_path)).sink("result", keep)
    query = pipeline.run_available(tmp_path / "checkpoint", end=True)
    assert rows == [1, 4]
    assert query.ledger["prices.events"] == {"in": 4, "accepted": 2, "LATE": 2}


LENDER = (
    "CREATE STREAM b (at TIMESTAMP) EVENT SHAPE POINT (at); "
    "CREATE STREAM c (at TIMESTAMP) EVENT SHAPE POINT (at) BOUND FROM b;"
)


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("CREATE STREAM a (at TIMESTAMP) EVENT SHAPE POINT (at) BOUND FROM nobody", "R199"),
        ("CREATE STREAM r (n INT); CREATE STREAM a (at TIMESTAMP) EVENT SHAPE POINT (at) BOUND FROM r", "R199"),
        ("CREATE STREAM a (at TIMESTAMP) EVENT SHAPE POINT (at) BOUND FROM a", "R199"),
        ("CREATE STREAM a (at TIMESTAMP) EVENT SHAPE POINT (at) BOUND FROM a BOUND EVERY 2 ROWS", "R199"),
        (f"{LENDER} CREATE STREAM a (at TIMESTAMP) EVENT SHAPE POINT (at) BOUND FROM c", "R199"),
    ],
)
def test_a_stream_without_bounds_cannot_be_imported(sql: str, code: str) -> None:
    problems = rt.check(f"{sql}; SELECT STREAM * FROM a")
    assert problems[0].code == code, problems
