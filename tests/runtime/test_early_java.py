"""Java starts while a script is compiled, unless the words of the script say that its session needs more."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import SparkContext

from rowtime.runtime import session
from rowtime.runtime.session import launched_early

MAIN = "from rowtime.cli.main import main; main()"
PUMP = """CREATE STREAM s (v INT) USING parquet OPTIONS (path '{0}/in');
CREATE STREAM o (v INT) USING parquet OPTIONS (path '{0}/out');
CREATE PUMP p AS INSERT INTO o SELECT STREAM v FROM s;
"""
TEXTS = """CREATE STREAM s (v INT) USING parquet OPTIONS (path '{0}/in');
CREATE STREAM o (v INT, b STRING) USING parquet OPTIONS (path '{0}/out{1}');
CREATE PUMP p AS INSERT INTO o SELECT STREAM v, conv(CAST(v AS STRING), 10, 2) FROM s;
"""
SLEEPS = r"""case "$*" in
*launcher.Main*) printf '\n%s\0' "$0" ;;  # the command of Spark's Java
*) touch launched; exec sleep 300 ;;
esac"""
TAKEN = """
from pyspark import SparkContext
from rowtime.runtime.session import early_java, new_spark
with early_java("INSERT INTO o SELECT 1", {{"spark.app.name": "early"}}):
    from rowtime.runtime.session import _launched
    early = _launched[0]._process
    spark = new_spark(conf={})
print(spark.sparkContext.appName, spark.range(3).count(), early is SparkContext._gateway.proc, early.poll())
print(spark.sparkContext._jvm.java.lang.Runtime.getRuntime().maxMemory() < 2**30)
"""


def answer(code: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.slow  # a process with a Spark of its own
def test_the_session_is_in_the_java_that_was_launched_early() -> None:
    assert answer(TAKEN.format({"spark.app.name": "early"})) == ["early 3 True None", "False"]


@pytest.mark.slow  # a process with two of them
def test_a_session_with_other_settings_is_in_a_java_of_its_own() -> None:
    conf = {"spark.app.name": "other", "spark.driver.memory": "600m"}
    assert answer(TAKEN.format(conf)) == ["other 3 False -15", "True"]


@pytest.mark.parametrize(
    ("text", "launched"),
    [
        ("CREATE STREAM s (v INT); INSERT INTO s VALUES (1)", False),
        ("CREATE STREAM s (v INT); select STREAM v FROM s", True),
        ("CREATE PUMP p AS INSERT INTO o SELECT STREAM v FROM s\n/tmp/home", True),
        ("INSERT INTO o SELECT STREAM v FROM s\ns3://bucket/checkpoint", False),
        ("USING parquet OPTIONS (path 'abfss://a@b/c'); INSERT INTO o SELECT STREAM v FROM s", False),
        ("USING JDBC OPTIONS (url '${url}'); INSERT INTO o SELECT STREAM v FROM s", False),
        ("USING kafka OPTIONS (topic 't'); INSERT INTO o SELECT STREAM v FROM s", False),
    ],
)
def test_words_say_that_a_session_needs_more(monkeypatch: pytest.MonkeyPatch, text: str, *, launched: bool) -> None:
    begun: list[str] = []
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(session, "JavaProcess", Fake(begun))
    with session.early_java(text, {"spark.app.name": "named"}):
        assert begun == ["launched named"] * launched
    assert begun == ["launched named", "ended"] * launched


@pytest.mark.parametrize("variable", ["MASTER", "SPARK_REMOTE", "PYSPARK_GATEWAY_PORT"])
def test_nothing_is_launched_where_spark_runs(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    begun: list[str] = []
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(session, "JavaProcess", Fake(begun))
    monkeypatch.setenv(variable, "local")
    with launched_early({}):
        assert not begun


class Fake:
    """Launches nothing, and notes what would be launched and ended."""

    def __init__(self, begun: list[str]) -> None:
        self.begun = begun

    def __call__(self, settings: dict[str, str]) -> Fake:
        self.begun.append(f"launched {settings['spark.app.name']}")
        return self

    def end(self) -> None:
        self.begun.append("ended")


def begin(script: str, folder: Path, java: str = "", more: Sequence[str] = ()) -> subprocess.Popen[str]:
    """Begin to run a script, with a program as Java if one is given."""
    environment = {**os.environ, "TMPDIR": str(folder / "temporary")}
    (folder / "temporary").mkdir(exist_ok=True)
    if java:
        (folder / "bin").mkdir(exist_ok=True)
        (folder / "bin" / "java").write_text(f"#!/bin/sh\n{java}\n")
        (folder / "bin" / "java").chmod(0o755)
        environment["JAVA_HOME"] = str(folder)
    (folder / "run.sql").write_text(script)
    return subprocess.Popen(
        [sys.executable, "-c", MAIN, "run", "run.sql", *more],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def processes_in(folder: Path) -> list[str]:
    """Return the commands of processes whose temporary files are below a folder."""
    named = f"TMPDIR={folder}/temporary".encode()
    found: list[str] = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        try:
            if named in environment.read_bytes().split(b"\0"):
                found.append((environment.parent / "cmdline").read_bytes().decode().replace("\0", " "))
        except OSError:  # it has ended, or is somebody else's
            continue
    return found


def until_none_is_left(folder: Path) -> None:
    for _ in range(300):
        if not processes_in(folder):
            return
        time.sleep(0.1)


def test_a_small_run_ends_without_spark(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"v": pa.array([1, 2, 3], pa.int32())}), tmp_path / "in" / "a.parquet")
    run = begin(PUMP.format(tmp_path), tmp_path, SLEEPS, ["--available-now", "--json"])
    shown, errors = run.communicate(timeout=60)  # until nobody holds the pipes
    assert (run.returncode, errors) == (0, ""), shown
    assert pq.read_table(tmp_path / "out")["v"].to_pylist() == [1, 2, 3]
    assert (tmp_path / "launched").exists()
    assert processes_in(tmp_path) == []
    assert [*(tmp_path / "temporary").glob("rowtime-java-*")] == []


@pytest.mark.slow
@pytest.mark.parametrize("files", [1, 30])
def test_a_run_is_the_same_whether_or_not_it_waits_for_spark(tmp_path: Path, files: int) -> None:
    (tmp_path / "in").mkdir()
    for n in range(files):
        rows = pa.table({"v": pa.array(range(n * 100, n * 100 + 100), pa.int32())})
        pq.write_table(rows, tmp_path / "in" / f"{n}.parquet")
    found = []
    for conf in ([], ["--conf", "spark.ui.enabled=true", "--conf", "spark.ui.port=0"]):
        run = begin(
            TEXTS.format(tmp_path, len(conf)),
            tmp_path,
            more=["--available-now", "--json", "--home", f"h{len(conf)}", *conf],
        )
        shown, errors = run.communicate(timeout=120)
        assert (run.returncode, errors) == (0, ""), shown
        found.append(pq.read_table(tmp_path / f"out{len(conf)}").drop_columns(["rowtime"]).to_pylist())
    assert found[0] == found[1]
    assert len(found[0]) == files * 100


def test_only_a_script_that_needs_spark_says_that_it_does_not_start(tmp_path: Path) -> None:
    java = "echo 'no Java at all' >&2; exit 1"
    refused = begin(PUMP.format(tmp_path).replace("FROM s", "FROM t"), tmp_path, java)
    _, errors = refused.communicate(timeout=60)
    assert (refused.returncode, "R103" in errors, "Java" in errors) == (1, True, False), errors
    (tmp_path / "in").mkdir()
    failed = begin(TEXTS.format(tmp_path, ""), tmp_path, java)
    _, errors = failed.communicate(timeout=60)
    assert failed.returncode == 3
    assert "no Java at all" in errors
    assert "Spark did not start" in errors
    assert [*(tmp_path / "temporary").iterdir()] == []


@pytest.mark.parametrize("java", ["", SLEEPS], ids=["java", "no answer"])
def test_a_refused_script_leaves_nothing_of_the_start_behind(tmp_path: Path, java: str) -> None:
    refused = begin(PUMP.format(tmp_path).replace("FROM s", "FROM t"), tmp_path, java)
    _, errors = refused.communicate(timeout=60)  # until nobody holds the pipes
    assert (refused.returncode, "R103" in errors) == (1, True), errors
    assert (tmp_path / "launched").exists() == bool(java)
    assert processes_in(tmp_path) == []
    assert [*(tmp_path / "temporary").glob("rowtime-*")] == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("seconds", [0.7, 1.5, 3.0])
@pytest.mark.slow
def test_java_ends_with_a_run_that_is_killed_while_it_starts(tmp_path: Path, number: int, seconds: float) -> None:
    (tmp_path / "in").mkdir()
    run = begin(PUMP.format(tmp_path), tmp_path)
    time.sleep(seconds)
    assert processes_in(tmp_path)
    run.send_signal(number)
    run.wait(30)
    until_none_is_left(tmp_path)
    assert processes_in(tmp_path) == []
