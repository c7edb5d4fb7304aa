"""Bad input, line by line of the table in semantics 11."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.core.time import END, MAX_MICROS, MIN_MICROS, to_micros

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(8)

COUNTS = """CREATE STREAM a (v INT);
SELECT STREAM COUNT(*) AS c FROM a GROUP BY FLOOR(a.ROWTIME TO HOUR)"""


def collect(spark: SparkSession, tmp_path: Path, sql: str) -> tuple[rt.Pipeline, list[dict[str, Any]], list[int]]:
    rows: list[dict[str, Any]] = []
    bounds: list[int] = []

    def take(batch: rt.Batch) -> None:
        bounds.append(batch.bound)
        rows.extend(batch.table().to_pylist() if batch.count else [])

    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(sql).sink("result", take)
    for stream in pipeline.compile().defines:
        pipeline.home.define(stream.name, stream.as_json(), replace=True)
    return pipeline, rows, bounds


# -- SQL --------------------------------------------------------------------------------

REFUSED = [
    ("SELECT STREAM v FORM a", "R101"),
    ("SELECT STREAM w FROM a", "R103"),
    ("SELECT STREAM v FROM b", "R103"),
    ("SELECT STREAM x.v FROM a", "R103"),
    ("SELECT STREAM v, COUNT(*) AS c FROM a GROUP BY v", "R104"),
    ("SELECT STREAM COUNT(*) AS c FROM a", "R104"),
    ("SELECT STREAM v, COUNT(*) AS c FROM a GROUP BY v, 1 + 1", "R104"),
    ("SELECT STREAM COUNT(*) AS c FROM a GROUP BY EXTRACT(HOUR FROM a.ROWTIME)", "R104"),
    ("SELECT STREAM COUNT(*) AS c FROM a GROUP BY CURRENT_TIMESTAMP", "R104"),
    ("SELECT STREAM DISTINCT v FROM a", "R104"),
    ("SELECT v FROM a", "R105"),
    ("SELECT STREAM v FROM a GROUP BY FLOOR(a.ROWTIME TO HOUR)", "R106"),
    ("SELECT STREAM v FROM a UNION SELECT STREAM v FROM a", "R109"),
    ("SELECT STREAM rand() AS r FROM a", "R111"),
    ("SELECT STREAM v, v + 1 AS w FROM a UNION ALL SELECT STREAM v FROM a", "R115"),
    ("SELECT STREAM v FROM a WHERE COUNT(*) > 1", "R116"),
    ("SELECT STREAM * FROM a AS b (x, y, z)", "R118"),
    ("SELECT STREAM v, v FROM a", "R119"),
    ("SELECT STREAM COUNT(*) AS c, SUM(v) AS C FROM a GROUP BY FLOOR(a.ROWTIME TO HOUR)", "R119"),
    ("SELECT STREAM e AS ROWTIME, v FROM a ORDER BY e DESC WITHIN INTERVAL '1' MINUTE", "R120"),
    ("SELECT STREAM v FROM a ORDER BY e WITHIN INTERVAL '1' MINUTE", "R121"),
    ("SELECT STREAM COUNT(*) AS c FROM a GROUP BY CUBE(FLOOR(a.ROWTIME TO HOUR), v)", "R127"),
    ("SELECT STREAM * FROM t", "R124"),
]


@pytest.mark.parametrize(("query", "code"), REFUSED, ids=[query for query, _ in REFUSED])
def test_a_query_that_cannot_run_is_refused_with_a_code_a_place_and_a_hint(query: str, code: str) -> None:
    text = f"CREATE STREAM a (v INT, e TIMESTAMP);\nCREATE TABLE t (v INT);\n{query};"
    problems = rt.check(text)
    assert [problem.code for problem in problems] == [code]
    place = problems[0].place
    assert place is not None
    assert place.line == 3
    assert place.text == f"{query};"


def test_all_errors_of_a_file_are_reported() -> None:
    text = "CREATE STREAM a (v INT);\nSELECT STREAM w FROM a;\nSELEC;\nSELECT STREAM v, COUNT(*) FROM a GROUP BY v, x;"
    assert [(p.code, p.place.line if p.place else 0) for p in rt.check(text)] == [
        ("R103", 2),
        ("R101", 3),
        ("R104", 4),
        ("R103", 4),
    ]


def test_problems_that_only_spark_finds_are_refused_in_the_same_form(spark: SparkSession, tmp_path: Path) -> None:
    pipeline, _, _ = collect(spark, tmp_path, "CREATE STREAM a (v INT); SELECT STREAM no_such_function(v) AS w FROM a")
    with rt.writer("a", home=tmp_path / "home") as log:
        log.insert([{"v": 1}])
    with pytest.raises(rt.Refused) as refused:
        pipeline.run_available(tmp_path / "check")
    assert refused.value.problems[0].code == "R107"
    assert "no_such_function" in str(refused.value).lower()


# -- times ------------------------------------------------------------------------------


def test_times_at_both_ends_of_the_calendar_are_rows_like_others(spark: SparkSession, tmp_path: Path) -> None:
    pipeline, rows, bounds = collect(spark, tmp_path, "CREATE STREAM a (v INT); SELECT STREAM v FROM a")
    with rt.writer("a", home=tmp_path / "home") as log:
        log.insert([{"rowtime": MIN_MICROS, "v": 1}, {"rowtime": MAX_MICROS, "v": 2}])
    pipeline.run_available(tmp_path / "check")
    assert [row["v"] for row in rows] == [1, 2]
    assert bounds[-1] == MAX_MICROS


@pytest.mark.parametrize("time", ["0000-12-31", "10000-01-01", MAX_MICROS + 1, "soon", "2024-02-30"])
def test_a_time_outside_the_years_1_to_9999_is_refused_where_it_is_sent(tmp_path: Path, time: str | int) -> None:
    with rt.writer("a", log=tmp_path / "log") as log:
        with pytest.raises(rt.Refused):
            log.insert([{"rowtime": time, "v": 1}])
        with pytest.raises(rt.Refused):
            log.set_rowtime_bound(time)


def test_a_group_at_the_end_of_the_calendar_closes_with_the_stream(spark: SparkSession, tmp_path: Path) -> None:
    pipeline, rows, _ = collect(spark, tmp_path, COUNTS)
    with rt.writer("a", home=tmp_path / "home") as log:
        log.insert([{"rowtime": "9999-12-31 23:30:00", "v": 1}])
        log.end()
    query = pipeline.run_available(tmp_path / "check")
    assert [row["c"] for row in rows] == [1]
    assert query.bounds["query.result"] == "+∞"


def test_a_bound_in_the_past_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    pipeline, rows, bounds = collect(spark, tmp_path, COUNTS)
    with rt.writer("a", home=tmp_path / "home") as log:
        log.insert([{"rowtime": "2024-01-01 10:00:00", "v": 1}])
        log.set_rowtime_bound("2024-01-01 11:00:00")
        log.set_rowtime_bound("2023-01-01 00:00:00")
    query = pipeline.run_available(tmp_path / "check")
    assert [row["c"] for row in rows] == [1]
    assert query.bounds["a"] == "2024-01-01 11:00:00"
    assert bounds[-1] == to_micros("2024-01-01 12:00:00")


def test_an_empty_stream_gives_nothing_and_says_what_it_waits_for(spark: SparkSession, tmp_path: Path) -> None:
    pipeline, rows, _ = collect(spark, tmp_path, COUNTS)
    query = pipeline.run_available(tmp_path / "check")
    assert rows == []
    assert query.waiting() == []


def test_a_stream_of_bounds_only_moves_the_clock_and_gives_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    pipeline, rows, bounds = collect(spark, tmp_path, COUNTS)
    with rt.writer("a", home=tmp_path / "home") as log:
        log.set_rowtime_bound("2024-01-01 10:30:00")
    pipeline.run_available(tmp_path / "check")
    assert rows == []
    assert bounds == [to_micros("2024-01-01 11:00:00")]
    with rt.writer("a", home=tmp_path / "home") as log:
        log.end()
    pipeline.run_available(tmp_path / "check")
    assert bounds[-1] == END


# -- missing sources and sinks ----------------------------------------------------------

FILES = """CREATE STREAM a (v INT) USING json OPTIONS (path '{path}');
CREATE STREAM out (v INT) USING parquet OPTIONS (path '{out}');
CREATE PUMP p AS INSERT INTO out SELECT STREAM v FROM a"""


def test_a_missing_source_fails_a_single_run_with_a_code(spark: SparkSession, tmp_path: Path) -> None:
    sql = FILES.format(path=tmp_path / "in", out=tmp_path / "out")
    with pytest.raises(rt.Failure) as failure:
        rt.Pipeline(spark, home=tmp_path / "home").sql(sql).run_available(tmp_path / "check", end=True)
    assert failure.value.problems[0].code == "R501"


def test_a_source_that_comes_back_is_read_as_if_it_had_never_been_away(spark: SparkSession, tmp_path: Path) -> None:
    sql = FILES.format(path=tmp_path / "in", out=tmp_path / "out")
    query = rt.Pipeline(spark, home=tmp_path / "home").sql(sql).start(tmp_path / "check")
    wait_for(lambda: any("failure" in progress for progress in query.recentProgress))
    assert query.isActive
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "x.json").write_text('{"v": 1}\n')
    wait_for(lambda: list((tmp_path / "out").glob("part-*")))
    query.stop()
    assert spark.read.parquet(str(tmp_path / "out")).count() == 1


def test_a_sink_that_cannot_be_written_fails_the_tick_and_the_next_start_repeats_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "x.json").write_text('{"v": 1}\n')
    (tmp_path / "out").write_text("a file where the directory should be")
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(FILES.format(path=tmp_path / "in", out=tmp_path / "out"))
    with pytest.raises(rt.Failure, match=f"R511 p cannot write to {tmp_path / 'out'}"):
        pipeline.run_available(tmp_path / "check")
    assert not list((tmp_path / "check" / "journal").glob("*.json"))
    (tmp_path / "out").unlink()
    pipeline.run_available(tmp_path / "check")
    files = list((tmp_path / "out").glob("part-*"))
    assert [pq.read_table(file)["v"].to_pylist() for file in files] == [[1]]


# -- checkpoints ------------------------------------------------------------------------


def test_a_checkpoint_of_another_query_is_refused_with_what_differs(spark: SparkSession, tmp_path: Path) -> None:
    pipeline, _, _ = collect(spark, tmp_path, COUNTS)
    pipeline.run_available(tmp_path / "check")
    before = sorted(path.name for path in (tmp_path / "check").rglob("*"))
    other, _, _ = collect(spark, tmp_path, COUNTS.replace("HOUR", "DAY"))
    with pytest.raises(rt.Refused) as refused:
        other.run_available(tmp_path / "check")
    assert refused.value.problems[0].code == "R401"
    assert "TO HOUR" in str(refused.value)
    assert "TO DAY" in str(refused.value)
    assert sorted(path.name for path in (tmp_path / "check").rglob("*")) == before


def test_a_checkpoint_of_a_newer_format_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    pipeline, _, _ = collect(spark, tmp_path, COUNTS)
    pipeline.run_available(tmp_path / "check")
    plan = tmp_path / "check" / "plan.json"
    plan.write_text(json.dumps({**json.loads(plan.read_text()), "format": 99}))
    with pytest.raises(rt.Refused) as refused:
        pipeline.run_available(tmp_path / "check")
    assert refused.value.problems[0].code == "R402"


def wait_for(condition: Callable[[], object], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)
