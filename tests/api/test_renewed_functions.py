"""If a Python function is not the one of the first start, the start is refused (R450) unless the user accepts it."""

from __future__ import annotations

import datetime as dt
import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.functions import pandas_udf, udf
from typer.testing import CliRunner

import rowtime as rt
from rowtime.cli.main import app
from rowtime.core.errors import Refused
from rowtime.runtime.function_pins import print_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
SCRIPT = """CREATE STREAM s (v BIGINT); CREATE STREAM o (w BIGINT) USING parquet OPTIONS (path '{at}/o');
CREATE PUMP p AS INSERT INTO o SELECT STREAM cost(v) AS w FROM s;"""
FACTOR = 2


def times(factor: int) -> Callable[[int], int]:
    return lambda v: factor * v


def documented(v: int) -> int:
    """Twice."""
    return 2 * v


def told(v: int) -> int:
    """Two times."""
    return 2 * v


def calling(called: Callable[[int], int]) -> Callable[[int], int]:
    names = {"helper": called}
    exec("def f(v):\n    return helper(v)", names)  # noqa: S102 - two functions of one text and other globals
    called.__module__ = "made"
    names["f"].__module__ = "made"
    return names["f"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (lambda v: 2 * v, lambda v: 2 * v, True),
        (lambda v: 2 * v, lambda v: 3 * v, False),
        (lambda v: 2 * v, lambda v: 2 + v, False),
        (lambda v: v.upper(), lambda v: v.lower(), False),
        (times(2), times(2), True),
        (times(2), times(3), False),
        (documented, told, True),
        (lambda v, n=1: v + n, lambda v, n=2: v + n, False),
        (lambda v: v in {"a", "b", "c"}, lambda v: v in {"c", "b", "a"}, True),
        (lambda v: v in {"a", "b", "c"}, lambda v: v in {"a", "b", "d"}, False),
        (functools.partial(pow, 2), functools.partial(pow, 2), True),
        (functools.partial(pow, 2), functools.partial(pow, 3), False),
        (functools.lru_cache(times(2)), functools.lru_cache(times(3)), False),
        (len, len, True),
        (len, abs, False),
        (lambda v: FACTOR * v, lambda v: FACTOR * v, True),
        (calling(lambda v: v + 1), calling(lambda v: v + 1), True),
        (calling(lambda v: v + 1), calling(lambda v: v + 2), False),
    ],
)
def test_a_function_is_identified_by_its_behaviour(one: Any, other: Any, same: bool) -> None:
    assert (print_of(one) == print_of(other)) is same


def test_a_function_of_pyspark_has_a_type_and_a_kind(spark: SparkSession) -> None:
    twice = times(2)
    made = (udf(twice, "BIGINT"), udf(twice, "INT"), pandas_udf(twice, "BIGINT"))  # type: ignore[call-overload]
    assert len({*map(print_of, made)}) == 3
    assert print_of(made[0]) == print_of(udf(twice, "BIGINT"))


def test_a_recursive_function_has_an_end() -> None:
    def down(v: int) -> int:
        return 0 if v <= 0 else down(v - 1)

    assert print_of(down) == print_of(down)


def given(spark: SparkSession, at: Path, way: str, function: Callable[..., Any]) -> rt.Pipeline:
    session = spark.newSession()
    if way == "session":
        session.udf.register("cost", function, "BIGINT")
    elif way == "pandas":
        session.udf.register("cost", pandas_udf(function, "BIGINT"))
    made = rt.Pipeline(session, home=at / "home").sql(SCRIPT.format(at=at))
    if way == "pipeline":
        made.python_function(function, "BIGINT", "cost")
    return made


def send(at: Path, second: int, v: int) -> None:
    with rt.writer("s", home=at / "home", writer="w") as writer:
        writer.insert([{"rowtime": START + dt.timedelta(seconds=second), "v": v}])


def rows(spark: SparkSession, at: Path) -> list[int]:
    return sorted(row.w for row in spark.read.parquet(f"{at}/o").select("w").collect())


@pytest.mark.parametrize(
    "way", ["session", *(pytest.param(way, marks=pytest.mark.slow) for way in ("pandas", "pipeline"))]
)
def test_a_changed_function_is_refused_until_it_is_confirmed(spark: SparkSession, tmp_path: Path, way: str) -> None:
    check = tmp_path / "check"
    given(spark, tmp_path, way, lambda v: 2 * v).run_available(check)
    send(tmp_path, 1, 1)
    given(spark, tmp_path, way, lambda v: 2 * v).run_available(check)
    send(tmp_path, 2, 2)
    changed = given(spark, tmp_path, way, lambda v: 3 * v)
    with pytest.raises(Refused, match=re.escape('pipeline.renewed("cost")')) as refused:
        changed.run_available(check)
    assert refused.value.problems[0].code == "R450"
    assert rows(spark, tmp_path) == [2]
    with pytest.raises(Refused, match="cost is not the one"):
        rt.verify(check, changed)
    assert not [
        one for one in rt.verify(check, given(spark, tmp_path, way, lambda v: 2 * v)).outputs if one.differences
    ]
    changed.renewed("COST").run_available(check)
    assert rows(spark, tmp_path) == [2, 6]
    send(tmp_path, 3, 3)
    given(spark, tmp_path, way, lambda v: 3 * v).run_available(check)
    assert rows(spark, tmp_path) == [2, 6, 9]
    with pytest.raises(Refused, match="cost was a different one before tick"):
        rt.verify(check, given(spark, tmp_path, way, lambda v: 3 * v))


def test_a_function_of_a_script_is_renewed_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    script = SCRIPT.format(at=tmp_path).replace(
        "CREATE PUMP", "CREATE FUNCTION cost(v BIGINT) RETURNS BIGINT AS 'costs_of_a_test:cost'; CREATE PUMP"
    )
    Path("p.sql").write_text(f"{script} INSERT INTO s (ROWTIME, v) VALUES (TIMESTAMP '2024-01-01 10:00:00', 1);")

    def run(factor: int, *more: str) -> Any:
        import sys

        Path("costs_of_a_test.py").write_text(f"def cost(v):\n    return {factor} * v\n")
        sys.modules.pop("costs_of_a_test", None)
        return CliRunner().invoke(app, ["run", "p.sql", "--available-now", "--home", "home", *more])

    assert run(2).exit_code == 0
    refused = run(34)
    assert refused.exit_code != 0
    assert "R450" in refused.output
    assert run(34, "--renewed", "cost").exit_code == 0
    assert run(34).exit_code == 0


def test_functions_that_a_script_does_not_call_may_change(spark: SparkSession, tmp_path: Path) -> None:
    for factor in (2, 3):
        made = given(spark, tmp_path, "pipeline", lambda v: 2 * v)
        made.python_function(times(factor), "BIGINT", "cost_of_others")
        made.run_available(tmp_path / "check")


@pytest.mark.slow
def test_a_migration_computes_all_with_the_functions_of_today(spark: SparkSession, tmp_path: Path) -> None:
    check = tmp_path / "check"
    given(spark, tmp_path, "pipeline", times(2)).run_available(check)
    send(tmp_path, 1, 1)
    given(spark, tmp_path, "pipeline", times(2)).run_available(check)
    other = SCRIPT.format(at=tmp_path).replace("cost(v) AS w", "cost(v) + 1 AS w").replace("PUMP p ", "PUMP q ")
    made = rt.Pipeline(spark.newSession(), home=tmp_path / "home").sql(
        other.replace("/o'", "/q'").replace("STREAM o ", "STREAM r ").replace("INTO o ", "INTO r ")
    )
    made.python_function(times(3), "BIGINT", "cost")
    rt.migrate(check, made)
    made.run_available(check)
    assert [row.w for row in spark.read.parquet(f"{tmp_path}/q").collect()] == [4]
    assert not any(one.differences for one in rt.verify(check, made).outputs)
