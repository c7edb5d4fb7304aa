"""A row whose expression cannot be computed is MALFORMED at the gate of its query; the others go on."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

import rowtime as rt
from rowtime.frames.failures import of_a_value
from rowtime.frames.queries import Query, Uncomputed
from rowtime.runtime import analysis
from rowtime.runtime.faults import naming_java
from rowtime.sql import sizes
from rowtime.sql.generate import to_spark
from rowtime.sql.script import parse_expression
from tests.ways import in_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """
CREATE STREAM a (n BIGINT, k STRING) ;
CREATE STREAM o (part DOUBLE, n INT);
CREATE VIEW parts AS SELECT STREAM 12 / n AS part, CAST(k AS INT) AS number, n FROM a;
CREATE PUMP p AS INSERT INTO o SELECT STREAM part, n FROM parts WHERE n <> 9 AND 100 / (n - 4) < 1000;
CREATE PUMP bad AS INSERT INTO broken SELECT STREAM part, n, raw_record, position FROM p.rejected;
CREATE PUMP counts AS INSERT INTO sums SELECT STREAM FLOOR(x.ROWTIME TO MINUTE) AS m, SUM(number) AS total
  FROM parts AS x GROUP BY FLOOR(x.ROWTIME TO MINUTE);
"""
DEFINED = (
    "CREATE STREAM broken (part DOUBLE, n BIGINT, why STRING, at BIGINT); CREATE STREAM sums (m TIMESTAMP, t BIGINT);"
)
ROWS = [(1, "1"), (0, "2"), (2, "x"), (4, "3"), (2**40, "4"), (9, "5"), (3, "6")]


def run(spark: SparkSession, folder: Path, cuts: list[int], sql: str = SQL) -> tuple[rt.Query, dict[str, list[Any]]]:
    got: dict[str, list[Any]] = {name: [] for name in ("o", "broken", "sums")}
    first, query = 0, None
    for upto in cuts:
        pipeline = rt.Pipeline(spark, home=folder / "home").sql(DEFINED + sql)
        for stream in pipeline.compile().defines:
            pipeline.home.define(stream.name, stream.as_json(), replace=True)
        for name, rows in got.items():
            pipeline.sink(name, lambda b, to=rows: to.extend(b.table().to_pylist()) if b.count else None)
        with rt.writer("a", home=folder / "home") as log:
            log.insert(
                [
                    {"n": n, "k": k, "rowtime": f"2024-01-01 10:00:{at:02}"}
                    for at, (n, k) in enumerate(ROWS[first:upto], first)
                ]
            )
            if upto == len(ROWS):
                log.end()
        first = upto
        query = pipeline.run_available(folder / "check")
    assert query is not None
    return query, got


@pytest.mark.parametrize("cuts", [[7], pytest.param([1, 2, 5, 7], marks=pytest.mark.slow)])
def test_the_other_rows_pass_in_any_cut(spark: SparkSession, tmp_path: Path, cuts: list[int]) -> None:
    query, got = run(spark, tmp_path, cuts)
    assert [(row["part"], row["n"]) for row in got["o"]] == [(12.0, 1), (6.0, 2), (4.0, 3)], "x is not asked for"
    broken = [(row["part"], row["n"], row["at"]) for row in got["broken"]]
    assert broken == [(None, 0, 1), (3.0, 4, 3), (12 / 2**40, 2**40, 4)]
    assert query.ledger["p"] == {"in": 6, "accepted": 3, "MALFORMED": 3}, "one of them is no INT; 9 is filtered out"
    assert [row["t"] for row in got["sums"]] == [1 + 2 + 3 + 4 + 5 + 6], "groups ask for the number alone"
    assert query.ledger["counts"] == {"in": 1, "accepted": 0, "MALFORMED": 1}
    rows = [row for path in query.rejected("counts") for row in pq.read_table(path).to_pylist()]
    assert [(row["n"], row["position"]) for row in rows] == [(2, 2)]
    found = rt.verify(
        tmp_path / "check",
        rt.Pipeline(spark, home=tmp_path / "home")
        .sql(DEFINED + SQL)
        .sink("o", print)
        .sink("broken", print)
        .sink("sums", print),
    )
    assert found.equal, found


def test_the_script_may_ask_to_stop(spark: SparkSession, tmp_path: Path) -> None:
    stops = SQL.replace("< 1000;", "< 1000 ON ERROR STOP;")
    why = r"R514 p: .*12 / `n`.* cannot be computed at 2024-01-01 10:00:01.*DIVIDE_BY_ZERO"
    with pytest.raises(rt.Failure, match=why):
        run(spark, tmp_path, [7], stops)
    given = stops.replace("12 / n AS part", "try_divide(12, n) AS part").replace("CAST(k", "TRY_CAST(k")
    given = given.replace("100 / (n - 4)", "100 / NULLIF(n - 4, 0)")
    _, got = run(spark, tmp_path / "as the hint says", [7], given)
    assert [row["n"] for row in got["broken"]] == [2**40], "a column of the stream cannot hold it"


def test_a_tick_that_cannot_be_computed_has_a_code(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not for the value of a row: DuckDB has too little memory, say."""
    rows, broken = Query.rows, True

    def without_memory(query: Query) -> Any:
        if broken:
            raise Uncomputed("Out of Memory Error: could not allocate block")
        return rows(query)

    monkeypatch.setattr(Query, "rows", without_memory)
    with pytest.raises(rt.Failure, match=r"R515 the tick cannot be computed: .*could not allocate block"):
        run(spark, tmp_path, [7])
    broken = False
    _, got = run(spark, tmp_path, [7])  # "start again"
    assert got["o"]


def test_an_error_of_java_has_a_code(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's optimizer raises what its parser of JSON does."""
    monkeypatch.setattr(analysis, "failing_literals", lambda *_: ())
    json = "SELECT STREAM part, n FROM parts WHERE SCHEMA_OF_JSON('{') <> 'x' ON ERROR STOP;"
    sql = SQL.replace("SELECT STREAM part, n FROM parts WHERE n <> 9 AND 100 / (n - 4) < 1000;", json)
    sql = sql.replace("12 / n", "12.0D").replace("CAST(k AS INT)", "1")
    with pytest.raises(rt.Failure, match=r"R514 p: SCHEMA_OF_JSON.* cannot be computed .*Unexpected end-of-input"):
        run(spark, tmp_path, [7], sql)
    _, got = run(spark, tmp_path / "changed", [2], sql.replace("'{'", "'{}'"))
    assert [row["n"] for row in got["o"]] == [1, 0], "as the hint says"


def test_a_python_worker_that_ends_is_no_fault_of_the_query(spark: SparkSession) -> None:
    with pytest.raises(rt.Failure, match="R513 a Python worker of Spark has ended") as failed, naming_java():
        spark.range(1).mapInArrow(lambda _: os._exit(1), "x int").toArrow()
    assert "memory" in failed.value.problems[0].hint


def test_a_python_that_cannot_be_started_is_named_with_what_to_set() -> None:
    """The advice was to change the query."""
    error = Py4JError('x java.io.IOException: Cannot run program "/nowhere/python": error=2, No such file\n\tat y')
    said = r'R513 .* cannot start its Python workers: Cannot run program "/nowhere/python": error=2, No such file'
    with pytest.raises(rt.Failure, match=said) as failed, naming_java():
        raise error
    assert "PYSPARK_PYTHON" in failed.value.problems[0].hint


def test_columns_that_only_get_other_names_do_so_beside_a_row_that_fails(spark: SparkSession, tmp_path: Path) -> None:
    got: dict[str, list[Any]] = {"named": [], "halves": []}
    sql = """CREATE STREAM a (n INT);
      INSERT INTO a (ROWTIME, n) VALUES (TIMESTAMP '2024-01-01 10:00:00', 0), (TIMESTAMP '2024-01-01 10:00:01', 2);
      CREATE VIEW other AS SELECT STREAM b AS c FROM (SELECT STREAM n AS b FROM a);
      CREATE PUMP x AS INSERT INTO named SELECT STREAM c AS d FROM other;
      CREATE PUMP y AS INSERT INTO halves SELECT STREAM 10 / n AS d FROM a;
      ALTER STREAM a END"""
    pipeline = rt.Pipeline(spark, home=tmp_path).sql(sql)
    for name, rows in got.items():
        pipeline.sink(name, lambda b, to=rows: to.extend(b.table().to_pylist()) if b.count else None)
    pipeline.run_available(tmp_path / "check")
    assert [[row["d"] for row in rows] for rows in got.values()] == [[0, 2], [5.0]]


@pytest.mark.parametrize(
    ("query", "rows", "refused"),
    [
        ("SELECT STREAM n, 10 / n AS d, 10 / n + 1 AS e FROM a", [(1, 10.0, 11.0), (3, 10 / 3, 10 / 3 + 1)], 1),
        ("SELECT STREAM n, CAST(k AS INT) AS d FROM a WHERE CAST(k AS INT) > 1", [(3, 7)], 1),
        ("SELECT STREAM n FROM a WHERE 10 / n BETWEEN 0 AND 5", [(3,)], 1),
        ("SELECT STREAM n, IF(n > 0, n, raise_error(k)) AS d FROM a", [(1, 1), (3, 3)], 1),
        ("SELECT STREAM n, SIZE(SEQUENCE(1L, IF(n = 0, 3000000000L, n))) AS d FROM a", [(1, 1), (3, 3)], 1),
        ("SELECT STREAM 10 / n AS d, TO_CSV(STRUCT(n, k), MAP('sep', ';')) AS e FROM a",
         [(10.0, "1;1"), (10 / 3, "3;7")], 1),
        ("CREATE VIEW v AS SELECT STREAM n, 10 / n AS d, 10 / n + 1 AS e FROM a; SELECT STREAM n FROM v",
         [(1,), (0,), (3,)], 0),
    ],
    ids=["twice", "in two clauses", "between", "raised", "too long", "options", "unread"],
)  # fmt: skip
def test_a_row_fails_by_its_values_however_often_an_expression_stands_in_the_query(
    spark: SparkSession,
    tmp_path: Path,
    query: str,
    rows: list[tuple[Any, ...]],
    refused: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    in_tasks(monkeypatch, 2)
    (tmp_path / "in").mkdir()
    at = [datetime(2024, 1, 1, 10, 0, second, tzinfo=UTC) for second in range(3)]
    table = pa.table({"n": pa.array([1, 0, 3], pa.int32()), "k": ["1", "x", "7"], "at": pa.array(at)})
    pq.write_table(table, tmp_path / "in" / "0.parquet")
    declared = "CREATE STREAM a (n INT, k STRING, at TIMESTAMP) USING parquet OPTIONS (path '{}', rowtime.column 'at');"
    got: list[dict[str, Any]] = []
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(declared.format(tmp_path / "in") + query)
    pipeline.sink("result", lambda b: got.extend(b.table().drop_columns("rowtime").to_pylist()))
    ledger = pipeline.run_available(tmp_path / "check", end=True).ledger
    assert [tuple(row.values()) for row in got] == rows
    assert sum(counts.get("MALFORMED", 0) for counts in ledger.values()) == refused


@pytest.mark.parametrize("nested", ["SLICE(ARRAY(n), k, 1)", "MAP(n, k, n, k)", "NAMED_STRUCT('a', 1 / k)"])
def test_every_row_of_a_tick_may_fail_in_a_column_of_a_nested_type(
    spark: SparkSession, tmp_path: Path, nested: str
) -> None:
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(
        "CREATE STREAM a (n INT, k INT); INSERT INTO a (n, k) VALUES (1, 0), (2, 0); "
        f"SELECT STREAM {nested} AS x FROM a"
    )
    query = pipeline.sink("result", lambda _batch: None).run_available(tmp_path / "check")
    assert query.ledger["query"] == {"in": 2, "accepted": 0, "MALFORMED": 2}


LARGE = (
    "REPEAT('ab', n)", "REPEAT(k, n)", "REPEAT(n, n)", "SPACE(n)", "LPAD(k, n, 'x')", "RPAD(k, n)",
    "ARRAY_REPEAT(k, n)", "FORMAT_NUMBER(1.5, n)",
    "ARRAY_INSERT(ARRAY(1), n, 2)", "SEQUENCE(1, n)", "SEQUENCE(CAST(n AS BIGINT), 1)", "SEQUENCE(n, 0, -1)",
    "SEQUENCE(at, at + MAKE_DT_INTERVAL(0, 0, 0, n), INTERVAL '1' SECOND)",
    "SEQUENCE(DATE '2024-01-01', DATE '2024-01-01' + n, INTERVAL '1' DAY)", "REPEAT(LPAD(k, 2), n)",
)  # fmt: skip


@pytest.mark.parametrize("sent", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_row_is_refused_before_a_value_of_it_gets_too_large(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, sent: bool
) -> None:
    """Java ends if it is to make a text of 2^31 characters; here the limit is 20."""
    monkeypatch.setattr(sizes, "MOST", 20)
    if sent:
        in_tasks(monkeypatch, 2)
    sql = "CREATE STREAM a (n INT, k STRING, at TIMESTAMP); INSERT INTO a (n, k, at) VALUES " + ", ".join(
        f"({n}, 'k', TIMESTAMP '2024-01-01 10:00:00')" for n in (2, 30, 3)
    )
    pipeline = rt.Pipeline(spark, home=tmp_path / "home")
    pumps = [f"CREATE PUMP p{n} AS INSERT INTO o{n} SELECT STREAM {call} AS d FROM a" for n, call in enumerate(LARGE)]
    streams = [f"CREATE STREAM o{n} (d {_kind(call)})" for n, call in enumerate(LARGE)]
    pipeline.sql(";".join([sql, *streams, *pumps]))
    for n in range(len(LARGE)):
        pipeline.sink(f"o{n}", lambda _batch: None)
    ledger = pipeline.run_available(tmp_path / "check").ledger
    counted = {"in": 1, "accepted": 0, "MALFORMED": 1}
    assert {call: ledger.get(f"p{n}") for n, call in enumerate(LARGE)} == dict.fromkeys(LARGE, counted)


def _kind(call: str) -> str:
    of = "TIMESTAMP" if "at" in call else "DATE" if "DATE" in call else "BIGINT" if "BIGINT" in call else "INT"
    array = "STRING" if call.startswith("ARRAY_REPEAT") else of
    return f"ARRAY<{array}>" if call.startswith(("ARRAY", "SEQUENCE")) else "STRING"


@pytest.mark.parametrize(
    "call", ["REPEAT(k, 1000)", "LPAD(k, 9000000)", "SEQUENCE(1, 9000000)", "SEQUENCE(1, 20000000, 9)",
             "FORMAT_NUMBER(1.5, 9)", "FORMAT_NUMBER(1.5, '#,###.##')", "FORMAT_STRING('%9000000s', k)"]
)  # fmt: skip
def test_what_fits_is_accepted(call: str) -> None:
    assert rt.check(f"CREATE STREAM a (k STRING); SELECT STREAM {call} AS x FROM a") == []


@pytest.mark.parametrize(
    "call", ["REPEAT(k, 20000000)", "SPACE(20000000)", "SEQUENCE(1, 20000000)", "SEQUENCE(0, -90000000, -2)",
             "FORMAT_NUMBER(1.5, 20000000)", "FORMAT_STRING('%-20000000s', k)", "PRINTF('%.20000000f', 1.5D)"]
)  # fmt: skip
def test_a_literal_that_is_too_large_for_each_row_is_refused_by_check(call: str) -> None:
    problems = rt.check(f"CREATE STREAM a (k STRING); SELECT STREAM {call} AS x FROM a")
    assert [problem.code for problem in problems] == ["R107"]


def test_no_place_is_the_least_int(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Java has no amount of the least INT; here -2 is the least."""
    monkeypatch.setattr(sizes, "_LEAST", -2)
    rows: list[dict[str, Any]] = []
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(
        "CREATE STREAM a (n INT, t STRING); INSERT INTO a (n, t) VALUES (1, 'a,b'), (-2, 'c,d'), (-1, 'e,f'); "
        "CREATE STREAM o (x STRING); CREATE STREAM r (x STRING, y STRING, z STRING);"
        "CREATE PUMP p AS INSERT INTO o SELECT STREAM ELEMENT_AT(SPLIT(t, ','), n) AS x FROM a;"
        "CREATE PUMP q AS INSERT INTO r SELECT STREAM TRY_ELEMENT_AT(SPLIT(t, ','), n) AS x, SPLIT_PART(t, ',', n) "
        "AS y, ELEMENT_AT(MAP(n, t), n) AS z FROM a"
    )
    pipeline.sink("o", lambda _batch: None)
    pipeline.sink("r", lambda batch: rows.extend(batch.table().to_pylist()))
    ledger = pipeline.run_available(tmp_path / "check").ledger
    assert ledger["p"] == {"in": 1, "accepted": 0, "MALFORMED": 1}
    assert [(row["x"], row["y"], row["z"]) for row in rows] == [
        ("a", "a", "a,b"),
        (None, "d", "c,d"),
        ("f", "f", "e,f"),
    ]


def test_a_format_is_tested_where_it_is_computed() -> None:
    text = to_spark(parse_expression("PRINTF(t, n)"))
    assert "RLIKE" in text
    assert sizes.TOO_LARGE in text
    assert to_spark(parse_expression("PRINTF('%5d', n)")) == "PRINTF('%5d', n)"


@pytest.mark.parametrize("name", ["NegativeArraySize", "StringIndexOutOfBounds", "ArrayIndexOutOfBounds", "Arithmetic"])
def test_what_java_raises_for_a_value_is_of_a_value(name: str) -> None:
    assert of_a_value(PySparkException(f"Job aborted due to stage failure: java.lang.{name}Exception: -1"))
    assert not of_a_value(PySparkException("Job aborted due to stage failure: java.lang.IllegalStateException: -1"))


@pytest.mark.parametrize("sent", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_row_for_which_java_fails_is_refused_everywhere(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, sent: bool
) -> None:
    if sent:
        in_tasks(monkeypatch, 2)
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(
        "CREATE STREAM a (n INT); INSERT INTO a (n) VALUES (1), (-2147483648), (2); "
        "SELECT STREAM SUBSTRING_INDEX('a.b.c', '.', n) AS x FROM a"
    )
    query = pipeline.sink("result", lambda _batch: None).run_available(tmp_path / "check")
    assert query.ledger["query"] == {"in": 1, "accepted": 0, "MALFORMED": 1}
