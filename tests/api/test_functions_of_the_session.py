"""Functions that the session has registered, and Python functions by name: in every clause, with every cut."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pytest

import rowtime as rt
from rowtime.state.checkpoint import Checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.core.errors import Problem

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
STREAM = "CREATE STREAM a (k STRING, v BIGINT);\n"
CLAUSES = (
    STREAM
    + """CREATE VIEW some AS SELECT STREAM k, squared(v) AS w, v FROM a WHERE wanted(v) AND plus(v, 1) > 0;
SELECT STREAM shout(k) AS name, COUNT(*) AS n, SUM(halved(w)) AS total, MAX(plus_one(s.v)) AS most
FROM some AS s GROUP BY FLOOR(s.ROWTIME TO HOUR), shout(k) HAVING wanted(COUNT(*) * 2);
"""
)
ROWS = [(START + dt.timedelta(minutes=7 * n), "abc"[n % 3], n % 11) for n in range(60)]


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    """A session with a registered function of each kind."""
    from pyspark.sql.pandas.functions import arrow_udf, pandas_udf

    mine = spark.newSession()
    mine.udf.register("wanted", lambda v: v % 2 == 0, "BOOLEAN")
    mine.udf.register("plus", lambda v, w: v + w, "BIGINT")
    mine.udf.register("squared", pandas_udf(lambda v: v * v, "BIGINT"))  # type: ignore[call-overload]
    mine.udf.register("halved", arrow_udf(lambda v: pc.divide(v, 2), "BIGINT"))  # type: ignore[call-overload]
    mine.udf.register("shout", lambda k: f"{k.upper()}!", "STRING")
    mine.sql("CREATE TEMPORARY FUNCTION plus_one(x BIGINT) RETURNS BIGINT RETURN plus(x, 1)")
    return mine


def run(pipeline: rt.Pipeline, folder: Path, rows: Sequence[tuple[dt.datetime, str, int]], cut: int) -> list[Any]:
    """The rows of a query whose input comes in parts of ``cut`` rows, each in a run of its own."""
    got: list[dict[str, Any]] = []
    pipeline.sink("result", lambda batch: got.extend(batch.table().to_pylist() if batch.count else []))
    pipeline.run_available(folder / "check")
    for begin in range(0, len(rows), cut):
        with rt.writer("a", home=folder / "home", writer="w") as writer:
            writer.insert([{"rowtime": at, "k": k, "v": v} for at, k, v in rows[begin : begin + cut]])
        pipeline.run_available(folder / "check")
    return got


def expected() -> list[dict[str, Any]]:
    """The expected rows, computed by hand: hours that have ended."""
    groups: dict[tuple[dt.datetime, str], list[int]] = {}
    for at, k, v in ROWS:
        if v % 2 == 0 and v + 1 > 0:
            groups.setdefault((at.replace(minute=0), f"{k.upper()}!"), []).append(v)
    last = ROWS[-1][0].replace(minute=0)
    return [
        {"name": name, "n": len(vs), "total": sum(v * v // 2 for v in vs), "most": max(vs) + 1}
        for (hour, name), vs in sorted(groups.items())
        if hour < last
    ]


@pytest.mark.slow  # five kinds of functions
@pytest.mark.parametrize("cut", [23, 60])
def test_functions_of_each_kind_in_each_clause_give_the_same_however_rows_are_cut(
    session: SparkSession, tmp_path: Path, cut: int
) -> None:
    before = {name for (name, *_) in session.sql("SHOW USER FUNCTIONS").collect()}
    found = run(rt.Pipeline(session, home=tmp_path / "home").sql(CLAUSES), tmp_path, ROWS, cut)
    assert [{name: row[name] for name in ("name", "n", "total", "most")} for row in found] == expected()
    assert {name for (name, *_) in session.sql("SHOW USER FUNCTIONS").collect()} == before


@pytest.mark.slow
def test_a_function_does_not_change_during_a_run(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    session.udf.register("f", lambda v: v + 1, "BIGINT")
    got: list[int] = []
    pipeline = rt.Pipeline(session, home=tmp_path / "home").sql(STREAM + "SELECT STREAM f(v) AS w FROM a")
    pipeline.sink("result", lambda batch: got.extend(batch.table()["w"].to_pylist() if batch.count else []))
    query = pipeline.start(tmp_path / "check")
    try:
        session.udf.register("f", lambda v: v + 100, "BIGINT")
        with rt.writer("a", home=tmp_path / "home", writer="w") as writer:
            writer.insert([{"rowtime": START, "k": "a", "v": 1}])
        until = time.monotonic() + 60
        while not got and time.monotonic() < until and query.exception is None:
            time.sleep(0.1)
    finally:
        query.stop()
    assert got == [2]


def problems(session: SparkSession, folder: Path, sql: str) -> list[Problem]:
    pipeline = rt.Pipeline(session, home=folder / "home").sql(STREAM + sql)
    return pipeline.check_types(pipeline.compile())


@pytest.mark.slow  # several pipelines
def test_a_function_that_is_not_deterministic_is_refused_until_it_is_declared(
    spark: SparkSession, tmp_path: Path
) -> None:
    from pyspark.sql.functions import udf

    session = spark.newSession()
    session.udf.register("odd", udf(lambda v: v + 1, "BIGINT").asNondeterministic())
    sql = "SELECT STREAM SUM(odd(v)) AS w FROM a GROUP BY FLOOR(a.ROWTIME TO HOUR)"
    (told,) = problems(session, tmp_path, sql)
    assert (told.code, "pipeline.deterministic('odd')" in told.hint) == ("R111", True)
    with pytest.raises(rt.Refused, match="R111"):
        rt.Pipeline(session, home=tmp_path / "home").sql(STREAM + sql).run_available(tmp_path / "check")
    declared = rt.Pipeline(session, home=tmp_path / "home").sql(STREAM + sql).deterministic("odd")
    rows = [(START, "a", 1), (START, "a", 2), (START + dt.timedelta(hours=1), "a", 0)]
    assert [row["w"] for row in run(declared, tmp_path, rows, 2)] == [5]
    session.udf.register("odd", lambda v: v + 1, "BIGINT")
    assert problems(session, tmp_path, sql) == []
    with pytest.raises(rt.Refused, match="no function of Python with the name nobody"):
        rt.Pipeline(session, home=tmp_path / "home").sql(STREAM + sql).deterministic("nobody").run_available()


def test_other_functions_than_a_declared_one_are_still_refused(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql.functions import udf

    session = spark.newSession()
    session.udf.register("odd", udf(lambda v: v + 1, "BIGINT").asNondeterministic())
    session.udf.register("even", udf(lambda v: v + 1, "BIGINT").asNondeterministic())
    pipeline = rt.Pipeline(session, home=tmp_path / "home").sql(STREAM + "SELECT STREAM odd(v) + even(v) AS w FROM a")
    pipeline.deterministic("odd")
    (told,) = pipeline.check_types(pipeline.compile())
    assert (told.code, "even" in told.message) == ("R111", True)


def test_a_function_with_the_name_of_one_of_sparks_is_not_called(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    session.udf.register("upper", lambda k: "mine", "STRING")
    sql = STREAM + "SELECT STREAM upper(k) AS u FROM a"
    found = run(rt.Pipeline(session, home=tmp_path / "home").sql(sql), tmp_path, [(START, "a", 1)], 1)
    assert [row["u"] for row in found] == ["A"]


def test_an_aggregate_of_the_session_is_refused_and_is_a_function_of_a_list_instead(
    spark: SparkSession, tmp_path: Path
) -> None:
    from pyspark.sql.pandas.functions import PandasUDFType, pandas_udf

    session = spark.newSession()

    def spread(v):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - hints would say it instead of the type below
        return float(v.max() - v.min())

    session.udf.register("spread", pandas_udf(spread, "DOUBLE", PandasUDFType.GROUPED_AGG))
    (told,) = problems(session, tmp_path, "SELECT STREAM k, spread(v) AS s FROM a")
    assert (told.code, "spread(COLLECT_LIST(x))" in told.hint) == ("R107", True)
    session.udf.register("spread", lambda values: float(max(values) - min(values)), "DOUBLE")
    sql = STREAM + "SELECT STREAM spread(COLLECT_LIST(v)) AS s FROM a GROUP BY FLOOR(a.ROWTIME TO HOUR)"
    rows = [(START, "a", 1), (START, "a", 9), (START + dt.timedelta(hours=1), "a", 0)]
    found = run(rt.Pipeline(session, home=tmp_path / "home").sql(sql), tmp_path, rows, 2)
    assert [row["s"] for row in found] == [8.0]


@pytest.mark.slow
def test_a_function_that_fails_ends_the_run_and_once_it_is_fixed_the_tick_is_repeated(
    spark: SparkSession, tmp_path: Path
) -> None:
    session = spark.newSession()
    session.udf.register("inverse", lambda v: 1 / v, "DOUBLE")
    sql = STREAM + "SELECT STREAM v, inverse(v) AS w FROM a"
    rows = [(START, "a", 2), (START, "a", 0), (START, "a", 4)]
    with pytest.raises(
        rt.Failure, match=r"R512 .* raised ZeroDivisionError: division by zero \(<lambda>, line \d+ of .*\.py\)"
    ):
        run(rt.Pipeline(session, home=tmp_path / "home").sql(sql), tmp_path, rows, 3)
    session.udf.register("inverse", lambda v: 1 / v if v else None, "DOUBLE")
    fixed = rt.Pipeline(session, home=tmp_path / "home").sql(sql).renewed("inverse")
    found = run(fixed, tmp_path, [], 3)
    assert [(row["v"], row["w"]) for row in found] == [(2, 0.5), (0, None), (4, 0.25)]


def test_a_row_that_fails_beside_a_function_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    session.udf.register("same", lambda v: v, "BIGINT")
    sql = STREAM + "SELECT STREAM v, 12 DIV same(v) AS w FROM a WHERE same(v) < 5"
    rows = [(START, "a", 2), (START, "a", 0), (START, "a", 4), (START, "a", 7)]
    found = run(rt.Pipeline(session, home=tmp_path / "home").sql(sql), tmp_path, rows, 4)
    assert [(row["v"], row["w"]) for row in found] == [(2, 6), (4, 3)]


ARGUMENTS = (
    STREAM
    + """SELECT STREAM v, positive(12 DIV same(v)) AS w, CASE WHEN v > 0 THEN same(8 DIV v) END AS x,
  same(same(v) + CAST(k AS INT)) AS y FROM a WHERE v < 5 AND same(7 DIV (v - 3)) > -9 AND v <> 1
"""
)


@pytest.mark.slow  # five kinds of functions
@pytest.mark.parametrize("cut", [2, 9])
def test_a_row_with_an_argument_that_fails_is_refused_and_the_function_is_not_called(
    spark: SparkSession, tmp_path: Path, cut: int
) -> None:
    """The condition fails for v = 3, a column for v = 0, the inner argument for k = 'c'; filters drop 1, 7 and 9."""

    def positive(v: int) -> int:
        assert v > 0
        return v

    session = spark.newSession()
    session.udf.register("same", lambda v: v + 0, "BIGINT")  # a NULL would be lost
    session.udf.register("positive", positive, "BIGINT")
    given = [("1", 2), ("2", 0), ("3", 4), ("c", 2), ("5", 3), ("c", 1), ("6", 7), ("7", 9), ("8", 2)]
    rows = [(START + dt.timedelta(seconds=n), k, v) for n, (k, v) in enumerate(given)]
    pipeline = rt.Pipeline(session, home=tmp_path / "home").sql(ARGUMENTS)
    found = run(pipeline, tmp_path, rows, cut)
    assert [tuple(row[name] for name in "vwxy") for row in found] == [(2, 6, 4, 3), (4, 3, 2, 7), (2, 6, 4, 10)]
    totals = (Checkpoint(tmp_path / "check").journal.last() or {})["totals"]
    assert totals["query"]["MALFORMED"] == 3


def test_python_functions_have_names_several_arguments_and_types(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql.pandas.functions import pandas_udf

    pipeline = rt.Pipeline(spark, home=tmp_path / "home")
    assert pipeline.python_function(lambda v, w: v * w, "DOUBLE", "times") == "times"
    assert pipeline.python_function(pandas_udf(lambda v: v + 1, "BIGINT"), name="next_one") == "next_one"  # type: ignore[call-overload]
    unnamed = pipeline.python_function(lambda k: k * 2, "STRING")
    pipeline.sql(STREAM + f"SELECT STREAM times(v, 3) AS x, next_one(v) AS y, {unnamed}(k) AS z FROM a")
    found = run(pipeline, tmp_path, [(START, "a", 2), (START, "b", 5)], 1)
    assert [(row["x"], row["y"], row["z"]) for row in found] == [(6.0, 3, "aa"), (15.0, 6, "bb")]


def test_python_functions_without_a_type_or_with_a_name_that_is_taken_are_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    def made() -> rt.Pipeline:
        return rt.Pipeline(spark, home=tmp_path / "home").sql(STREAM + "SELECT STREAM v FROM a")

    with pytest.raises(rt.Refused, match=r"(?s)R107 .*python_function\(f, \"BIGINT\"\)"):
        made().python_function(lambda v: v)
    once = made()
    once.python_function(lambda v: v, "BIGINT", "f")
    with pytest.raises(rt.Refused, match="R203"):
        once.python_function(lambda v: v, "BIGINT", "F")
    for name, kind, code in (("upper", "STRING", "R203"), ("g", "NOTHING", "R107")):
        wrong = made()
        wrong.python_function(lambda v: v, kind, name)
        with pytest.raises(rt.Refused, match=code):
            wrong.run_available(tmp_path / "check")
