"""The least and greatest rowtimes pass through every kind of operator; times beyond are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.core.errors import Refused
from rowtime.core.time import DAY, END, HOUR, MAX_MICROS, MIN_MICROS
from rowtime.runtime.plain_rows import plain_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(8)

TIMES = (MIN_MICROS, MIN_MICROS + 1, 0, MAX_MICROS - 1, MAX_MICROS)
NUMBERED = tuple(enumerate(TIMES))
STREAMS = """CREATE STREAM s (k INT, t TIMESTAMP); CREATE STREAM r (k INT);
CREATE STREAM e (k INT, t TIMESTAMP) EVENT TIME (t, MINIMUM GAP INTERVAL '0' SECOND);
CREATE STREAM p (k INT, t TIMESTAMP) EVENT SHAPE POINT (t);"""
WITHIN_A_DAY = "OVER (RANGE INTERVAL '1' DAY PRECEDING)"
Row = tuple[Any, ...]


def last(at: int) -> int:
    """No rowtime lies above the last instant."""
    return min(at, MAX_MICROS)


def grouped(begin: Callable[[int], int], length: int) -> list[Row]:
    """The number of rows of each group, by its start."""
    begins = sorted({begin(at) for at in TIMES})
    return [(last(start + length), start, sum(begin(at) == start for at in TIMES)) for start in begins]


def floored(size: int) -> Callable[[int], int]:
    return lambda at: at // size * size


def sessions(gap: int) -> list[Row]:
    found: list[list[int]] = []
    for at in TIMES:
        if found and at < found[-1][-1] + gap:
            found[-1].append(at)
        else:
            found.append([at])
    return [(last(times[-1] + gap), len(times)) for times in found]


def left_joined() -> list[Row]:
    """A row is joined with the row before it within a day, or goes out alone a day later."""
    found = []
    for k, at in NUMBERED:
        near = k > 0 and at - TIMES[k - 1] <= DAY
        found.append((at if near else last(at + DAY), k, k - 1 if near else None))
    return sorted(found, key=lambda row: row[:2])


HOURS = "SELECT STREAM FLOOR(s.ROWTIME TO HOUR) AS h, COUNT(*) AS c FROM s GROUP BY FLOOR(s.ROWTIME TO HOUR)"
CASES: dict[str, tuple[str, list[Row]]] = {
    "rows": ("SELECT STREAM k, t FROM s", [(at, k, at) for k, at in NUMBERED]),
    "T-sort": (
        "SELECT STREAM t AS ROWTIME, k FROM s ORDER BY t WITHIN INTERVAL '1' DAY",
        [(at, k) for k, at in NUMBERED],
    ),
    "hours": (HOURS, grouped(floored(HOUR), HOUR)),
    "weeks": (
        HOURS.replace("FLOOR(s.ROWTIME TO HOUR)", "STEP(s.ROWTIME BY INTERVAL '7' DAY)"),
        grouped(floored(7 * DAY), 7 * DAY),
    ),
    "ceilings": (HOURS.replace("FLOOR", "CEIL"), grouped(lambda at: -(-at // HOUR) * HOUR, 0)),
    "hours within": (
        "SELECT STREAM FLOOR(t TO HOUR) AS h, COUNT(*) AS c FROM s GROUP BY FLOOR(t TO HOUR) WITHIN INTERVAL '1' DAY",
        grouped(floored(HOUR), HOUR),
    ),
    "given stamps": (
        (
            "SELECT STREAM FLOOR(s.ROWTIME TO HOUR) + INTERVAL '2' HOUR AS ROWTIME, COUNT(*) AS c FROM s "
            "GROUP BY FLOOR(s.ROWTIME TO HOUR)"
        ),
        [(last(start + 2 * HOUR), c) for _, start, c in grouped(floored(HOUR), HOUR)],
    ),
    "sessions": (
        "SELECT STREAM COUNT(*) AS c FROM s GROUP BY SESSION(s.ROWTIME, INTERVAL '1' HOUR)",
        sessions(HOUR),
    ),
    "stagger": (
        "SELECT STREAM k, COUNT(*) AS c FROM s WINDOWED BY STAGGER (PARTITION BY k RANGE INTERVAL '1' HOUR)",
        [(last(at + HOUR), k, 1) for k, at in NUMBERED],
    ),
    "sorted hours": (
        "SELECT STREAM k FROM s ORDER BY FLOOR(s.ROWTIME TO HOUR), k",
        [(last(at // HOUR * HOUR + HOUR), k) for k, at in NUMBERED],
    ),
    "a range": (
        "SELECT STREAM k, COUNT(*) OVER (ORDER BY s.ROWTIME RANGE INTERVAL '1' DAY PRECEDING) AS c FROM s",
        [(at, k, sum(at - DAY <= other <= at for other in TIMES)) for k, at in NUMBERED],
    ),
    "three rows": (
        "SELECT STREAM k, SUM(k) OVER (ORDER BY s.ROWTIME ROWS 2 PRECEDING) AS total FROM s",
        [(at, k, sum(range(max(0, k - 2), k + 1))) for k, at in NUMBERED],
    ),
    "join": (
        f"SELECT STREAM a.k, b.k AS o FROM s {WITHIN_A_DAY} AS a JOIN r {WITHIN_A_DAY} AS b ON a.k = b.k",
        [(at, k, k) for k, at in NUMBERED],
    ),
    "outer join": (
        f"SELECT STREAM a.k, b.k AS o FROM s {WITHIN_A_DAY} AS a LEFT JOIN r {WITHIN_A_DAY} AS b ON a.k = b.k + 1",
        left_joined(),
    ),
    "interval join": (
        (
            "SELECT STREAM a.k, b.k AS o FROM s AS a LEFT JOIN r AS b ON a.k = b.k + 1 "
            "AND b.ROWTIME BETWEEN a.ROWTIME - INTERVAL '1' DAY AND a.ROWTIME + INTERVAL '1' DAY"
        ),
        left_joined(),
    ),
    "union": (
        "SELECT STREAM k FROM s UNION ALL SELECT STREAM k + 10 AS k FROM r",
        [(at, k + more) for k, at in NUMBERED for more in (0, 10)],
    ),
    "panes": (
        (
            "SELECT STREAM PANE_START AS h, COUNT(*) AS c FROM e "
            "GROUP BY PANES(t, DURATION INTERVAL '1' HOUR, DISCARD AGE INTERVAL '6' HOUR)"
        ),
        grouped(floored(HOUR), HOUR),
    ),
    "points": (
        "SELECT STREAM k FROM p EMIT INTERVALS (start, stop)",
        [(last(at + 1), at, at + 1, k) for k, at in NUMBERED],
    ),
}


def in_micros(table: pa.Table) -> list[Row]:
    for number, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            instants = table[field.name].cast(pa.timestamp("us", field.type.tz)).cast(pa.int64())
            table = table.set_column(number, field.name, instants)
    return [tuple(row.values()) for row in table.to_pylist()]


def fed(spark: SparkSession | None, folder: Path, sql: str) -> rt.Pipeline:
    """The query over its streams, which have a row at each of the times and have ended."""
    made = rt.Pipeline(spark, home=folder / "home").sql(STREAMS + sql)
    for stream in made.compile().defines:
        made.home.define(stream.name, stream.as_json())
    for name in "srep":
        with rt.writer(name, home=folder / "home") as writer:
            for k, at in NUMBERED:
                writer.insert([{"k": k, "rowtime": at} | ({"t": at} if name != "r" else {})])
            writer.end()
    return made


@pytest.mark.parametrize("ticks", ["one tick", "a tick a row"])
@pytest.mark.parametrize(("sql", "wanted"), CASES.values(), ids=CASES)
def test_the_edges_of_time_are_times_like_others(
    spark: SparkSession, tmp_path: Path, sql: str, wanted: list[Row], ticks: str
) -> None:
    received: list[Row] = []
    made = fed(spark, tmp_path, sql)
    made.sink("result", lambda batch: received.extend(in_micros(batch.table()) if batch.count else []))
    limits = rt.Limits() if ticks == "one tick" else rt.Limits(files=1)
    query = made.run_available(tmp_path / "check", limits=limits)
    assert received == wanted
    assert all(counts["in"] == counts["accepted"] for counts in query.ledger.values())


def test_rows_at_the_last_instant_go_into_a_stream_and_are_verified(spark: SparkSession, tmp_path: Path) -> None:
    sql = f"CREATE STREAM o (k INT, o INT); CREATE PUMP x AS INSERT INTO o {CASES['outer join'][0]};"
    fed(spark, tmp_path, sql).run_available(tmp_path / "check")
    assert rt.verify(tmp_path / "check", spark=spark, home=tmp_path / "home").equal
    again = rt.Pipeline(spark, home=tmp_path / "home").sql("SELECT STREAM k, o FROM o")
    received: list[Row] = []
    again.sink("result", lambda batch: received.extend(in_micros(batch.table()) if batch.count else []))
    query = again.run_available(tmp_path / "again")
    assert received == left_joined()
    assert query.bounds["o"] == "+∞"


def test_a_value_beyond_the_calendar_is_printed_verified_and_traced(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = fed(spark, tmp_path, CASES["ceilings"][0])
    query = made.run_available(tmp_path / "check")
    assert f"h={MAX_MICROS + 1} µs" in capsys.readouterr().out
    assert rt.verify(tmp_path / "check", spark=spark, home=tmp_path / "home").equal
    assert f"h={MAX_MICROS + 1} µs" in str(query.trace(number=3))


def test_rows_that_python_cannot_hold_are_shown_as_text() -> None:
    times = pa.array([MIN_MICROS - 1, None, MAX_MICROS], pa.timestamp("us", "UTC"))
    days = pa.array([2932897, 0, None], pa.int32()).cast(pa.date32())
    found = plain_rows(pa.table({"t": times, "d": days, "n": [1, 2, 3]}))
    assert [row["n"] for row in found] == [1, 2, 3]
    assert [row["t"] for row in found] == [f"{MIN_MICROS - 1} µs", None, "9999-12-31 23:59:59.999999"]
    assert [row["d"] for row in found] == [f"{MAX_MICROS + 1} µs", "1970-01-01 00:00:00", None]


@pytest.mark.parametrize("at", [MIN_MICROS - 1, MAX_MICROS + 1, END - 1, 2**63 - 1, -(2**63), 2**70])
def test_times_outside_the_calendar_are_refused(tmp_path: Path, at: int) -> None:
    with rt.writer("s", log=tmp_path / "log") as writer:
        with pytest.raises(Refused) as rows:
            writer.insert([{"k": 1, "rowtime": at}])
        with pytest.raises(Refused) as bound:
            writer.set_rowtime_bound(at)
        assert writer.position == 0
    assert {refused.value.problems[0].code for refused in (rows, bound)} <= {"R206", "R301"}


def test_bounds_reach_to_both_edges(tmp_path: Path) -> None:
    with rt.writer("s", log=tmp_path / "log") as writer:
        for at in (MIN_MICROS, MAX_MICROS, END):
            writer.set_rowtime_bound(at)
        writer.set_rowtime_bound(MAX_MICROS, strict=True)
        assert writer.position == 4


MANY = 250_000  # rows: more than the driver judges itself
SORT_BY = "SELECT STREAM {0} AS ROWTIME, k FROM s ORDER BY {0} WITHIN INTERVAL '1' HOUR"
NEXT_DAY = SORT_BY.format("t + INTERVAL '1' DAY")
FILES = "CREATE STREAM s (k INT, t TIMESTAMP) USING parquet OPTIONS (path '{path}/in'{more}); "


def refused(query: rt.Query, gate: str) -> list[Row]:
    files = query.rejected(gate)
    return [(row["k"], row["reason"], row["refused_time"]) for file in files for row in plain_rows(pq.read_table(file))]


@pytest.mark.parametrize(
    ("sql", "gate", "given"),
    [
        ("CREATE STREAM s (k INT, t TIMESTAMP); " + NEXT_DAY, "query", False),
        (FILES + SORT_BY.format("t"), "query", True),
        (FILES + NEXT_DAY, "query", True),
        (FILES.replace("{more}", ", rowtime.column 't'") + "SELECT STREAM k FROM s", "s", True),
    ],
    ids=["made", "in files", "made of files", "given in files"],
)
@pytest.mark.parametrize("count", [4, MANY], ids=["few rows", "many rows"])
def test_a_time_beyond_the_calendar_is_refused_and_raises_no_mark(
    spark: SparkSession, tmp_path: Path, sql: str, gate: str, given: bool, count: int
) -> None:
    beyond = [MAX_MICROS + DAY, MIN_MICROS - 2 * DAY] if given else [MAX_MICROS, MAX_MICROS]
    times = [0, *beyond, *range(count - 3)]
    rows = pa.table({"k": pa.array(range(count), pa.int32()), "t": pa.array(times, pa.timestamp("us", "UTC"))})
    made = rt.Pipeline(spark, home=tmp_path / "home").sql(sql.replace("{path}", str(tmp_path)).replace("{more}", ""))
    received: list[Row] = []
    made.sink("result", lambda batch: received.extend(in_micros(batch.table()) if batch.count else []))
    for stream in made.compile().defines:
        made.home.define(stream.name, stream.as_json())
    if given:
        (tmp_path / "in").mkdir()
        pq.write_table(rows, tmp_path / "in" / "1.parquet")
    else:
        with rt.writer("s", home=tmp_path / "home") as writer:
            writer.insert(rows)
            writer.end()
    query = made.run_available(tmp_path / "check", end=True)
    assert [k for _, k in received] == [0, *range(3, count)]
    assert refused(query, gate) == [(1, "NULL_ROWTIME", None), (2, "NULL_ROWTIME", None)]
