"""The hints of runs work: each run is refused or fails, and the test follows its hint."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

import rowtime as rt
from rowtime.cli.main import app
from rowtime.core.errors import RowtimeError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow  # a pipeline for each hint, and one for each way to follow it

GIVEN = """CREATE STREAM s (x STRING, n BIGINT, t TIMESTAMP);
INSERT INTO s (ROWTIME, x, n, t) VALUES
  (TIMESTAMP '2024-01-01 10:00:00', '1', 9223372036854775807, TIMESTAMP '2024-01-01 10:00:00'),
  (TIMESTAMP '2024-01-01 10:00:01', '2', 9223372036854775807, TIMESTAMP '2024-01-01 10:00:00');
ALTER STREAM s END;
"""
EVENTS = """CREATE STREAM e (edge STRING, k STRING, since TIMESTAMP, until TIMESTAMP) EVENT SHAPE EDGE (since, until);
INSERT INTO e VALUES ('start', 'a', TIMESTAMP '2024-01-01 10:00:00', NULL);
ALTER STREAM e END;
"""
INTERVALS = """CREATE STREAM e (k STRING, since TIMESTAMP, until TIMESTAMP) EVENT SHAPE INTERVAL (since, until);
INSERT INTO e VALUES ('a', TIMESTAMP '2024-01-01 10:00:00', NULL);
ALTER STREAM e END;
"""


def rows(spark: SparkSession, folder: Path, sql: str, given: str = GIVEN) -> list[dict[str, Any]]:
    """The result of a script in a home of its own; its last query is named result."""
    got: list[dict[str, Any]] = []
    home = folder / f"home{sum(1 for _ in folder.iterdir())}"
    pipeline = rt.Pipeline(spark, home=home).sql(given + sql)
    pipeline.sink("result", lambda batch: got.extend(batch.table().to_pylist() if batch.count else []))
    pipeline.run_available(home / "check")
    return [{name: value for name, value in row.items() if name != "rowtime"} for row in got]


def told(spark: SparkSession, folder: Path, sql: str, code: str, taken: str, given: str = GIVEN) -> tuple[str, ...]:
    """The groups of the part of the hint that a reader uses, from the error that ends the script."""
    with pytest.raises(RowtimeError) as ended:
        rows(spark, folder, sql, given)
    [problem] = ended.value.problems
    found = re.search(taken, problem.hint)
    assert (problem.code, found is not None) == (code, True), str(problem)
    assert found is not None
    return found.groups()


def test_the_hint_casts_what_spark_refuses(spark: SparkSession, tmp_path: Path) -> None:
    over = "SELECT STREAM SUM({}) OVER (ROWS 1 PRECEDING) AS y FROM s"
    for kind in told(spark, tmp_path, over.format("x"), "R107", r"to (DOUBLE) or (DECIMAL\(18, 2\))"):
        assert [float(r["y"]) for r in rows(spark, tmp_path, over.format(f"CAST(x AS {kind})"))] == [1, 3]
    (kind,) = told(spark, tmp_path, f"{over.format('n')} ON ERROR STOP", "R507", r"example (DECIMAL\(38, 0\))")
    assert [int(r["y"]) for r in rows(spark, tmp_path, over.format(f"CAST(n AS {kind})"))] == [2**63 - 1, 2**64 - 2]
    promoted = "SELECT STREAM {} AS ROWTIME, n FROM s"
    expression = "element_at(array(x), 1)"
    call, kind = told(spark, tmp_path, promoted.format(expression), "R188", r"timestamp: (CAST)\(… (AS TIMESTAMP)\)")
    sql = promoted.format(f"{call}(concat('2024-01-01 10:00:0', {expression}) {kind})")
    assert len(rows(spark, tmp_path, sql)) == 2
    (call,) = told(spark, tmp_path, promoted.format(expression), "R188", r"(timestamp_millis)\(…\)")
    assert len(rows(spark, tmp_path, promoted.format(f"{call}(CAST({expression} AS BIGINT))"))) == 2
    ordered = "SELECT STREAM MONOTONIC({}) AS y FROM s"
    told(spark, tmp_path, ordered.format("array(x)"), "R107", "(cast it) to one of these types")
    assert len(rows(spark, tmp_path, ordered.format("CAST(array(x) AS STRING)"))) == 2


def test_a_script_without_a_result_is_given_one(spark: SparkSession, tmp_path: Path) -> None:
    added = told(spark, tmp_path, "", "R134", r"Add a (SELECT STREAM), or (CREATE PUMP) … (AS INSERT INTO) … SELECT")
    assert len(rows(spark, tmp_path, f"{added[0]} n FROM s")) == 2
    assert rows(spark, tmp_path, f"CREATE STREAM o (n BIGINT); {added[1]} p {added[2]} o SELECT STREAM n FROM s") == []


def test_a_table_without_a_place_gets_one(spark: SparkSession, tmp_path: Path) -> None:
    spark.createDataFrame([("1", "one")], "x STRING, name STRING").write.parquet(str(tmp_path / "names"))
    table, join = (
        "CREATE TABLE names (x STRING, name STRING)",
        "; SELECT STREAM name FROM s JOIN names ON s.x = names.x",
    )
    (place,) = told(spark, tmp_path, table + join, "R155", r"CREATE TABLE … (USING parquet OPTIONS \(path ')…'\)")
    assert rows(spark, tmp_path, f"{table} {place}{tmp_path / 'names'}'){join}") == [{"name": "one"}]


def test_a_query_without_rows_to_ask_for_is_given_some(spark: SparkSession, tmp_path: Path) -> None:
    def ran(using: str) -> rt.Query:
        sql = f"{GIVEN} CREATE STREAM o (n BIGINT){using}; CREATE PUMP p AS INSERT INTO o SELECT STREAM n FROM s"
        home = tmp_path / (using.strip() or "log")
        return rt.Pipeline(spark, home=home).sql(sql).run_available(home / "check")

    with pytest.raises(rt.Refused) as refused:
        ran("").table("o")
    found = re.search("Create it (USING memory)", str(refused.value))
    assert found is not None
    table = ran(f" {found[1]}").table("o")
    assert table is not None
    assert table.num_rows == 2


@pytest.mark.parametrize(
    ("given", "changes"), [(EVENTS, ""), (INTERVALS, " EMIT CHANGES")], ids=["its stream ends", "EMIT CHANGES"]
)
def test_events_without_an_end_are_limited(given: str, changes: str, spark: SparkSession, tmp_path: Path) -> None:
    window = f"SELECT STREAM COUNT(*) AS c FROM {{}} GROUP BY TUMBLE(INTERVAL '1' HOUR){changes}"
    taken = r"[Ll]imit it: FROM (CLIP\()s, (AT MOST INTERVAL '1') DAY\)"
    call, most = told(spark, tmp_path, window.format("e"), "R195", taken, given)
    made = rows(spark, tmp_path, window.format(f"{call}e, {most} MINUTE)"), given)
    assert [row["c"] for row in made] == [1]
    if changes:
        (word,) = told(spark, tmp_path, window.format("e"), "R195", "Or leave (EMIT CHANGES) out", given)
        assert word in changes


def test_another_query_runs_with_a_checkpoint_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    query = "SELECT STREAM x, COUNT(*) AS c FROM s GROUP BY FLOOR(s.ROWTIME TO {}), x"

    def run(unit: str, check: str) -> int:
        counts: list[int] = []
        pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(f"CREATE STREAM s (x STRING); {query.format(unit)}")
        for stream in pipeline.compile().defines:
            pipeline.home.define(stream.name, stream.as_json(), replace=True)
        with rt.writer("s", home=tmp_path / "home") as log:
            if not log.position:
                log.insert([{"x": "a", "rowtime": 1}, {"x": "b", "rowtime": 2}])
                log.set_rowtime_bound(10**12)
        pipeline.sink("result", lambda batch: counts.append(batch.count or 0)).run_available(tmp_path / check)
        return sum(counts)

    assert run("HOUR", "check") == 2
    with pytest.raises(rt.Refused) as refused:
        run("MINUTE", "check")
    assert [(p.code, "its own --checkpoint" in p.hint) for p in refused.value.problems] == [("R401", True)]
    assert run("MINUTE", "another") == 2
    assert run("HOUR", "check") == 0


@pytest.mark.parametrize("way", ["run --end", "bound … end --checkpoint DIR", "ends 'true'"])
def test_a_stream_over_files_ends_in_each_offered_way(way: str, spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"at": "2024-01-01T10:00:00Z"}\n')
    counted: list[int] = []

    def run(ends: str = "", *, end: bool = False) -> rt.Query:
        options = f"path '{tmp_path / 'in'}', rowtime.column 'at'{ends}"
        sql = f"CREATE STREAM f (at TIMESTAMP) USING json OPTIONS ({options}); SELECT STREAM COUNT(*) AS c FROM f "
        pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(sql + "GROUP BY FLOOR(f.ROWTIME TO HOUR)")
        pipeline.sink("result", lambda batch: counted.append(batch.count or 0))
        return pipeline.run_available(tmp_path / "check", end=end)

    run(", ends 'true'" if way.startswith("ends") else "")
    with pytest.raises(rt.Refused) as refused:
        rt.writer("f", home=tmp_path / "home")
    assert way in refused.value.problems[0].hint
    if way.startswith("bound"):
        assert sum(counted) == 0
        words = ["bound", "f", "end", "--checkpoint", str(tmp_path / "check"), "--home", str(tmp_path / "home")]
        said = CliRunner().invoke(app, words)
        assert said.exit_code == 0, said.output
    if not way.startswith("ends"):
        run(end=way == "run --end")
    assert sum(counted) == 1
