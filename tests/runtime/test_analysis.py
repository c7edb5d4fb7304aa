"""Errors that only Spark finds in expressions are reported before the first tick, with their place (R107, R111)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rowtime as rt
from rowtime.plan.program import compile_script
from rowtime.runtime.analysis import _Analyst
from tests.goldens.scripts import scripts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.core.errors import Problem

STREAM = "CREATE STREAM a (v INT, s STRING, t TIMESTAMP, x ARRAY<INT>);\n"


def found(spark: SparkSession, folder: Path, *queries: str) -> list[Problem]:
    pipeline = rt.Pipeline(spark, home=folder / "home").sql(STREAM + ";\n".join(queries))
    return pipeline.check_types(pipeline.compile())


def marked(problem: Problem) -> str:
    assert problem.place is not None
    return problem.place.text[problem.place.column - 1 :][: problem.place.length]


def test_each_expression_that_spark_refuses_has_its_place(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    problems = found(
        spark,
        tmp_path,
        "SELECT STREAM v + 1 AS w, no_such(v) AS y, upper(s) || date_add(x, 1) AS z FROM a WHERE length(v, 2) > 1",
        "SELECT STREAM sum(x) AS n, sum(v) AS m FROM a GROUP BY FLOOR(a.ROWTIME TO HOUR)",
        "SELECT STREAM sum(v) AS m FROM a GROUP BY FLOOR(a.ROWTIME TO HOUR) HAVING sum(v) > array(1)",
        "SELECT STREAM s, sum(x) OVER (ORDER BY a.ROWTIME ROWS 3 PRECEDING) AS y FROM a",
        "SELECT STREAM a.v, b.v AS w FROM a OVER (RANGE INTERVAL '1' MINUTE PRECEDING) AS a"
        " JOIN a OVER (RANGE INTERVAL '1' MINUTE PRECEDING) AS b ON a.v = b.x",
    )
    assert {problem.code for problem in problems} == {"R107"}
    assert [(p.place.line, marked(p)) for p in problems if p.place] == [
        (2, "no_such(v)"),
        (2, "date_add(x, 1)"),
        (2, "length(v, 2)"),
        (3, "sum(x)"),
        (4, "array(1)"),
        (5, "sum(x)"),
        (6, "a.v = b.x"),
    ]
    assert "__" not in "".join(map(str, problems))
    assert "Exception" not in capfd.readouterr().err


def test_having_was_typed_only_once_the_aggregates_were_right(spark: SparkSession, tmp_path: Path) -> None:
    problems = found(
        spark,
        tmp_path,
        "SELECT STREAM sum(b.x) AS n, max(b.v) AS m FROM a AS b GROUP BY FLOOR(b.ROWTIME TO HOUR)"
        " HAVING max(b.v) > array(1) AND (sum(b.x) > 1 OR date_add(count(b.v), 1) IS NULL)",
        "SELECT STREAM b.v + b.x AS w, upper(b.v, 1) AS y FROM a AS b",
    )
    assert [(p.code, p.place.line, marked(p)) for p in problems if p.place] == [
        ("R107", 2, "sum(b.x)"),
        ("R107", 2, "array(1)"),
        ("R107", 2, "date_add(count(b.v), 1)"),
        ("R107", 3, "b.v + b.x"),
        ("R107", 3, "upper(b.v, 1)"),
    ]


def test_expressions_that_spark_accepts_have_no_problem(spark: SparkSession, tmp_path: Path) -> None:
    assert not found(
        spark,
        tmp_path,
        "SELECT STREAM now() AS n, curdate() AS d, unix_timestamp() AS u, localtimestamp() AS l, hex(s) AS h FROM a",
        "SELECT STREAM COLLECT_LIST(v) AS w, first(v) AS f, max_by(s, v, 2) AS m, mode(v) AS n, listagg(s) AS l,"
        " any(v > 1) AS o, percentile_cont(0.5) WITHIN GROUP (ORDER BY v) AS p"
        " FROM a GROUP BY FLOOR(a.ROWTIME TO HOUR), v + 1 HAVING sum(v) > 1",
        "SELECT STREAM s, SUM(v) OVER (PARTITION BY s ORDER BY a.ROWTIME ROWS 3 PRECEDING) AS w FROM a",
        "SELECT STREAM explode(transform(x, y -> y + v)) AS e FROM a",
        "SELECT STREAM s, COUNT(*) AS c FROM a GROUP BY SESSION(a.ROWTIME, INTERVAL '1' MINUTE), s",
        "SELECT STREAM SUM(v) AS w FROM a GROUP BY FLOOR(t TO HOUR) WITHIN INTERVAL '1' MINUTE",
    )


@pytest.mark.slow
def test_spark_accepts_all_expressions_that_the_driver_computes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Analyst, "_not_of_the_driver", lambda _analyst, _node, trees: [*trees])
    for script in scripts().values():
        pipeline = rt.Pipeline(spark, home=tmp_path / "home")
        program = compile_script(script.text, variables=script.variables)
        if not program.problems:
            assert pipeline.check_types(program) == [], script.text


@pytest.mark.parametrize(
    ("value", "codes"),
    [
        ("SUM({}) AS y FROM s GROUP BY FLOOR(s.ROWTIME TO HOUR)", ["R189"]),
        ("TRANSFORM(ARRAY(n), x -> {}) AS y FROM s", ["R189"]),
        ("MAKE_INTERVAL(1, n) AS y FROM s", ["R189"]),
        ("DATE '2024-01-01' + {} AS y FROM s", []),
        ("SOUNDEX('x') AS x, INTERVAL '1' DAY / n AS y, ARRAY(INTERVAL '1' SECOND * n) AS z FROM s", []),
    ],
)
def test_intervals_of_months_that_only_spark_recognizes_are_refused(
    spark: SparkSession, value: str, codes: list[str]
) -> None:
    months = "AGGREGATE(ARRAY(n), MAKE_YM_INTERVAL(0, 1), (a, x) -> a + MAKE_YM_INTERVAL(0, x))"
    pipeline = rt.Pipeline(spark).sql(f"CREATE STREAM s (n INT); SELECT STREAM {value.format(months)}")
    assert [problem.code for problem in pipeline.check_types(pipeline.compile())] == codes


@pytest.mark.parametrize(
    ("value", "typed"),
    [
        ("CASE WHEN n > 1 THEN NULL END AS y FROM s", "CASE WHEN n > 1 THEN CAST(NULL AS INT) END AS y FROM s"),
        ("ARRAY() AS y FROM s", "CAST(ARRAY() AS ARRAY<INT>) AS y FROM s"),
        ("NAMED_STRUCT('x', NULL) AS y FROM s", "NAMED_STRUCT('x', CAST(NULL AS INT)) AS y FROM s"),
        (
            "MAX(NULL) AS y FROM s GROUP BY FLOOR(s.ROWTIME TO HOUR)",
            "MAX(CAST(NULL AS INT)) AS y FROM s GROUP BY FLOOR(s.ROWTIME TO HOUR)",
        ),
        (
            "LAG(NULL) OVER (ORDER BY s.ROWTIME) AS y FROM s",
            "LAG(CAST(NULL AS INT)) OVER (ORDER BY s.ROWTIME) AS y FROM s",
        ),
        ("NULL AS y FROM s UNION ALL SELECT STREAM n AS y FROM s", "CAST(NULL AS INT) AS y FROM s"),
    ],
)
def test_a_null_without_a_type_is_refused_before_the_first_tick(spark: SparkSession, value: str, typed: str) -> None:
    """It ended the run without a code."""
    for text, codes in ((value, {"R189"}), (typed, set[str]())):
        script = f"CREATE STREAM s (n INT); SELECT STREAM {text}"
        pipeline, program = rt.Pipeline(spark).sql(script), compile_script(script)
        assert {problem.code for problem in program.problems or pipeline.check_types(program)} == codes


FAILING = (
    "SCHEMA_OF_JSON('{')", "SCHEMA_OF_CSV('')", "FROM_JSON(s, 'a INT', MAP('mode', 'DROPMALFORMED'))",
    "FROM_CSV(s, 'a INT', MAP('maxColumns', 'x'))", "TO_CSV(STRUCT(v), MAP('quote', 'abc'))",
    "AES_DECRYPT(s, '0000111122223333', 'XYZ')",
    "AES_ENCRYPT(s, '0000111122223333', 'ECB', 'NOPE')", "SPLIT_PART(s, ',', 0)", "ELEMENT_AT(x, 0)",
    "SLICE(x, 0, 1)", "MAKE_DATE(v, 13, 1)", "s LIKE 'a\\\\'", "CAST('x' AS INT)",
    "MAKE_TIMESTAMP(2024, 1, 1, 1, 1, 1, 'bad')", "SEQUENCE(1, 5, 0)", "NEXT_DAY(t, 'xx')",
)  # fmt: skip
COMPUTED = (
    "TO_DATE(s, 'dd.MM.yyyy')", "AES_DECRYPT(s, '0000111122223333')", "TO_NUMBER(s, '999')", "10 / v",
    "ELEMENT_AT(SPLIT(s, ','), 5)", "SPLIT(s, '=>')[3]", "x[3]", "FROM_CSV(s, 'a INT', MAP('sep', ';'))",
    "FROM_JSON(s, 'a INT', MAP('mode', 'FAILFAST'))", "XPATH_INT(s, 'a/b')", "PARSE_URL(s, 'HOST')",
    "MAKE_DATE(2024, v, 31)", "IF(v > 0, 1, RAISE_ERROR('x'))", "CASE WHEN v > 0 THEN v ELSE 1 / 0 END",
    "COALESCE(v, 1 / 0)", "v > 1 OR 1 / 0 > 1", "TRY_CAST('x' AS INT)", "TRY_TO_NUMBER('x', '999')",
    "10 / LENGTH(REGEXP_REPLACE(s, '[^=]', ''))", "ELEMENT_AT(x, INSTR(s, '='))", "SLICE(x, INSTR(s, '='), 2)",
    "CAST(ASSERT_TRUE(v > 100, 'no') AS INT)", "CAST(RAISE_ERROR(s) AS INT)",
    "v + 2147483647", "ARRAY_JOIN(TRANSFORM(x, y -> 10 / y), ',')",
    "CONVERT_TIMEZONE('UTC', s, CAST(t AS TIMESTAMP_NTZ))", "SEQUENCE(1, v, 2)",
    "SEQUENCE(t, t + MAKE_DT_INTERVAL(0, 0, 0, v), INTERVAL '1' MICROSECOND)", "TO_BINARY(s, 'base64')",
)  # fmt: skip


def test_calls_that_fail_for_every_row_by_their_literals_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    problems = found(spark, tmp_path, *(f"SELECT STREAM {call} AS y FROM a" for call in FAILING))
    assert [(p.code, marked(p)) for p in problems] == [("R107", call) for call in FAILING]
    assert all("fails for every row" in problem.message for problem in problems)


def test_a_pattern_that_spark_refuses_is_refused_before_spark_is_asked(spark: SparkSession, tmp_path: Path) -> None:
    call = "TO_JSON(STRUCT(t), MAP('timestampFormat', 'qqqqqq'))"
    with pytest.raises(rt.Refused) as refused:
        found(spark, tmp_path, f"SELECT STREAM {call} AS y FROM a")
    [problem] = refused.value.problems
    assert (problem.code, marked(problem)) == ("R107", call)


def test_aggregates_that_fail_for_every_group_by_their_literals_are_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    group = "FROM a GROUP BY FLOOR(a.ROWTIME TO HOUR)"
    failing = ("HLL_SKETCH_AGG(v, 50)", "APPROX_TOP_K(v, 0)", "PERCENTILE_APPROX(v, 2)", "PERCENTILE(v, -1)")
    problems = found(spark, tmp_path, *(f"SELECT STREAM {call} AS y {group}" for call in failing))
    assert [(p.code, marked(p)) for p in problems] == [("R107", call) for call in failing]
    good = ("HLL_SKETCH_AGG(v, 12)", "APPROX_TOP_K(v, 3)", "PERCENTILE_APPROX(v, 0.5, 100)", "COUNT_IF(v > 1)")
    more = ("LISTAGG(s, ',')", "APPROX_COUNT_DISTINCT(v, 0.1)", "MAX_BY(s, v, 2)", "COLLECT_SET(1)", "MODE(v)")
    assert found(spark, tmp_path, *(f"SELECT STREAM {call} AS y {group}" for call in (*good, *more))) == []


def test_calls_that_may_succeed_are_accepted(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert found(spark, tmp_path, *(f"SELECT STREAM {call} AS y FROM a" for call in COMPUTED)) == []
    assert capfd.readouterr().err == ""


def test_a_run_is_refused_before_it_writes_anything(spark: SparkSession, tmp_path: Path) -> None:
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(STREAM + "SELECT STREAM no_such(v) AS w FROM a")
    with pytest.raises(rt.Refused, match="NO_SUCH"):
        pipeline.run_available(tmp_path / "check")
    assert not (tmp_path / "home").exists()
    assert not (tmp_path / "check").exists()


def test_spark_says_which_functions_give_another_answer_each_time(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rowtime.expr.monotonicity.NON_DETERMINISTIC", frozenset())
    [problem] = found(spark, tmp_path, "SELECT STREAM v + element_at(shuffle(x), 1) AS w, v AS u FROM a")
    assert problem.code == "R111"
    assert marked(problem) == "shuffle(x)"


RANDOM = ["uniform(1, 9)", "randstr(8)", "shuffle(x)", "hex(aes_encrypt(s, s))",
          "reflect('java.util.UUID', 'randomUUID')",
          "java_method('java.lang.System', 'getenv', 'HOME')", "current_time()", "localtime()", "current_user()",
          "current_user", "session_user()", "user()", "current_catalog()", "current_database()", "version()",
          "input_file_name()", "try_reflect('java.util.UUID', 'randomUUID')", "rand(5)"]  # fmt: skip


@pytest.mark.parametrize("call", RANDOM)
def test_a_value_that_is_not_a_function_of_the_row_is_refused(call: str) -> None:
    [problem] = rt.check(f"{STREAM}SELECT STREAM {call} AS r FROM a")
    assert problem.code == "R111"


@pytest.mark.parametrize(
    "call", ["hex(aes_encrypt(s, s, 'ECB'))", "hex(aes_encrypt(s, s, 'GCM', 'DEFAULT', s))", "now()"]
)
def test_a_value_that_is_a_function_of_the_row_is_accepted(call: str) -> None:
    assert not rt.check(f"{STREAM}SELECT STREAM {call} AS r FROM a")


def test_the_logger_of_refusals_accepts_the_arguments_of_pyspark_before_any_thread_asks_for_it() -> None:
    code = (
        "import logging, rowtime.runtime.analysis; "
        "logging.getLogger('SQLQueryContextLogger').exception('refused', errorClass='DIVIDE_BY_ZERO')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT STREAM c || s AS x FROM b",
        "SELECT STREAM c || s AS x, COUNT(*) AS n FROM b GROUP BY FLOOR(b.ROWTIME TO MINUTE), c || s",
        "SELECT STREAM MAX(c || s) AS x FROM b GROUP BY FLOOR(b.ROWTIME TO MINUTE)",
        "CREATE VIEW w AS SELECT STREAM c || s AS x FROM b; SELECT STREAM UPPER(x) AS x FROM w WHERE UPPER(x) <> ''",
    ],
)
def test_a_text_of_two_collations_needs_one(spark: SparkSession, tmp_path: Path, query: str) -> None:
    stream = "CREATE STREAM b (c STRING COLLATE UNICODE_CI, s STRING)"
    problem = found(spark, tmp_path, stream, query)[0]
    assert (problem.code, marked(problem)) == ("R107", "c || s")
    assert "COLLATE" in (problem.hint or "")
    assert found(spark, tmp_path, stream, query.replace("c || s", "(c || s) COLLATE UNICODE_CI")) == []
    assert found(spark, tmp_path, stream, query.replace("c || s", "LENGTH(c || s)")) == []
