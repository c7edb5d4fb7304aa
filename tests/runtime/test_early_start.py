"""Spark starts while a script is compiled, if the words of the script foretell the settings of its session."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark import SparkContext

from rowtime.runtime import jars, session
from rowtime.runtime.early_start import EarlyStart

MAIN = "from rowtime.cli.main import main; main()"
PUMP = """CREATE STREAM s (v INT) USING parquet OPTIONS (path '{0}/in');
CREATE STREAM o (v INT) USING parquet OPTIONS (path '{0}/out');
CREATE PUMP p AS INSERT INTO o SELECT STREAM v FROM s;
"""
TAKEN = """
import os
from pyspark import SparkContext
from rowtime.runtime.session import new_spark, start_early
start_early("INSERT INTO o SELECT 1", {"spark.app.name": "early", "spark.ui.enabled": "false"})
spark = new_spark(conf={"spark.app.name": "early", "spark.ui.enabled": "false"})
print(spark.sparkContext.appName, spark.range(3).count(), SparkContext._gateway.proc.poll())
"""
OTHER = """
import time
from pyspark import SparkContext
from rowtime.runtime.session import new_spark, start_early
start_early("INSERT INTO o SELECT 1", {"spark.app.name": "early", "spark.ui.enabled": "false"})
while SparkContext._gateway is None:
    time.sleep(0.01)
first = SparkContext._gateway.proc
spark = new_spark(conf={"spark.app.name": "other", "spark.driver.memory": "600m", "spark.ui.enabled": "false"})
first.wait(30)
context = spark.sparkContext
print(context.appName, spark.range(3).count(), context.getConf().get("spark.driver.memory"))
print(context._jvm.java.lang.Runtime.getRuntime().maxMemory() < 2**30)
"""


def answer(code: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.slow  # a process with a Spark of its own
def test_the_session_is_the_one_that_was_started_early() -> None:
    assert answer(TAKEN) == ["early 3 None"]


@pytest.mark.slow  # a process with two of them
def test_a_session_with_other_settings_is_another_in_a_java_of_its_own() -> None:
    assert answer(OTHER) == ["other 3 600m", "True"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("CREATE STREAM s (v INT); INSERT INTO s VALUES (1)", None),
        ("CREATE STREAM s (v INT); SELECT STREAM v FROM s", ""),
        ("CREATE PUMP p AS INSERT INTO o SELECT STREAM v FROM s", ""),
        ("INSERT INTO o SELECT STREAM v FROM s; -- gsutil, not kafka", ""),
        ("INSERT INTO o SELECT STREAM v FROM s; s3://bucket/checkpoint", None),
        ("USING parquet OPTIONS (path 'abfss://a@b/c'); INSERT INTO o SELECT STREAM v FROM s", None),
        ("USING jdbc OPTIONS (url 'jdbc:postgresql:x'); INSERT INTO o SELECT STREAM v FROM s", None),
        ("USING kafka OPTIONS (topic 't'); INSERT INTO o SELECT STREAM v FROM s", "k.jar"),
        ("USING kafka OPTIONS (topic 't', format 'avro'); INSERT INTO o SELECT STREAM v FROM s", None),
    ],
)
@pytest.mark.parametrize("fetched", [True, False])
def test_the_words_of_a_script_foretell_its_jars(
    monkeypatch: pytest.MonkeyPatch, text: str, found: str | None, *, fetched: bool
) -> None:
    begun: list[str] = []
    monkeypatch.setattr(jars, "kept", lambda _: fetched)
    monkeypatch.setattr(jars, "kafka_jars", lambda: ["k.jar"])
    monkeypatch.setattr(EarlyStart, "begin", lambda settings: begun.append(settings.get("spark.jars", "")))
    session.start_early(text, {})
    assert begun == ([] if found is None or (found == "k.jar" and not fetched) else [found])


@pytest.mark.parametrize("variable", ["MASTER", "SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"])
def test_no_second_spark_starts_beside_one(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setenv(variable, "local")
    EarlyStart.begin({})
    assert EarlyStart.taken({}) is None


def run(script: str, folder: Path, java: str) -> subprocess.CompletedProcess[str]:
    """Run a script with a program as Java."""
    for name in ("bin", "temporary"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "bin" / "java").write_text(f"#!/bin/sh\n{java}\n")
    (folder / "bin" / "java").chmod(0o755)
    (folder / "run.sql").write_text(script)
    command = [sys.executable, "-c", MAIN, "run", "run.sql"]
    environment = {**os.environ, "JAVA_HOME": str(folder), "TMPDIR": str(folder / "temporary")}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_only_a_script_that_needs_spark_tells_that_it_does_not_start(tmp_path: Path) -> None:
    java = "echo 'no Java at all' >&2; exit 1"
    refused = run(PUMP.format(tmp_path).replace("FROM s", "FROM t"), tmp_path, java)
    assert (refused.returncode, "R103" in refused.stderr, "Java" in refused.stderr) == (1, True, False), refused.stderr
    failed = run(PUMP.format(tmp_path), tmp_path, java)
    assert failed.returncode == 3
    assert "no Java at all" in failed.stderr
    assert "Spark did not start" in failed.stderr


def test_a_refused_script_leaves_nothing_of_the_start_behind(tmp_path: Path) -> None:
    java = f"touch {tmp_path}/launched; read line"  # its standard input ends with Python
    refused = run(PUMP.format(tmp_path).replace("FROM s", "FROM t"), tmp_path, java)
    assert (refused.returncode, (tmp_path / "launched").exists()) == (1, True)
    assert [*(tmp_path / "temporary").iterdir()] == []
