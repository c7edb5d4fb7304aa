"""The first hour: a new project works at once, and the doctor names what is missing."""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from rowtime.cli.init import STARTER
from rowtime.runtime import class_archive, health, jars, java

if TYPE_CHECKING:
    import subprocess

    from typer.testing import Result

    Rowtime = Callable[..., Result]
    Process = Callable[..., subprocess.CompletedProcess[str]]

MAIN = "from rowtime.cli.main import main; main()"


def lines(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for file in sorted(folder.glob("*.json")) for line in file.read_text().splitlines()]


# -- init -------------------------------------------------------------------------------


def test_a_new_project_runs_is_tested_and_verified(rowtime: Rowtime, tmp_path: Path) -> None:
    assert rowtime("init").exit_code == 0
    assert {name for name in STARTER if (tmp_path / name).is_file()} == {*STARTER}
    assert rowtime("check", "pipeline.sql").stdout == "ok: 6 statements\n"
    assert rowtime("run", "pipeline.sql", "--available-now").exit_code == 0
    hits = {(str(row["minute"])[11:16], row["page"], row["hits"]) for row in lines(tmp_path / "out/minutes")}
    assert hits == {("10:00", "cart", 1), ("10:00", "home", 2), ("10:01", "home", 1)}
    assert [row["reason"] for row in lines(tmp_path / "out/late")] == ["LATE"]
    assert rowtime("verify", ".rowtime/checkpoints/pipeline").exit_code == 0
    tested = rowtime("test", "tests")
    assert (tested.exit_code, tested.stdout.splitlines()[-1]) == (0, "1 passed, 0 failed")


def test_a_file_that_comes_later_is_read_by_the_next_run(rowtime: Rowtime, tmp_path: Path) -> None:
    assert rowtime("init").exit_code == 0
    assert rowtime("run", "pipeline.sql", "--available-now").exit_code == 0
    (tmp_path / "data/clicks-2.csv").write_text("page,at\ncart,2026-01-01 10:04:00\n")
    assert rowtime("run", "pipeline.sql", "--available-now").exit_code == 0
    hits = {(str(row["minute"])[11:16], row["page"], row["hits"]) for row in lines(tmp_path / "out/minutes")}
    assert hits == {
        ("10:00", "cart", 1),
        ("10:00", "home", 2),
        ("10:01", "home", 1),
        ("10:02", "cart", 1),
        ("10:02", "home", 1),
    }


def test_the_transcript_of_a_new_project_has_the_query_of_its_pipeline() -> None:
    text = {name: (Path(java.__file__).parents[1] / "cli/starter" / kept).read_text() for name, kept in STARTER.items()}
    query = text["pipeline.sql"].split("CREATE PUMP count_clicks AS INSERT INTO minutes\n")[1].split(";")[0]
    told = [line.strip() for line in query.splitlines()]
    assert "\n".join(told) in "\n".join(line.strip() for line in text["tests/a_minute_of_clicks.yaml"].splitlines())


def test_the_next_commands_can_be_copied_whatever_the_folder_is_called(rowtime: Rowtime) -> None:
    told = rowtime("init", "my shop #1").stdout.splitlines()[-1]
    assert told == "Next: cd 'my shop #1'; rowtime run pipeline.sql --available-now; rowtime test tests"


def test_init_overwrites_nothing(rowtime: Rowtime, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/Makefile").write_text("mine:\n")
    refused = rowtime("init", "work")
    assert refused.exit_code == 1
    assert "R215" in refused.stderr
    assert "work already has Makefile" in refused.stderr
    assert [one.name for one in (tmp_path / "work").iterdir()] == ["Makefile"]
    assert (tmp_path / "work/Makefile").read_text() == "mine:\n"
    assert "Name an empty folder." in refused.stderr
    assert rowtime("init", "empty").exit_code == 0


# -- doctor -----------------------------------------------------------------------------


def test_the_doctor_knows_that_the_newest_spark_may_have_no_connector(
    rowtime: Rowtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jars, "kept", lambda _: False)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr("pyspark.__version__", "4.99.0")
    kafka = told(rowtime("doctor", "--no-spark", "--json"))["Kafka"]
    assert (kafka["state"], kafka["todo"]) == (
        "missing",
        "For Kafka: pip install 'rowtime[kafka]', which takes a Spark that has one.",
    )
    assert "4.99.0 may not be published yet, but that of Spark 4.2.0 is" in kafka["found"]
    monkeypatch.setattr("pyspark.__version__", "4.2.0")
    assert told(rowtime("doctor", "--no-spark", "--json"))["Kafka"]["state"] == "ok"


def told(result: Result) -> dict[str, dict[str, str]]:
    return {one["name"]: one for one in json.loads(result.stdout)}


def test_the_doctor_says_how_starts_become_faster(
    rowtime: Rowtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    classes = told(rowtime("doctor", "--no-spark", "--json"))["Java's classes"]
    assert (classes["state"], classes["todo"].split(" (")[0]) == ("missing", "`rowtime warm` writes it")
    path = class_archive.place()
    assert path is not None
    path.parent.mkdir()
    path.touch()
    classes = told(rowtime("doctor", "--no-spark", "--json"))["Java's classes"]
    assert (classes["state"], classes["found"]) == ("ok", f"in the archive {path}")


@pytest.mark.slow  # a process with a Spark of its own
def test_the_doctor_starts_spark_and_runs_a_job_with_a_python_worker(process: Process) -> None:
    ended = process(MAIN, "doctor", "--json")
    assert ended.returncode == 0, ended.stderr
    found = {one["name"]: one for one in json.loads(ended.stdout)}
    assert found["Spark"]["found"].endswith("ran a job with a Python worker")
    assert {one["state"] for one in found.values()} <= {"ok", "missing", "warning"}


def test_the_doctor_reports_a_missing_and_an_old_java(
    rowtime: Rowtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(java, "PLACES", ())
    result = rowtime("doctor", "--no-spark")
    assert result.exit_code == 3
    assert "failed   Java: no java: JAVA_HOME is not set, and PATH has none" in result.stdout
    assert "openjdk-17-jre-headless" in result.stdout
    assert "Not ready: Java." in result.stderr

    command = tmp_path / "java"
    command.write_text("#!/bin/sh\necho '    java.specification.version = 11' >&2\n")
    command.chmod(0o755)
    found = told(rowtime("doctor", "--no-spark", "--json"))["Java"]
    assert (found["state"], found["found"]) == ("failed", f"11, {command}")


def test_the_doctor_reports_a_worker_of_another_python(
    rowtime: Rowtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "python3"
    other.write_text("#!/bin/sh\necho 3.9\n")
    other.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(other))
    found = told(rowtime("doctor", "--no-spark", "--json"))["PYSPARK_PYTHON"]
    assert found["state"] == "failed"
    assert found["found"].startswith(f"{other} is Python 3.9, and this is Python 3.")
    assert found["todo"].startswith("Set PYSPARK_PYTHON=")
    monkeypatch.setenv("PYSPARK_PYTHON", str(tmp_path / "none"))
    assert "does not run" in told(rowtime("doctor", "--no-spark", "--json"))["PYSPARK_PYTHON"]["found"]


def test_the_doctor_reports_full_disks_ports_in_use_and_missing_packages(
    rowtime: Rowtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health.shutil, "disk_usage", lambda _: SimpleNamespace(free=2**20))
    monkeypatch.setitem(health.EXTRAS, "delta", ("no-such-package-of-anybody", "Delta tables"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setattr("rowtime.cli.doctor.PORT", taken.getsockname()[1])
        result = rowtime("doctor", "--no-spark", "--json")
    found = told(result)
    assert result.exit_code == 3
    assert found["disk of the home"]["state"] == "failed"
    assert "SPARK_LOCAL_DIRS" in found["disk of the temporary folder"]["todo"]
    assert (found["port of the console"]["state"], found["port of the console"]["todo"]) == (
        "warning",
        "`rowtime ui --port 0` takes another one that is free.",
    )
    assert (found["delta"]["state"], found["delta"]["todo"]) == (
        "missing",
        "For Delta tables: pip install 'rowtime[delta]'",
    )


def test_the_extras_that_the_doctor_names_are_those_of_the_package() -> None:
    import tomllib

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    extras = {name: [one.split(">")[0] for one in needs] for name, needs in project["optional-dependencies"].items()}
    del extras["dev"], extras["kafka"], extras["postgres"]  # the latter two add no package that the doctor checks
    assert {*health.EXTRAS} == {*extras}
    assert all(package in extras[name] for name, (package, _) in health.EXTRAS.items())
