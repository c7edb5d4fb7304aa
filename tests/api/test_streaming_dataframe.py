"""Any streaming DataFrame as a stream: with an order of its own, without one, and after a crash."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from rowtime.core.errors import Failure, Refused
from rowtime.core.time import to_micros
from rowtime.runtime.sources.batches import THE_WRITER, BatchSource
from rowtime.runtime.sources.contract import Limits

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.sampled(8)

DAY = 1_704_067_200  # 2024-01-01
SCHEMA = "who STRING, n BIGINT, at TIMESTAMP"
PER_MINUTE = "SELECT STREAM COUNT(*) AS n, SUM(s.n) AS total FROM {} s GROUP BY FLOOR(s.ROWTIME TO MINUTE)"
PLACED = {"rowtime": "at", "writer": "who", "position": "n"}


class Rows:
    """A sink that collects its rows and their numbers."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.seen: dict[int, dict[str, Any]] = {}

    def __call__(self, batch: rt.Batch) -> None:
        if batch.count:
            rows = batch.table().to_pylist()
            self.rows.extend(rows)
            self.seen.update(enumerate(rows, batch.first))

    @property
    def counts(self) -> dict[str, tuple[int, int]]:
        return {f"{row['rowtime']:%H:%M}": (row["n"], row["total"]) for row in self.rows}


class Folder:
    """A directory of JSON files; each file is one batch."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self._spark, self._path, self._files = spark, path, 0
        path.mkdir()

    @property
    def frame(self) -> DataFrame:
        return self._spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", "1").json(str(self._path))

    def add(self, *rows: tuple[str, int, str]) -> None:
        lines = (json.dumps({"who": who, "n": n, "at": f"2024-01-01T{at}Z"}) for who, n, at in rows)
        self._files += 1
        hidden = self._path / f".{self._files:04d}.json"
        hidden.write_text("\n".join(lines), encoding="utf-8")
        os.utime(hidden, (DAY + self._files, DAY + self._files))  # Spark orders files by these times
        hidden.rename(self._path / f"{self._files:04d}.json")


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path) -> Folder:
    return Folder(spark, tmp_path / "in")


def pipeline(spark: SparkSession, tmp_path: Path, frame: DataFrame, sql: str, **names: Any) -> tuple[rt.Pipeline, Rows]:
    rows = Rows()
    made = rt.Pipeline(spark, home=tmp_path / "home").source("events", frame, **names).sql(sql).sink("result", rows)
    return made, rows


def test_writer_and_position_give_the_order(spark: SparkSession, folder: Folder, tmp_path: Path) -> None:
    made, rows = pipeline(spark, tmp_path, folder.frame, PER_MINUTE.format("events"), **PLACED)
    # The rows of the file are not in the order of time; one goes back in its writer's order.
    folder.add(("a", 3, "10:01:05"), ("a", 2, "10:00:10"), ("a", 1, "10:00:20"), ("b", 7, "10:00:30"))
    folder.add(("b", 9, "10:02:00"), ("b", 8, "10:01:00"), ("a", 4, "10:01:10"))
    query = made.run_available(tmp_path / "check")
    assert query.ledger["events"] == {"in": 7, "accepted": 6, "OUT_OF_ORDER": 1}
    assert rows.counts == {"10:01": (2, 8)}
    assert query.lastProgress is not None
    assert query.lastProgress["sources"][0]["endOffset"] == {"a": 5, "b": 10}


@pytest.mark.slow
def test_each_writer_has_a_mark_of_its_own_and_the_least_closes(
    spark: SparkSession, folder: Folder, tmp_path: Path
) -> None:
    sql = """SELECT STREAM COUNT(*) AS n, SUM(n) AS total FROM events
             GROUP BY FLOOR(at TO MINUTE) WITHIN INTERVAL '5' SECOND"""
    made, rows = pipeline(spark, tmp_path, folder.frame, sql, writer="who", position="n")
    folder.add(("a", 1, "10:05:00"), ("b", 1, "10:00:59"), ("b", 2, "10:01:02"), ("b", 3, "10:00:58"))
    folder.add(("b", 4, "10:01:04"))
    query = made.run_available(tmp_path / "check")
    assert rows.rows == []
    assert "writer b of events" in str(query.waiting()[0])
    folder.add(("b", 5, "10:01:06"), ("b", 6, "10:00:59"))
    query = made.run_available(tmp_path / "check")
    assert rows.counts == {"10:01": (2, 4)}
    assert [gate.get("LATE") for name, gate in query.ledger.items() if name != "events"] == [1]


@pytest.mark.slow
def test_without_an_order_no_row_is_refused_inside_a_batch(spark: SparkSession, folder: Folder, tmp_path: Path) -> None:
    made, rows = pipeline(spark, tmp_path, folder.frame, PER_MINUTE.format("events"), rowtime="at", unordered=True)
    folder.add(("a", 1, "10:01:00"), ("a", 2, "10:00:10"), ("a", 3, "10:00:59"))
    folder.add(("a", 4, "10:00:58"), ("a", 5, "10:02:00"), ("a", 6, "10:01:00"))
    query = made.run_available(tmp_path / "check")
    assert rows.counts == {"10:01": (2, 5), "10:02": (2, 7)}
    assert query.ledger["events"] == {"in": 6, "accepted": 5, "OUT_OF_ORDER": 1}


def test_a_sort_judges_a_set_by_the_mark_before_it(spark: SparkSession, folder: Folder, tmp_path: Path) -> None:
    sql = "SELECT STREAM at AS ROWTIME, n FROM events ORDER BY at WITHIN INTERVAL '10' SECOND"
    made, rows = pipeline(spark, tmp_path, folder.frame, sql, unordered=True)
    folder.add(("a", 1, "10:01:00"), ("a", 2, "10:00:10"))
    folder.add(("a", 3, "10:00:49"), ("a", 4, "10:00:55"), ("a", 5, "10:02:00"))
    query = made.run_available(tmp_path / "check")
    assert [row["n"] for row in rows.rows] == [2, 4, 1]
    assert sum(gate.get("LATE", 0) for gate in query.ledger.values()) == 1


def test_without_a_rowtime_the_arrival_of_the_batch_is_it(spark: SparkSession, folder: Folder, tmp_path: Path) -> None:
    made, rows = pipeline(spark, tmp_path, folder.frame, "SELECT STREAM who, n FROM events", writer="who", position="n")
    folder.add(("b", 1, "10:00:00"), ("a", 2, "09:00:00"), ("a", 1, "08:00:00"))
    folder.add(("a", 3, "07:00:00"))
    query = made.run_available(tmp_path / "check")
    assert query.ledger["events"] == {"in": 4, "accepted": 4}
    assert [(row["who"], row["n"]) for row in rows.rows][:3] == [("a", 1), ("a", 2), ("b", 1)]
    assert len({row["rowtime"] for row in rows.rows[:3]}) == 1


EVERY_TWO = "POINT (at) BOUND EVERY 2 ROWS DELAY INTERVAL '10' SECOND"
ALIVE = """SELECT STREAM SUM(n) AS total FROM ALTER_DURATION(events, INTERVAL '1' MINUTE) AS e GROUP BY SNAPSHOT()
           EMIT INTERVALS (since, until)"""


def totals(rows: Rows) -> list[tuple[str, str, int]]:
    return [(f"{row['since']:%M:%S}", f"{row['until']:%M:%S}", row["total"]) for row in rows.rows]


@pytest.mark.parametrize("cut", [2, 4])
def test_rows_with_an_order_may_be_events(spark: SparkSession, folder: Folder, tmp_path: Path, cut: int) -> None:
    made, rows = pipeline(spark, tmp_path, folder.frame, ALIVE, shape=EVERY_TWO, writer="who", position="n")
    # After the second row of the writer the bound is 10:00:20; the fourth row makes it 10:02:50.
    items = [("a", 1, "10:00:00"), ("a", 2, "10:00:30"), ("a", 3, "10:00:19"), ("a", 4, "10:03:00")]
    folder.add(*reversed(items[:cut]))
    if cut < len(items):
        folder.add(*items[cut:])
    query = made.run_available(tmp_path / "check")
    assert query.ledger["events"] == {"in": 4, "accepted": 3, "LATE": 1}
    assert totals(rows) == [("00:00", "00:30", 1), ("00:30", "01:00", 3), ("01:00", "01:30", 2)]


@pytest.mark.slow
def test_events_without_an_order_are_judged_by_the_bound_before_their_batch(
    spark: SparkSession, folder: Folder, tmp_path: Path
) -> None:
    made, rows = pipeline(spark, tmp_path, folder.frame, ALIVE, shape=EVERY_TWO, unordered=True)
    folder.add(("a", 1, "10:00:30"), ("b", 2, "10:00:00"), ("c", 4, "10:00:05"))  # and then the bound is 10:00:20
    folder.add(("a", 8, "10:00:19"), ("b", 16, "10:05:00"), ("c", 32, "10:00:20"))
    query = made.run_available(tmp_path / "check")
    assert query.ledger["events"] == {"in": 6, "accepted": 5, "LATE": 1}
    assert totals(rows) == [
        *(("00:00", "00:05", 2), ("00:05", "00:20", 6), ("00:20", "00:30", 38), ("00:30", "01:00", 39)),
        *(("01:00", "01:05", 37), ("01:05", "01:20", 33), ("01:20", "01:30", 1)),
    ]


def test_edges_of_a_dataframe_are_matched_by_all_but_their_positions(
    spark: SparkSession, folder: Folder, tmp_path: Path
) -> None:
    until = "IF(n % 2 = 0, at, NULL) AS until"
    edges = folder.frame.selectExpr("who", "n", "TIMESTAMP '2024-01-01 10:00:00' AS since", until)
    sql = "SELECT STREAM who FROM events EMIT CHANGES"
    made, rows = pipeline(spark, tmp_path, edges, sql, shape="EDGE (since, until)", position="N")
    folder.add(("a", 2, "10:00:30"), ("a", 1, "10:00:00"), ("b", 3, "10:00:00"))
    folder.add(("b", 6, "10:00:10"), ("a", 4, "10:00:40"))
    query = made.run_available(tmp_path / "check")
    assert query.ledger["events"] == {"in": 5, "accepted": 4, "UNMATCHED_EDGE": 1}
    changes = [(row["change"], row["who"], row["new_stop"] and f"{row['new_stop']:%M:%S}") for row in rows.rows]
    assert changes == [
        *(("insert", "a", None), ("retract", "a", "00:30"), ("insert", "b", None), ("retract", "b", "00:10"))
    ]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"shape": "EDGE (at, at)", "unordered": True}, "R190 rows without an order"),
        ({"shape": "POINT (at) BOUND FROM others", "unordered": True}, "R190 rows without an order"),
        ({"shape": "POINT (at)", "event_time": rt.EventTime("at")}, "R190 a guard or an event time"),
        ({"shape": "POINT (never)"}, "R103"),
        ({"shape": "ROUND"}, "R101"),
        ({"shape": "POINT (at); DROP STREAM s"}, "R101"),
    ],
)
def test_shapes_that_a_dataframe_does_not_support(folder: Folder, wrong: dict[str, Any], says: str) -> None:
    made = rt.Pipeline().source("events", folder.frame, **wrong).sql("SELECT STREAM who FROM events EMIT CHANGES")
    with pytest.raises(Refused, match=says):
        made.compile()


def test_a_rate_stream_continues_until_it_is_stopped(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).option("numPartitions", 2)
    frame = frame.option("startTimestamp", 1_704_067_200_000).option("advanceMillisPerBatch", 60_000).load()
    sql = "SELECT STREAM COUNT(*) AS n, SUM(value) AS total FROM events s GROUP BY FLOOR(s.ROWTIME TO MINUTE)"
    made, rows = pipeline(spark, tmp_path, frame, sql, rowtime="timestamp")
    for _ in range(2):
        before = len(rows.rows)
        query = made.start(tmp_path / "check")
        while query.isActive and len(rows.rows) < before + 2:
            query.awaitTermination(0.1)
        query.stop()
        assert query.exception is None
    assert [(row["n"], row["total"]) for row in rows.rows] == [
        (20, sum(range(20 * n, 20 * n + 20))) for n in range(len(rows.rows))
    ]


FEED = [
    [("a", 1, "10:00:10"), ("b", 1, "10:00:20"), ("a", 2, "10:00:15")],
    [("b", 2, "10:01:20"), ("a", 3, "10:00:50"), ("b", 3, "10:00:30")],
    [("a", 4, "10:01:00"), ("a", 5, "10:00:59"), ("b", 4, "10:02:10")],
    [("a", 6, "10:03:00"), ("b", 5, "10:03:00")],
]
POINTS = ["before state", "after state", "before journal", "after journal", "after output", "before Spark's commit"]


class Crash(OSError):
    """The error with which a test interrupts a run."""


@pytest.fixture
def crashing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, int], None]]:
    """Let every pipeline fail once, when it reaches a point for the n-th time."""
    from rowtime.runtime.engine import Engine

    left: dict[str, int] = {}
    started = Engine.start

    def start(engine: Engine) -> None:
        def hook(point: str) -> None:
            if point in left:
                left[point] -= 1
                if not left[point]:
                    del left[point]
                    raise Crash(point)

        engine.hook = hook
        started(engine)

    monkeypatch.setattr(Engine, "start", start)
    yield left.__setitem__
    assert not left


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(PLACED, id="ordered"),
        pytest.param({"rowtime": "at"}, id="of files"),
        pytest.param({"rowtime": "at", "unordered": True}, id="sets", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("point", [*(pytest.param(point, marks=pytest.mark.slow) for point in POINTS[:-1]), POINTS[-1]])
def test_a_crash_loses_no_batch_and_repeats_none(
    spark: SparkSession,
    folder: Folder,
    tmp_path: Path,
    crashing: Callable[[str, int], None],
    names: dict[str, Any],
    point: str,
) -> None:
    for rows in FEED:
        folder.add(*rows)
    calm, expected = pipeline(spark, tmp_path, folder.frame, PER_MINUTE.format("events"), **names)
    undisturbed = calm.run_available(tmp_path / "calm")
    made, found = pipeline(spark, tmp_path, folder.frame, PER_MINUTE.format("events"), **names)
    crashing(point, 3)
    with pytest.raises(Crash):
        made.run_available(tmp_path / "check")
    query = made.run_available(tmp_path / "check")
    assert expected.seen
    assert found.seen == expected.seen
    assert query.ledger == undisturbed.ledger
    if point == "before Spark's commit":
        assert found.rows == expected.rows


def test_a_failing_batch_is_tried_again_by_a_run_that_goes_on(
    spark: SparkSession, folder: Folder, tmp_path: Path, crashing: Callable[[str, int], None]
) -> None:
    for rows in FEED:
        folder.add(*rows)
    made, found = pipeline(spark, tmp_path, folder.frame, PER_MINUTE.format("events"), **PLACED)
    crashing("before journal", 2)
    query = made.start(tmp_path / "check")
    while query.isActive and "10:03" not in found.counts:
        query.awaitTermination(0.1)
    query.stop()
    assert [p["failure"] for p in query.recentProgress if "failure" in p] == ["Crash: before journal"]
    assert found.counts == {"10:01": (4, 7), "10:02": (2, 6), "10:03": (1, 4)}


def test_a_given_and_a_direct_stream_are_one_pipeline(spark: SparkSession, folder: Folder, tmp_path: Path) -> None:
    sql = """CREATE STREAM logged (n BIGINT);
             SELECT STREAM n FROM events UNION ALL SELECT STREAM n FROM logged"""
    made, found = pipeline(spark, tmp_path, folder.frame, sql, **PLACED)
    made.home.define("logged", made.compile().defines[0].as_json())
    with rt.writer("logged", home=tmp_path / "home") as log:
        log.insert([{"n": 100, "rowtime": "2024-01-01 10:00:12"}, {"n": 101, "rowtime": "2024-01-01 10:00:30"}])
    folder.add(("a", 1, "10:00:10"), ("a", 2, "10:00:20"))
    folder.add(("a", 3, "10:00:40"))
    made.run_available(tmp_path / "check")
    assert [row["n"] for row in found.rows] == [1, 100, 2, 101]


# -- the source alone -------------------------------------------------------------------


def handed(spark: SparkSession, *rows: tuple[str | None, int | None, int], number: int = 0, **names: str) -> Any:
    frame = spark.createDataFrame(rows, "who STRING, n BIGINT, v INT")
    source = BatchSource(frame, {"rowtime": None, "writer": None, "position": None, **names}, lambda: 1000)
    source.hand(number, frame)
    return source


def test_arrival_never_goes_back_and_is_the_same_however_often_it_is_read(spark: SparkSession) -> None:
    source = handed(spark, (None, 4, 1), ("x", 2, 1), number=3, writer="who", position="n")
    part, state = source.discover({"x": 1}, Limits(), {"next": 3, "arrival": 5000})
    assert (dict(part.start), dict(part.end)) == ({"": 0, "x": 1}, {"": 5, "x": 3})
    assert (dict(part.arrived), state) == ({"": 5000, "x": 5000}, {"next": 4, "arrival": 5000})
    for _ in range(2):
        rows = source.read(spark, part).selectExpr("__w", "__p", "unix_micros(__a)").collect()
        assert sorted(map(tuple, rows)) == [("", 4, 5000), ("x", 2, 5000)]
    assert source.discover(part.end, Limits(), state)[0].empty


def test_rows_of_a_set_are_numbered_by_their_content(spark: SparkSession) -> None:
    rows = [(f"w{n % 3}", n, n) for n in range(30)]
    found = []
    for spread in (rows, rows[::-1]):
        source = handed(spark, *spread, number=2)
        part, _ = source.discover({}, Limits(), {})
        assert dict(part.end) == {THE_WRITER: 3 << 40}
        found.append(sorted(map(tuple, source.read(spark, part).select("n", "__p").collect())))
    assert found[0] == found[1]
    assert {place >> 40 for _, place in found[0]} == {2}


def test_rows_without_a_position_and_positions_that_go_back_are_reported(spark: SparkSession) -> None:
    names = {"writer": "who", "position": "n"}
    with pytest.raises(Failure, match=r"R505 1 rows of a batch have no position"):
        handed(spark, ("a", None, 1), ("a", 1, 1), **names)
    source = handed(spark, ("a", 1, 1), **names)
    with pytest.raises(Failure, match=r"R505 .*'a' from 5 to 1"):
        source.discover({"a": 5}, Limits(), {})


def test_missing_columns_are_refused(spark: SparkSession) -> None:
    with pytest.raises(Refused, match=r"R103 .*no column when"):
        handed(spark, ("a", 1, 1), rowtime="when")


def test_times_are_utc_whatever_the_session_says(spark: SparkSession, folder: Folder, tmp_path: Path) -> None:
    folder.add(("a", 1, "10:00:10"), ("a", 2, "10:01:10"))
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        made, found = pipeline(spark, tmp_path, folder.frame, "SELECT STREAM n FROM events", **PLACED)
        made.run_available(tmp_path / "check")
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert [to_micros(row["rowtime"]) for row in found.rows] == [
        to_micros("2024-01-01 10:00:10"),
        to_micros("2024-01-01 10:01:10"),
    ]
