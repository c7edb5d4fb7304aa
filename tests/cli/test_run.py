"""``rowtime run``: results, progress and exit status of whole runs."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.dataset as ds
import pytest
from pyspark.logger import PySparkLogger

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from typer.testing import Result

pytestmark = pytest.mark.sampled(8)

CLICKS = """\
CREATE STREAM clicks (page STRING, n STRING);
INSERT INTO clicks (ROWTIME, page, n) VALUES
  ('2024-01-01 00:00:00', 'a', '1'), ('2024-01-01 00:00:30', 'b', '2'), ('2024-01-01 00:01:30', 'a', 'three');
"""
BY_MINUTE = (
    CLICKS
    + """\
SELECT STREAM FLOOR(c.ROWTIME TO MINUTE) AS m, COUNT(*) AS visits FROM clicks c GROUP BY FLOOR(c.ROWTIME TO MINUTE);
"""
)
TO_FILES = (
    CLICKS
    + """\
CREATE STREAM pages (page STRING) USING parquet OPTIONS (path 'out');
CREATE PUMP p AS INSERT INTO pages SELECT STREAM page FROM clicks;
"""
)


def test_standard_output_has_only_results(rowtime: Callable[..., Result], spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "by_minute.sql").write_text(BY_MINUTE)
    result = rowtime("run", "by_minute.sql", "--available-now")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "rowtime=2024-01-01 00:01:00  m=2024-01-01 00:00:00  visits=2\n"
    lines = result.stderr.splitlines()
    assert any(line.startswith("tick 0  +3 rows") and line.endswith("clicks at 2024-01-01 00:01:30") for line in lines)
    assert any(line.startswith("done: 3 rows in, 1 out, 0 refused, in 1 tick") for line in lines)
    assert any(line.startswith("still waiting: query.group holds 1 open group") for line in lines)
    assert (tmp_path / ".rowtime" / "checkpoints" / "by_minute" / "plan.json").exists()


@pytest.mark.parametrize("script", [CLICKS + "SELECT STREAM nothing FROM clicks;", "SELECT"], ids=["refused", "no SQL"])
def test_a_run_restores_the_loggers_of_the_process(rowtime: Callable[..., Result], tmp_path: Path, script: str) -> None:
    # A logger of another class would not accept PySpark's arguments.
    loggers = [logging.getLogger("rowtime"), PySparkLogger.getLogger("SQLQueryContextLogger")]
    before = [(logger.level, logger.propagate, list(logger.handlers)) for logger in loggers]
    (tmp_path / "script.sql").write_text(script)
    assert rowtime("run", "script.sql").exit_code
    assert [(logger.level, logger.propagate, list(logger.handlers)) for logger in loggers] == before


def test_progress_goes_to_standard_error_and_begins_before_spark_runs(
    rowtime: Callable[..., Result], spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "pages.sql").write_text(TO_FILES)
    result = rowtime("run", "pages.sql", "--available-now", "--checkpoint", "here", "--home", "home")
    assert result.exit_code == 0, result.stderr
    assert not result.stdout
    assert result.stderr.startswith("starting Spark …\n")
    assert "done: 3 rows in, 3 out" in result.stderr
    assert "p.sink: 3 rows in all, up to 2024-01-01 00:01:30" in result.stderr
    assert ds.dataset(tmp_path / "out").to_table()["page"].to_pylist() == ["a", "b", "a"]
    assert (tmp_path / "here" / "journal").is_dir()


def test_json_is_an_object_a_tick_and_a_summary(
    rowtime: Callable[..., Result], spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "pages.sql").write_text(TO_FILES)
    result = rowtime("run", "pages.sql", "--available-now", "--json")
    assert result.exit_code == 0, result.stderr
    *ticks, last = map(json.loads, result.stdout.splitlines())
    assert [tick["numInputRows"] for tick in ticks] == [3]
    assert {name: last["summary"][name] for name in ("ticks", "rows_in", "rows_out", "waiting")} == {
        "ticks": 1,
        "rows_in": 3,
        "rows_out": 3,
        "waiting": [],
    }


def test_a_failure_has_exit_status_3_and_leaves_its_traceback(
    rowtime: Callable[..., Result], spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "cast.sql").write_text(CLICKS + "SELECT STREAM CAST(n AS INT) AS n FROM clicks ON ERROR STOP;")
    result = rowtime("run", "cast.sql", "--available-now", "--checkpoint", "here")
    assert result.exit_code == 3
    assert "R514" in result.stderr
    assert "CAST_INVALID_INPUT" in result.stderr
    assert "Traceback" not in result.stderr
    kept = tmp_path / "here" / "last-error.txt"
    assert f"The full traceback is in {kept}." in result.stderr
    assert "Traceback" in kept.read_text()


def test_a_checkpoint_of_another_query_is_refused(
    rowtime: Callable[..., Result], spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "one.sql").write_text(TO_FILES)
    counts = "SELECT STREAM CAST(COUNT(*) AS STRING) AS page FROM clicks GROUP BY FLOOR(clicks.ROWTIME TO MINUTE);"
    (tmp_path / "two.sql").write_text(TO_FILES.replace("SELECT STREAM page FROM clicks;", counts))
    assert rowtime("run", "one.sql", "--available-now", "--checkpoint", "here").exit_code == 0
    result = rowtime("run", "two.sql", "--available-now", "--checkpoint", "here")
    assert result.exit_code == 1
    assert "R401" in result.stderr
    assert not (tmp_path / "here" / "last-error.txt").exists()

    # The first pipeline has written to the target. With the option that the refusal offers, and only with it, the other
    # continues there.
    other = rowtime("run", "two.sql", "--available-now", "--checkpoint", "there")
    assert other.exit_code == 1
    offered = re.search(r"rowtime run … (--take-over \S+)\)", other.stderr)
    assert offered, other.stderr
    assert rowtime("run", "two.sql", "--available-now", "--checkpoint", "there", *offered[1].split()).exit_code == 0
    assert "R441" in rowtime("run", "one.sql", "--available-now", "--checkpoint", "here").stderr


def test_a_script_of_definitions_defines_and_inserts(rowtime: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "clicks.sql").write_text(CLICKS)
    for _ in range(2):
        result = rowtime("run", "clicks.sql")
        assert result.stdout == "done: 1 stream defined, 1 statement carried out\n"
    assert rowtime("streams").stdout == "clicks (page STRING, n STRING)\n"
    assert len(list((tmp_path / ".rowtime" / "logs" / "clicks").rglob("r-*.parquet"))) == 3


def test_a_script_with_problems_is_refused_before_anything_is_written(
    rowtime: Callable[..., Result], tmp_path: Path
) -> None:
    (tmp_path / "bad.sql").write_text(CLICKS + "SELECT STREAM a FROM klicks;")
    result = rowtime("run", "bad.sql")
    assert result.exit_code == 1
    assert "R103" in result.stderr
    assert not (tmp_path / ".rowtime").exists()


@pytest.mark.slow
def test_an_interrupt_ends_a_continuous_run_after_its_tick(tmp_path: Path) -> None:
    (tmp_path / "by_minute.sql").write_text(BY_MINUTE)
    command = [sys.executable, "-c", "from rowtime.cli.main import main; main()", "run", "by_minute.sql"]
    source = str(Path(__file__).parents[2] / "src")
    running = subprocess.Popen(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": source},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stdout is not None
    first = running.stdout.readline()
    running.send_signal(signal.SIGINT)
    out, errors = running.communicate(timeout=120)
    assert running.returncode == 0, errors
    assert first + out == "rowtime=2024-01-01 00:01:00  m=2024-01-01 00:00:00  visits=2\n"
    assert "stopping after the current tick" in errors
    assert "done: 3 rows in, 1 out" in errors


def test_settings_and_jars_of_spark_reach_the_session_that_a_run_makes(
    process: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    (tmp_path / "some.jar").write_bytes(b"PK\x05\x06" + bytes(18))  # an empty archive
    (tmp_path / "run.sql").write_text(TO_FILES)
    code = (
        "from rowtime.cli.main import app\n"
        "import sys\n"
        "try: app(sys.argv[1:])\n"
        "except SystemExit as ended: assert not ended.code, ended.code\n"
        "from pyspark import SparkContext\n"
        "conf = SparkContext._active_spark_context.getConf()\n"
        "told = [conf.get('spark.' + name) for name in ('app.name', 'driver.memory', 'jars')]\n"
        "print(*told[:2], told[2].endswith('/some.jar'))\n"
    )
    asked = [
        "--small-ticks",  # otherwise the run may end before Spark has started
        "spark",
        "--conf",
        "spark.app.name=mine",
        "--conf",
        "spark.driver.memory=600m",
        "--jars",
        str(tmp_path / "some.jar"),
    ]
    done = process(code, "run", "run.sql", "--available-now", *asked)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "mine 600m True"


@pytest.mark.parametrize(
    ("arguments", "ui"), [([], None), (["--ui"], "true"), (["--ui", "--conf", "spark.ui.enabled=false"], "false")]
)
def test_the_console_turns_on_the_ui_of_spark_to_which_it_links(
    rowtime: Callable[..., Result],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    ui: str | None,
) -> None:
    (tmp_path / "run.sql").write_text(TO_FILES)
    found: list[dict[str, str]] = []
    monkeypatch.setattr("rowtime.cli.running.run_script", lambda *of, **_: found.append(of[5]))
    assert rowtime("run", "run.sql", *arguments).exit_code == 0
    assert found[0].get("spark.ui.enabled") == ui


def test_an_invalid_spark_setting_is_a_usage_error(rowtime: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "run.sql").write_text(TO_FILES)
    for wrong, said in {"spark.app.name": "KEY=VALUE", "app.name=mine": "not a Spark setting"}.items():
        for command in (["run"], ["check", "--spark"]):
            result = rowtime(*command, "run.sql", "--conf", wrong)
            assert (result.exit_code, said in result.stderr) == (2, True), result.stderr
    result = rowtime("check", "run.sql", "--jars", "some.jar")
    assert (result.exit_code, "only with" in result.stderr) == (2, True), result.stderr


def test_jars_and_packages_are_added_to_those_of_the_settings() -> None:
    from rowtime.cli.options import spark_conf

    found = spark_conf(["spark.jars=a.jar", "spark.x=1=2"], ["b.jar,c.jar", "d.jar"], ["g:a:1"])
    assert found == {"spark.jars": "a.jar,b.jar,c.jar,d.jar", "spark.x": "1=2", "spark.jars.packages": "g:a:1"}


@pytest.mark.slow  # a process with a Spark of its own
def test_a_script_calls_functions_of_a_module_beside_it_and_of_sql(
    process: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    (tmp_path / "prices.py").write_text("def with_tax(price, rate):\n    return price * (100 + rate) // 100\n")
    functions = (
        "CREATE FUNCTION with_tax(price BIGINT, rate INT) RETURNS BIGINT AS 'prices:with_tax';\n"
        "CREATE FUNCTION cents(n STRING) RETURNS BIGINT RETURN coalesce(TRY_CAST(n AS BIGINT), 0) * 100;\n"
    )
    query = "SELECT STREAM page, with_tax(cents(n), 19) AS cost FROM clicks WHERE with_tax(cents(n), 0) > 100;"
    (tmp_path / "run.sql").write_text(functions + CLICKS + query)
    done = process("from rowtime.cli.main import main; main()", "run", "run.sql", "--available-now")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "rowtime=2024-01-01 00:00:30  page=b  cost=238\n"
