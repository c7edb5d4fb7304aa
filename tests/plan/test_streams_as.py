"""CREATE STREAM … AS SELECT: a stream with the columns of a query, and its pump."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rowtime as rt
from rowtime.plan.difference import statements_of
from rowtime.plan.program import compile_script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GIVEN = "CREATE STREAM s (k INT, v DOUBLE, t TIMESTAMP);"


def defined(script: str) -> dict[str, tuple[tuple[str, str], ...]]:
    """The streams of an accepted script, with their columns."""
    program = compile_script(GIVEN + script)
    assert [str(problem) for problem in program.problems] == []
    return {stream.name: stream.columns for stream in program.defines if stream.name != "s"}


@pytest.mark.parametrize(("definition", "columns"), [
    ("CREATE STREAM o AS SELECT STREAM k, v FROM s", [("k", "INT"), ("v", "DOUBLE")]),
    ("CREATE STREAM o AS SELECT STREAM * FROM s", [("k", "INT"), ("v", "DOUBLE"), ("t", "TIMESTAMP")]),
    ("CREATE STREAM o (a, b) AS SELECT STREAM k, v FROM s", [("a", "INT"), ("b", "DOUBLE")]),
    ("CREATE STREAM o (a) AS SELECT STREAM k FROM s", [("a", "INT")]),
    ("CREATE STREAM o (a BIGINT NOT NULL) AS SELECT STREAM k FROM s", [("a", "BIGINT")]),
    ("CREATE STREAM o (n BIGINT) AS SELECT STREAM COUNT(*) FROM s GROUP BY CEIL(s.ROWTIME TO DAY)", [("n", "BIGINT")]),
    ("CREATE STREAM o AS SELECT STREAM CAST(v * 2 AS INT) AS w FROM s", [("w", "INT")]),
    ("CREATE STREAM o AS SELECT STREAM t AS ROWTIME, k FROM s ORDER BY t WITHIN INTERVAL '1' MINUTE", [("k", "INT")]),
    ("CREATE STREAM o AS SELECT STREAM DISTINCT CEIL(ROWTIME TO DAY) AS d FROM s", [("d", "TIMESTAMP")]),
    ("CREATE STREAM o AS SELECT STREAM k FROM s UNION ALL SELECT STREAM k FROM s", [("k", "INT")]),
])  # fmt: skip
def test_a_stream_has_the_columns_of_its_query(definition: str, columns: list[tuple[str, str]]) -> None:
    assert defined(f"{definition}; SELECT STREAM * FROM o") == {"o": tuple(columns)}


COLUMNS = {
    "i": "INT", "b": "BIGINT", "f": "FLOAT", "d": "DOUBLE", "m": "DECIMAL(10, 2)", "w": "DECIMAL(36, 3)",
    "n": "DATE", "x": "STRING", "t": "TIMESTAMP",
}  # fmt: skip
GROUPED = [f"{call}({column})" for call in ("SUM", "AVG", "MAX") for column in "ibfdmw"]
GROUPED += ["COUNT(*)", "COUNT(DISTINCT x)", "MIN(n)", "FIRST(t)", "LAST(x)", "SUM(i) FILTER (WHERE i > 1)"]
ROWS = {
    "i": "i",
    "CAST(x AS DECIMAL(5, 1))": "",
    "FLOOR(t TO HOUR)": "DATE_TRUNC('HOUR', t)",
    "SUM(d) OVER (ROWS 3 PRECEDING)": "d",
}


@pytest.mark.parametrize(("asked", "end"), [
    ({entry: entry for entry in GROUPED}, "GROUP BY FLOOR(s.ROWTIME TO HOUR)"),
    ({entry: form or entry for entry, form in ROWS.items()}, ""),
])  # fmt: skip
def test_types_equal_those_of_spark(spark: SparkSession, asked: dict[str, str], end: str) -> None:
    """The type that is known without Spark equals Spark's type of the same expression."""
    declared = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    listed = ", ".join(f"{entry} AS c{number}" for number, entry in enumerate(asked))
    program = compile_script(f"CREATE STREAM s ({declared}); CREATE STREAM o AS SELECT STREAM {listed} FROM s {end}")
    assert [str(problem) for problem in program.problems] == []
    told = next(stream for stream in program.defines if stream.name == "o").columns
    rows = spark.sql("SELECT " + ", ".join(f"CAST(NULL AS {kind}) AS {name}" for name, kind in COLUMNS.items()))
    found = rows.selectExpr(*asked.values()).schema
    declared_types = spark.sql("SELECT " + ", ".join(f"CAST(NULL AS {kind})" for _, kind in told)).schema
    assert [field.dataType for field in declared_types] == [field.dataType for field in found]


def test_streams_may_read_each_other_in_any_order() -> None:
    script = "CREATE STREAM b AS SELECT STREAM k FROM v; CREATE VIEW v AS SELECT STREAM k FROM a WHERE k > 1;"
    assert defined(script + "CREATE STREAM a AS SELECT STREAM k FROM s") == {
        "a": (("k", "INT"),),
        "b": (("k", "INT"),),
    }


def test_each_problem_is_reported_once() -> None:
    for query, code in {"k, v + 1 AS w FROM s": "R148", "k FROM nowhere": "R103", "x FROM s": "R103"}.items():
        script = (
            f"CREATE STREAM o AS SELECT STREAM {query}; SELECT STREAM * FROM o; CREATE VIEW w AS SELECT STREAM * FROM o"
        )
        assert [problem.code for problem in rt.check(GIVEN + script)] == [code]
    (itself,) = rt.check(GIVEN + "CREATE STREAM o AS SELECT STREAM k FROM o")
    assert itself.code == "R103"
    again = "CREATE STREAM o AS SELECT STREAM k FROM s; INSERT INTO o SELECT STREAM k FROM s"
    assert [problem.code for problem in rt.check(GIVEN + again)] == ["R203"]


def test_its_operators_are_those_of_the_statement() -> None:
    assert set(statements_of("CREATE STREAM o AS SELECT STREAM k FROM s")) == {"o", "into_o"}


def test_it_runs_and_runs_again(spark: SparkSession, tmp_path: Path) -> None:
    script = f"""
      {GIVEN}
      CREATE STREAM o (a, b) USING parquet OPTIONS (path '{tmp_path / "out"}') AS SELECT STREAM k, v FROM s WHERE k > 1;
      INSERT INTO s (k, v) VALUES (1, 1.5), (2, 2.5);
    """
    for _ in range(2):
        query = rt.Pipeline(spark, home=tmp_path / "home").sql(script).run_available(tmp_path / "check", end=True)
        assert query.exception is None
    (row,) = spark.read.parquet(str(tmp_path / "out")).collect()
    assert (row["a"], row["b"]) == (2, 2.5)
