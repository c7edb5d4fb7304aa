"""Which common expressions need a step of Catalyst in the job of a tick: these, for these reasons, and no others."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.runtime.executors.executor import InProcess
from rowtime.runtime.executors.tasks import Tasks

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

TEXTS: Final = (
    "UPPER(k)", "LOWER(k)", "TRIM(k)", "LENGTH(k)", "CHAR_LENGTH(k)", "SUBSTRING(k, 1, 3)", "k || s", "CONCAT(k, s)",
    "CONCAT_WS('-', k, s)", "REPLACE(k, 'a', 'b')", "k LIKE 'a%'", "k RLIKE 'a.*'", r"REGEXP_EXTRACT(k, '(\d+)', 1)",
    "REGEXP_REPLACE(k, 'a', 'b')", "SPLIT(k, ',')[0]", "SPLIT_PART(k, ',', 1)", "LEFT(k, 3)", "LPAD(k, 5, '0')",
    "INITCAP(k)", "INSTR(k, 'a')", "STARTSWITH(k, 'a')", "MD5(k)", "SHA2(k, 256)", "XXHASH64(k)",
)  # fmt: skip
NUMBERS: Final = (
    "ROUND(v, 1)", "ROUND(v)", "ROUND(m, 1)", "FLOOR(v)", "CEIL(v)", "ABS(v)", "v * 2", "n % 7", "MOD(n, 7)", "SQRT(v)",
    "LN(v)", "LOG10(v)", "EXP(v)", "POWER(v, 2)", "GREATEST(n, i)", "LEAST(n, i)", "CAST(v AS INT)", "CAST(k AS INT)",
    "CAST(k AS DOUBLE)", "CAST(m AS DOUBLE)", "CAST(v AS DECIMAL(10, 2))", "TRY_CAST(k AS INT)", "n / 2", "m / 3",
    "m * m", "SIGN(v)",
)  # fmt: skip
TIMES: Final = (
    "FLOOR(ts TO MINUTE)", "DATE_TRUNC('HOUR', ts)", "TO_DATE(ts)", "CAST(ts AS DATE)", "HOUR(ts)", "DAYOFWEEK(ts)",
    "EXTRACT(YEAR FROM ts)", "DATE_FORMAT(ts, 'yyyy-MM-dd')", "TO_TIMESTAMP(w)", "CAST(w AS TIMESTAMP)",
    "TO_TIMESTAMP(w, 'yyyy-MM-dd')", "UNIX_TIMESTAMP(ts)", "FROM_UNIXTIME(n)", "TIMESTAMP_MILLIS(n)",
    "TIMESTAMP_SECONDS(n)", "DATE_ADD(d, 1)", "DATEDIFF(d, d)", "ts + INTERVAL 1 HOUR", "UNIX_MILLIS(ts)",
    "TIMESTAMPDIFF(MINUTE, ts, ts)", "FROM_UTC_TIMESTAMP(ts, 'Europe/Paris')",
)  # fmt: skip
CONDITIONS: Final = (
    "CASE WHEN n > 1 THEN 'a' ELSE 'b' END", "COALESCE(k, s)", "NULLIF(k, s)", "IF(b, 1, 2)", "NVL(k, s)",
    "k IN ('a', 'b')", "n BETWEEN 1 AND 2", "k IS NULL", "b AND n > 1",
)  # fmt: skip
NESTED: Final = (
    "FROM_JSON(j, 'a INT').a", "GET_JSON_OBJECT(j, '$.a')", "TO_JSON(NAMED_STRUCT('a', n))", "a[0]", "SIZE(a)",
    "ARRAY_CONTAINS(a, 'x')", "TRANSFORM(a, x -> UPPER(x))", "PARSE_JSON(j)", "NAMED_STRUCT('a', n).a",
    "MAP('a', n)['a']",
)  # fmt: skip
SERIES: Final = "EXPLODE(a)"
AGGREGATES: Final = (
    "COUNT(*)", "COUNT(k)", "SUM(v)", "SUM(n)", "SUM(m)", "AVG(v)", "AVG(n)", "AVG(m)", "MIN(v)", "MAX(k)",
    "COUNT(DISTINCT k)", "APPROX_COUNT_DISTINCT(k)", "STDDEV(v)", "VAR_POP(v)", "MEDIAN(v)", "PERCENTILE(v, 0.5)",
    "PERCENTILE_APPROX(v, 0.5)", "FIRST(k)", "LAST(k)", "MAX_BY(k, v)", "COLLECT_LIST(k)", "COLLECT_SET(k)",
    "CORR(v, v)", "BOOL_OR(b)", "COUNT_IF(b)", "SUM(v) FILTER (WHERE b)", "MODE(k)", "LISTAGG(k, ',')",
)  # fmt: skip
NEEDS_CATALYST: Final = {
    "INITCAP(k)": "the tests' example of a value that only Spark computes",
    "XXHASH64(k)": "DuckDB has no such hash",
    "LN(v)": "the last digit of Java's differs from C's",
    "LOG10(v)": "as LN",
    "EXP(v)": "as LN",
    "FROM_UTC_TIMESTAMP(ts, 'Europe/Paris')": "DuckDB and Java have tables of time zones of their own",
    "PARSE_JSON(j)": "DuckDB has no VARIANT with the bytes of Spark's",
    "APPROX_COUNT_DISTINCT(k)": "it depends on Spark's sketch",
    "PERCENTILE_APPROX(v, 0.5)": "it depends on Spark's sketch",
}
START: Final = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
STREAM: Final = """CREATE STREAM e (at TIMESTAMP, k STRING, s STRING, w STRING, j STRING, n BIGINT, i INT, v DOUBLE,
m DECIMAL(10, 2), ts TIMESTAMP, d DATE, b BOOLEAN, a ARRAY<STRING>)
USING parquet OPTIONS (path '{path}', rowtime.column 'at');"""


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The stream of a few plain rows."""
    path, times = tmp_path_factory.mktemp("rows"), [START + dt.timedelta(seconds=n) for n in range(4)]
    columns = {
        "at": pa.array(times, pa.timestamp("us", "UTC")), "k": ["12", "7", "3", "5"], "s": ["x", "y", None, "z"],
        "w": [f"2024-01-0{n}" for n in range(1, 5)], "j": ['{"a": 1}', '{"a":null}', "{}", None],
        "n": pa.array([1, 2, 3, 4], pa.int64()), "i": pa.array([1, 2, 3, 4], pa.int32()), "v": [1.5, 2.5, 0.25, 3.0],
        "m": pa.array([Decimal("1.25")] * 4, pa.decimal128(10, 2)), "ts": pa.array(times, pa.timestamp("us", "UTC")),
        "d": pa.array([START.date()] * 4), "b": [True, False, None, True], "a": [["x"], ["y"], ["x", "z"], ["q"]],
    }  # fmt: skip
    pq.write_table(pa.table(columns), path / "0.parquet")
    return STREAM.format(path=path)


def with_catalyst(spark: SparkSession, folder: Path, script: str) -> list[str]:
    """Return the expressions that a tick asks Catalyst for."""
    pipeline = rt.Pipeline(spark, home=folder / "home", small_ticks="driver")
    pipeline.sql(script)
    rows: list[int] = []
    pipeline.sink("result", lambda batch: rows.append(batch.table().num_rows))
    engine = pipeline._engine(folder / "checkpoint", rt.Limits(), ends=True)
    engine.tasks = Tasks(InProcess(1))
    try:
        while engine.tick() is not None:
            pass
        assert not engine.tasks.needs
        assert sum(rows)
        return [part.sql for part in engine.tasks._questions.parts]
    finally:
        engine.stop()


def named(expressions: Sequence[str]) -> str:
    return ", ".join(f"{text} AS c{n}" for n, text in enumerate(expressions))


ROWS: Final = (*TEXTS, *NUMBERS, *TIMES, *CONDITIONS, *NESTED)


@pytest.mark.parametrize(("expressions", "behind"), [(ROWS, ""), (AGGREGATES, " GROUP BY FLOOR(e.ROWTIME TO MINUTE)")])
def test_only_these_common_expressions_need_catalyst(
    spark: SparkSession, tmp_path: Path, stream: str, expressions: Sequence[str], behind: str
) -> None:
    needed = {text for text in expressions if text in NEEDS_CATALYST}
    others = [text for text in expressions if text not in needed]
    assert not with_catalyst(spark, tmp_path / "others", f"{stream} SELECT STREAM {named(others)} FROM e{behind};")
    asked = with_catalyst(spark, tmp_path / "needed", f"{stream} SELECT STREAM {named([*needed])} FROM e{behind};")
    assert len(asked) == len(needed)


def test_a_row_of_each_element_needs_no_catalyst(spark: SparkSession, tmp_path: Path, stream: str) -> None:
    assert not with_catalyst(spark, tmp_path, f"{stream} SELECT STREAM {SERIES} AS v FROM e;")


def test_the_list_is_that_of_the_docs() -> None:
    assert len(ROWS) + len(AGGREGATES) + 1 == 119
    assert len(NEEDS_CATALYST) == 9
