"""Another script reads a stream that a pump stored: from its start, or from now."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from rowtime.client.home import Home
from rowtime.plan.program import compile_script
from rowtime.runtime.sources.files import FilesSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STREAMS = "CREATE STREAM a (v INT); CREATE STREAM s (v INT, w INT);"
FILL = STREAMS + "CREATE PUMP p AS INSERT INTO s SELECT STREAM v, v * 10 FROM a WHERE v > 0;"
HOURS = "SELECT STREAM FLOOR(s.ROWTIME TO HOUR) AS h, COUNT(*) AS n FROM s GROUP BY FLOOR(s.ROWTIME TO HOUR)"


def define(folder: Path, *streams: str) -> None:
    for stream in compile_script("".join(streams), Home(folder / "home")).defines:
        Home(folder / "home").define(stream.name, stream.as_json(), replace=True)


def send(folder: Path, values: dict[int, int], stream: str = "a", writer: str = "main") -> None:
    """Minutes and values, and a bound one minute after the last row."""
    with rt.writer(stream, home=folder / "home", writer=writer) as log:
        log.insert([{"rowtime": f"2024-01-01 10:{minute:02}:00", "v": v} for minute, v in values.items()])
        log.set_rowtime_bound(dt.datetime(2024, 1, 1, 10, max(values), tzinfo=dt.UTC) + dt.timedelta(minutes=1))


def fill(spark: SparkSession, folder: Path) -> None:
    rt.Pipeline(spark, home=folder / "home").sql(FILL).run_available(folder / "filling")


def read(spark: SparkSession, folder: Path, sql: str, name: str = "reading", rows: int | None = None) -> list[Any]:
    """The rows of one run of a reader; the next run with the same name continues it."""
    got: list[Any] = []
    made = rt.Pipeline(spark, home=folder / "home").sql(sql)
    made.sink("result", lambda batch: got.extend(batch.table().to_pylist() if batch.count else []))
    made.run_available(folder / name, limits=rt.Limits(rows=rows))
    return [tuple(row[c] for c in row if c != "rowtime") for row in got]


def test_from_its_start_a_reader_sees_all_and_goes_on_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    define(tmp_path, STREAMS)
    send(tmp_path, {0: 1, 1: -1, 2: 2})
    fill(spark, tmp_path)
    query = "SELECT STREAM v, w FROM s"
    assert read(spark, tmp_path, query) == [(1, 10), (2, 20)]
    assert read(spark, tmp_path, query) == []
    send(tmp_path, {5: 3, 6: 4})
    fill(spark, tmp_path)
    assert read(spark, tmp_path, query, rows=1) == [(3, 30), (4, 40)]
    for rows in (1, 3, None):  # with every cut
        assert read(spark, tmp_path, query, f"anew {rows}", rows) == [(1, 10), (2, 20), (3, 30), (4, 40)]


def test_a_reader_has_the_bounds_that_the_pump_promised(spark: SparkSession, tmp_path: Path) -> None:
    define(tmp_path, STREAMS)
    send(tmp_path, {0: 1, 59: 2})  # so the bound is 11:00
    fill(spark, tmp_path)
    [(_, count)] = read(spark, tmp_path, HOURS)
    assert count == 2


def test_from_now_a_reader_sees_what_comes_after_its_first_start(spark: SparkSession, tmp_path: Path) -> None:
    define(tmp_path, STREAMS)
    send(tmp_path, {0: 1, 1: 2})
    fill(spark, tmp_path)
    query = "SELECT STREAM v, w FROM s FROM NOW AS t WHERE t.v > 0"
    assert read(spark, tmp_path, query) == []
    send(tmp_path, {2: 3})
    fill(spark, tmp_path)
    send(tmp_path, {3: 4})
    fill(spark, tmp_path)
    assert read(spark, tmp_path, query, rows=1) == [(3, 30), (4, 40)]  # "now" is the time of the first start
    assert read(spark, tmp_path, query) == []
    assert read(spark, tmp_path, query, "another") == []


@pytest.mark.parametrize("timed", [True, False])
def test_from_now_the_clocks_are_those_at_the_start(timed: bool, spark: SparkSession, tmp_path: Path) -> None:
    define(tmp_path, STREAMS)
    for writer in ("one", "other"):
        with rt.writer("a", home=tmp_path / "home", writer=writer) as log:
            log.insert([{"v": 7, **({"rowtime": "2024-01-01 09:00:00"} if timed else {})}])
            if timed:
                log.set_rowtime_bound("2024-01-01 10:30:00")
    query = "SELECT STREAM v FROM a FROM NOW"
    assert read(spark, tmp_path, query) == []
    with rt.writer("a", home=tmp_path / "home", writer="one") as log:
        log.insert([{"v": 1, **({"rowtime": "2024-01-01 10:20:00"} if timed else {})}])
        log.insert([{"v": 2, **({"rowtime": "2024-01-01 10:40:00"} if timed else {})}])
        log.end()
    with rt.writer("a", home=tmp_path / "home", writer="other") as log:
        log.end()
    assert read(spark, tmp_path, query) == ([(2,)] if timed else [(1,), (2,)])


def test_a_writer_that_comes_later_is_read_from_its_beginning(spark: SparkSession, tmp_path: Path) -> None:
    define(tmp_path, STREAMS)
    query = "SELECT STREAM v FROM a FROM NOW"
    assert read(spark, tmp_path, query) == []  # at that time nobody has written anything
    send(tmp_path, {0: 1}, writer="late")
    assert read(spark, tmp_path, query) == [(1,)]


def test_files_that_are_there_are_not_read_from_now(tmp_path: Path) -> None:
    folder, options = tmp_path / "in", {"path": str(tmp_path / "in")}
    folder.mkdir()
    (folder / "1.json").write_text('{"v": 1}')
    first = FilesSource("json", options, [("v", "INT")], tmp_path / "notes", from_now=True)
    now, state = first.discover({}, rt.Limits(), {})
    assert (now.empty, now.rows) == (True, 0)
    (folder / "0.json").write_text('{"v": 2}')
    for _ in range(2):  # the same after a restart
        again = FilesSource("json", options, [("v", "INT")], tmp_path / "notes", from_now=True)
        part, _ = again.discover(now.end, rt.Limits(), state)
        assert [path for _, path, _ in part.detail["files"]] == [str(folder / "0.json")]


def test_several_writers_into_one_stream_and_several_readers_of_it(spark: SparkSession, tmp_path: Path) -> None:
    define(tmp_path, STREAMS)
    send(tmp_path, {0: 1, 4: 2}, writer="x")
    send(tmp_path, {2: 3, 4: 4}, writer="y")
    other = "CREATE PUMP q AS INSERT INTO s SELECT STREAM v, 0 FROM a WHERE v < 3;"
    rt.Pipeline(spark, home=tmp_path / "home").sql(FILL + other).run_available(tmp_path / "filling")
    expected = [(1, 10), (1, 0), (3, 30), (2, 20), (4, 40), (2, 0)]  # in the order of rowtime, then of the pumps' names
    assert read(spark, tmp_path, "SELECT STREAM v, w FROM s", "one") == expected
    assert read(spark, tmp_path, "SELECT STREAM v, w FROM s WHERE w > 0", "two", rows=1) == [
        row for row in expected if row[1]
    ]


def test_a_view_that_is_used_twice_is_computed_once(tmp_path: Path) -> None:
    define(tmp_path, STREAMS)
    sql = """CREATE VIEW m AS SELECT STREAM FLOOR(a.ROWTIME TO MINUTE) AS m, COUNT(*) AS n FROM a
      GROUP BY FLOOR(a.ROWTIME TO MINUTE);
      SELECT STREAM n FROM m; SELECT STREAM m, n + 1 AS more FROM m WHERE n > 1;"""
    program = compile_script(sql, Home(tmp_path / "home"))
    assert not program.problems
    kinds = [node.kind for node in program.operators]
    assert (kinds.count("stream"), kinds.count("group by"), kinds.count("sink")) == (1, 1, 2)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("CREATE VIEW v AS SELECT STREAM v FROM a; SELECT STREAM v FROM v FROM NOW", "v is not a stream"),
        ("SELECT STREAM v FROM a; SELECT STREAM v FROM a FROM NOW", "a is read from its start elsewhere"),
        ("SELECT STREAM v FROM a FROM NOW; SELECT STREAM v FROM a", "a is read FROM NOW elsewhere"),
        ("CREATE STREAM r (v BIGINT) USING rate; SELECT STREAM v FROM r FROM NOW", "a stream of rate cannot be read"),
    ],
)
def test_invalid_uses_of_from_now_are_refused(sql: str, message: str, tmp_path: Path) -> None:
    define(tmp_path, STREAMS)
    [problem] = compile_script(sql, Home(tmp_path / "home")).problems
    assert (problem.code, message in problem.message) == ("R157", True)
    assert problem.hint
