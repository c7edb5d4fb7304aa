"""Fixtures for all tests."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

os.environ.setdefault("ROWTIME_SMALL_TICKS", "driver")  # most tests are of operators; those of tasks ask for tasks


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--part 1/2`` runs the first of two parts of the tests; a test's name decides its part."""
    parser.addoption("--part", default="1/1", metavar="N/M", help="only this of so many parts of the tests")
    parser.addoption(
        "--rewrite-goldens", action="store_true", help="write the golden files, and the pages with outputs, anew"
    )


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Let a run fail that has skipped a test, if NO_SKIPS is set: CI installs all that these need."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", ()) if reporter is not None else ()
    if skipped and os.environ.get("NO_SKIPS") and not hasattr(session.config, "workerinput"):
        reporter.write_line("")
        for report in skipped:
            reporter.write_line(f"SKIPPED, and nothing may be: {report.nodeid}: {report.longrepr[-1]}", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(tryfirst=True)  # slow tests are marked before ``-m`` selects
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    number, parts = map(int, config.getoption("--part").split("/"))
    for item in items:
        sampled = item.get_closest_marker("sampled")
        if sampled is not None and _number(item) % sampled.args[0]:
            item.add_marker(pytest.mark.slow)
    if parts > 1:
        others = [item for item in items if _number(item) % parts != number - 1]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if _number(item) % parts == number - 1]


INTERNAL = re.compile(r"(?<![\w.])__[a-z]\w*|\U0010ffff")  # columns of the engine, and the name for no writer


@pytest.fixture(scope="session", autouse=True)
def _no_message_has_an_internal_name() -> Iterator[None]:
    """A law over everything that tests see: no name that only the engine knows.

    That is every message, every reason for waiting, every traced row as text and as JSON, the output of each command
    (``status``, ``explain``, ``trace``, … in both forms) and every progress report of a run. Names that the user wrote
    may be repeated; R205 and R209 name the reserved ones.
    """
    from rowtime.api import query
    from rowtime.audit.traced import Traced
    from rowtime.core.errors import Problem
    from rowtime.plan.poisoned import Poisoned
    from rowtime.plan.waiting import Wait

    def of_problem(problem: Problem) -> str:
        return "" if problem.code in TELLS_RESERVED_NAMES else f"{problem.message} {problem.hint}"

    def written(problem: Problem) -> str:
        return problem.place.text if problem.place is not None else ""

    with pytest.MonkeyPatch.context() as patch:
        _checked(patch, Problem, of_problem, written)
        _checked(patch, Wait, str)
        _checked(patch, Poisoned, str)
        _checked(patch, Traced, lambda found: f"{found} {found.as_json()}")
        _commands_are_checked(patch)
        told = query.progress_of
        patch.setattr(query, "progress_of", lambda *given: _shown(told(*given)))
        yield


@pytest.fixture(scope="session", autouse=True)
def _what_operators_require_is_given() -> Iterator[None]:
    """A law over every plan that a test builds: each requirement is met, and no merge is redundant."""
    from rowtime.plan import program
    from tests.plan.requirement_law import broken

    made = program._Compiler.program

    def checked(compiler: program._Compiler) -> program.Program:
        found = made(compiler)
        if len(found.operators) <= LARGE_PLAN:
            assert list(broken(found.sinks)) == []
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(program._Compiler, "program", checked)
        yield


@pytest.fixture(scope="session", autouse=True)
def _an_operator_keeps_what_it_declares() -> Iterator[None]:
    """A law over every plan and tick of a test: all kept state is declared with its name, place and time column."""
    from rowtime.plan import program
    from rowtime.runtime.tick import RunningTick
    from tests.plan.declared_state import spark_types, undeclared, unfounded

    made, write, keep = program._Compiler.program, RunningTick.write, RunningTick.keep

    def checked(compiler: program._Compiler) -> program.Program:
        found = made(compiler)
        assert list(unfounded(found.operators)) == []
        return found

    def written(tick: RunningTick, node: Any, rows: Any, routes: Any) -> Any:
        types = spark_types(rows.schema)
        for name, route in routes.items():
            columns = {column: types[of] for column, of in route.columns.items()}
            assert list(undeclared(node, name, route.time, columns)) == []
        return write(tick, node, rows, routes)

    def kept(tick: RunningTick, node: Any, what: str, rows: Any, time: str) -> Any:
        assert list(undeclared(node, what, time, spark_types(rows.schema))) == []
        return keep(tick, node, what, rows, time)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(program._Compiler, "program", checked)
        patch.setattr(RunningTick, "write", written)
        patch.setattr(RunningTick, "keep", kept)
        yield


@pytest.fixture(scope="session", autouse=True)
def _batches_have_the_compiled_schema() -> Iterator[None]:
    """A law over every tick of a test: what a function gets has the names, types and order that were compiled."""
    from rowtime.runtime.sinks.callables import FunctionSink
    from rowtime.runtime.sinks.staging import TEXT_FORMATS, Stage
    from tests.plan.batch_schemas import misfits

    stage = Stage.__call__

    def staged(one: Stage, tick: Any, node: Any, delta: Any, before: Sequence[Any] = ()) -> Any:
        found = stage(one, tick, node, delta, before)
        if found and found["count"] and isinstance(one.sink, FunctionSink) and node.format not in TEXT_FORMATS:
            table = one._batch(tick.spark, tick.number, found, one._tables).table()
            assert list(misfits(node, tick.types(node), table.schema)) == []
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stage, "__call__", staged)
        yield


LARGE_PLAN = 300  # operators; larger plans would take minutes to check edge by edge


def _shown(found: Any) -> Any:
    assert INTERNAL.findall(str(found)) == [], found
    return found


def _commands_are_checked(patch: pytest.MonkeyPatch) -> None:
    """Check that no command in this process prints an internal name that was not part of its input."""
    from typer.testing import CliRunner

    invoke = CliRunner.invoke

    def checked(runner: CliRunner, app: Any, args: Any = None, *given: Any, **named: Any) -> Any:
        result = invoke(runner, app, args, *given, **named)
        tells = any(code in result.output for code in TELLS_RESERVED_NAMES)
        found = [name for name in INTERNAL.findall(result.output) if name not in str(args)]
        assert tells or not found, f"{args} shows {found}: {result.output}"
        return result

    patch.setattr(CliRunner, "invoke", checked)


def _checked(
    patch: pytest.MonkeyPatch, kind: type, shown: Callable[[Any], str], written: Callable[[Any], str] = lambda _: ""
) -> None:
    """Check that no ``kind`` is created whose text has an internal name that the user has not ``written``."""
    made = kind.__init__

    def init(one: Any, *given: Any, **named: Any) -> None:
        made(one, *given, **named)
        found = [name for name in INTERNAL.findall(shown(one)) if name not in written(one)]
        assert not found, f"{kind.__name__} shows {found}: {shown(one)}"

    patch.setattr(kind, "__init__", init)


TELLS_RESERVED_NAMES = ("R205", "R209")


def _number(item: pytest.Item) -> int:
    """A number that depends only on the name, not on other tests."""
    return crc32(item.nodeid.encode())


KAFKA_TESTS, DATABASE_TESTS = (Path(__file__).parent / name for name in ("kafka", "database"))


def _jars(session: pytest.Session) -> list[str]:
    """Return Kafka's connector and PostgreSQL's driver, if the tests need them and they are available.

    A JVM cannot load them later.
    """
    found: list[str] = []
    if any(KAFKA_TESTS in item.path.parents for item in session.items):
        from reliability.broker import find_connector

        found += find_connector().jars or []
    if any(DATABASE_TESTS in item.path.parents for item in session.items):
        from tests.database.postgres import driver_missing, jars, server_missing

        found += [] if server_missing() or driver_missing() else jars()
    return found


@pytest.fixture
def rewrite_goldens(request: pytest.FixtureRequest) -> bool:
    """True if the golden files, or the rows that pages show, are written again."""
    return bool(request.config.getoption("--rewrite-goldens"))


@pytest.fixture(params=["on the driver", "in tasks"])
def both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the test twice: all ticks are computed on the driver, and as tasks of Spark compute them."""
    from tests.ways import in_tasks

    way = str(request.param)
    if way == "in tasks":
        in_tasks(monkeypatch, 2)
    return way


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """A small local Spark session in UTC and ANSI mode, one for the whole run."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    jars = _jars(request.session)
    builder = SparkSession.builder.master("local[2]")
    if jars:
        builder = builder.config("spark.jars", ",".join(jars))
    if any({"spark", "bucket"} <= {*getattr(item, "fixturenames", ())} for item in request.session.items):
        from tests.stores.server import spark_jars

        builder = builder.config("spark.driver.extraClassPath", os.pathsep.join(spark_jars()))
    session = (
        builder.appName("rowtime-tests")
        .config("spark.ui.enabled", "false")
        # A session runs thousands of ticks of a few rows, for which the second compiler costs more than it gains.
        # Without it the compiled code has 48 MiB, which are full after a minute; then nothing more would be compiled.
        .config(
            "spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
        )
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.ansi.enabled", "true")
        .getOrCreate()
    )
    yield session
    session.stop()
