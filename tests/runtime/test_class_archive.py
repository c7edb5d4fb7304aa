"""The archive of Java's classes: it belongs to one Java and one set of jars, and Java uses it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rowtime.core.errors import Failure
from rowtime.runtime import class_archive, jars
from rowtime.runtime.session import settings_for

MAPPED = """
from pathlib import Path
from pyspark import SparkContext
from rowtime.runtime.session import new_spark
new_spark()
maps = Path(f"/proc/{SparkContext._gateway.proc.pid}/maps").read_text()
print([line for line in maps.splitlines() if ".jsa" in line])
"""


@pytest.fixture
def spark_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "spark"
    (home / "jars").mkdir(parents=True)
    (home / "jars" / "a.jar").write_bytes(b"a")
    monkeypatch.setenv("SPARK_HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "my cache #1"))
    return home


def written_by(monkeypatch: pytest.MonkeyPatch, *, returncode: int = 0, writes: bool = True) -> None:
    """Replace the run that makes Java write the archive."""

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        if writes:
            Path(command[-1]).write_bytes(b"classes")
        return subprocess.CompletedProcess(command, returncode, "", "Traceback\nOSError: no space\n")

    monkeypatch.setattr(class_archive.subprocess, "run", run)


def test_another_java_or_other_jars_have_another_archive(
    spark_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = class_archive.place()
    assert first is not None
    assert first.parent == tmp_path / "my cache #1" / "rowtime"
    assert class_archive.place() == first
    (spark_home / "jars" / "b.jar").write_bytes(b"b")
    second = class_archive.place()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "java").chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    third = class_archive.place()
    assert len({first, second, third}) == 3


def test_java_uses_an_archive_that_exists(spark_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "spark.driver.defaultJavaOptions"
    assert class_archive.options() == []
    assert "SharedArchiveFile" not in settings_for("local[2]", (), {})[key]
    written_by(monkeypatch)
    path = class_archive.write()
    assert f'-XX:SharedArchiveFile="{path}"' in settings_for("local[2]", (), {})[key]
    assert settings_for("local[2]", (), {key: "-ea"})[key] == "-ea"
    (spark_home / "jars" / "b.jar").write_bytes(b"b")
    assert class_archive.options() == []
    newer = class_archive.write()
    assert [*jars.caches().iterdir()] == [newer]
    elsewhere = spark_home.rename(spark_home.with_name("another"))
    monkeypatch.setenv("SPARK_HOME", str(elsewhere))
    another = class_archive.write()
    assert {*jars.caches().iterdir()} == {newer, another}


@pytest.mark.parametrize("failure", [{"returncode": 1}, {"writes": False}])
def test_an_archive_that_is_not_written_leaves_nothing(
    failure: dict[str, Any], spark_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spark_home.exists()
    written_by(monkeypatch, **failure)
    with pytest.raises(Failure, match="R501 Java wrote no archive of its classes: OSError: no space"):
        class_archive.write()
    assert [*jars.caches().iterdir()] == []


def test_without_a_home_folder_there_is_no_archive(spark_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    assert spark_home.exists()
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", no_home)
    assert class_archive.options() == []
    with pytest.raises(Failure, match=r"R501 .*there is no home folder") as refused:
        class_archive.write()
    assert "XDG_CACHE_HOME" in str(refused.value)


@pytest.mark.slow  # it starts Spark twice and writes an archive of all its classes
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="the system does not say what a process maps")
def test_java_maps_the_archive_that_it_wrote(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "my cache #1")}

    def mapped() -> str:
        command = [sys.executable, "-c", MAPPED]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    assert "my cache #1" not in mapped()
    warm = [sys.executable, "-m", "rowtime", "warm", "--json"]
    subprocess.run(warm, env=environment, capture_output=True, text=True, check=True)
    assert "my cache #1/rowtime/classes-" in mapped()
