"""Functions of the user in ticks that tasks of Spark compute: the same answers as from the driver."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.state.checkpoint import Checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
STREAMS = "CREATE STREAM a (k STRING, v BIGINT);\n"
GROUPS = (
    STREAMS
    + """CREATE STREAM minutes (m TIMESTAMP, k STRING, c BIGINT, s BIGINT) USING parquet OPTIONS (path '{out}');
CREATE PUMP p AS INSERT INTO minutes
  SELECT STREAM FLOOR(t.ROWTIME TO MINUTE) AS m, shout(k) AS k, COUNT(*) AS c, SUM(halved(v) + 1) AS s
  FROM a AS t WHERE v > 0 AND above(v) GROUP BY FLOOR(t.ROWTIME TO MINUTE), shout(k) HAVING above(COUNT(*));
"""
)
OTHERS = {
    "a join": """CREATE STREAM b (k STRING, w BIGINT);
SELECT STREAM t.k, v, w FROM a AS t JOIN b AS o ON shout(t.k) = shout(o.k) AND above(t.v * o.w + 100)
  AND o.ROWTIME BETWEEN t.ROWTIME - INTERVAL '20' SECOND AND t.ROWTIME + INTERVAL '20' SECOND;""",
    "a pattern": """SELECT STREAM * FROM a MATCH_RECOGNIZE (PARTITION BY k ORDER BY ROWTIME
  MEASURES FIRST(d.v) AS f, LAST(u.v) AS l PATTERN (d u+) WITHIN INTERVAL '1' MINUTE
  DEFINE d AS above(d.v + 9), u AS plus_one(u.v) > PREV(u.v) + 1) AS m;""",
    "a window": "SELECT STREAM SUM(halved(v)) OVER (PARTITION BY k RANGE INTERVAL '1' MINUTE PRECEDING) AS s FROM a;",
}
TICKS = 3


def session_of(spark: SparkSession) -> SparkSession:
    """A session with functions; ``above`` raises for what conditions have to keep away from it."""
    from pyspark.sql.pandas.functions import arrow_udf

    def above(v: int | None) -> bool:
        if v is None or v <= 0:
            raise ValueError(str(v))
        return True

    mine = spark.newSession()
    mine.udf.register("above", above, "BOOLEAN")
    mine.udf.register("plus", lambda v, w: v + w, "BIGINT")
    mine.udf.register("halved", arrow_udf(lambda v: pc.divide(v, 2), "BIGINT"))  # type: ignore[call-overload]
    mine.udf.register("shout", lambda k: f"{k.upper()}!", "STRING")
    mine.sql("CREATE TEMPORARY FUNCTION plus_one(x BIGINT) RETURNS BIGINT RETURN plus(x, 1)")
    return mine


def run(spark: SparkSession, place: Path, sql: str, small_ticks: str) -> Mapping[str, Any]:
    """Each tick from a new pipeline; return the rows, the jobs of each tick, and why the driver had to compute."""
    got: list[Mapping[str, Any]] = []
    jobs, needs = list[int](), set[str]()
    text = sql.format(out=place / "out")
    for tick in range(TICKS):
        pipeline = rt.Pipeline(session_of(spark), home=place / "home", small_ticks=small_ticks).sql(text)
        for stream in pipeline.compile().defines:
            if stream.format == "log":
                pipeline.home.define(stream.name, stream.as_json())
                with rt.writer(stream.name, home=place / "home", writer="w") as log:
                    for second in (1, 2, 20, 40, 41, 55):
                        at = START + dt.timedelta(minutes=tick, seconds=second)
                        log.insert([{"rowtime": at, "k": "xy"[second % 2], stream.columns[1][0]: second % 9 - 2}])
        if "minutes" not in sql:
            pipeline.sink("result", lambda batch: got.extend(batch.table().to_pylist() if batch.count else []))
        engine = pipeline._engine(place / "check", rt.Limits(), ends=False)
        before = engine._job_times.next()
        assert engine.tick() is not None
        jobs.append(engine._job_times.next() - before)
        needs |= {engine.tasks.needs} if engine.tasks is not None else set()
        engine.stop()
    files = sorted((place / "out").glob("*.parquet")) if "minutes" in sql else []
    got += [row for file in files for row in pq.read_table(file).to_pylist()]
    totals = (Checkpoint(place / "check").journal.last() or {})["totals"]
    return {"rows": sorted(got, key=str), "totals": totals, "jobs": jobs, "needs": needs}


def test_in_each_clause_of_groups_into_a_typed_sink_with_restarts(spark: SparkSession, tmp_path: Path) -> None:
    mine = run(spark, tmp_path / "driver", GROUPS, "driver")
    theirs = run(spark, tmp_path / "spark", GROUPS, "spark")
    assert mine["rows"]
    assert theirs["rows"] == mine["rows"]
    assert theirs["totals"] == mine["totals"]
    assert theirs["needs"] == {""}
    assert theirs["jobs"][-1] <= 2  # HAVING is asked for once a group is complete; each start finds that out anew


@pytest.mark.slow  # three queries, on the driver and in tasks
@pytest.mark.parametrize("name", OTHERS)
def test_in_other_clauses(spark: SparkSession, tmp_path: Path, name: str) -> None:
    mine = run(spark, tmp_path / "driver", STREAMS + OTHERS[name], "driver")
    theirs = run(spark, tmp_path / "spark", STREAMS + OTHERS[name], "spark")
    assert mine["rows"]
    assert theirs["rows"] == mine["rows"]
    assert theirs["totals"] == mine["totals"]
    assert theirs["needs"] == {""}


def test_an_error_that_a_function_raises_ends_the_run(spark: SparkSession, tmp_path: Path) -> None:
    session, sql = spark.newSession(), STREAMS + "SELECT STREAM v, inverse(v) AS w FROM a WHERE v <> 7"
    session.udf.register("inverse", lambda v: 1 / v, "DOUBLE")
    got: list[Mapping[str, Any]] = []

    def pipeline() -> rt.Pipeline:
        new = rt.Pipeline(session, home=tmp_path / "home", small_ticks="spark").sql(sql)
        return new.sink("result", lambda batch: got.extend(batch.table().to_pylist() if batch.count else []))

    pipeline().run_available(tmp_path / "check")
    with rt.writer("a", home=tmp_path / "home", writer="w") as log:
        log.insert([{"rowtime": START, "k": "a", "v": v} for v in (2, 0, 4, 7)])
    with pytest.raises(rt.Failure, match=r"R512 .* raised ZeroDivisionError: division by zero"):
        pipeline().run_available(tmp_path / "check")
    session.udf.register("inverse", lambda v: 1 / v if v else None, "DOUBLE")
    pipeline().renewed("inverse").run_available(tmp_path / "check")
    assert [(row["v"], row["w"]) for row in got] == [(2, 0.5), (0, None), (4, 0.25)]
