"""Another Spark is installed once, and gets every jar that somebody needs beside it."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from benchmarks import other_spark
from benchmarks.other_spark import installed, jars_in

TABLES, CATALOG = "org.tables:tables_2.13:1.12.0", "org.catalog:catalog-jdbc:3.50.3.0"


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """What is run to install; nothing is downloaded."""
    ran: list[str] = []

    def run(command: tuple[str | Path, ...], **_: Any) -> None:
        *_, last = words = [str(word) for word in command]
        ran.append(words[0] if "pip" in words[0] or "mvn" in words[0] else "venv")
        folder = Path(last.removeprefix("-DoutputDirectory="))
        if ran[-1] != words[0]:
            folder.mkdir()
        if ran[-1] == "mvn":
            _, name, version = words[-2].removeprefix("-Dartifact=").split(":")
            folder.mkdir(exist_ok=True)
            (folder / f"{name}-{version}.jar").touch()

    monkeypatch.setattr(other_spark, "BUILD", tmp_path)
    monkeypatch.setattr(subprocess, "run", run)
    return ran


def test_a_jar_that_another_caller_did_not_need_is_added(commands: list[str], tmp_path: Path) -> None:
    place = installed("4.1.1", [TABLES])
    assert installed("4.1.1", [TABLES, CATALOG]) == place == tmp_path / "spark-4.1.1"
    assert commands == ["venv", f"{place}/bin/pip", "mvn", "mvn"]
    files = [Path(file) for file in jars_in(place, [TABLES, CATALOG]).split(",")]
    assert [file.name for file in files] == ["tables_2.13-1.12.0.jar", "catalog-jdbc-3.50.3.0.jar"]
    assert all(file.exists() for file in files)
    assert jars_in(place, [TABLES]) == str(files[0])


def test_callers_at_the_same_time_install_it_once(commands: list[str]) -> None:
    with ThreadPoolExecutor(8) as pool:
        places = {*pool.map(lambda _: installed("4.1.1", [TABLES, CATALOG]), range(32))}
    assert len(places) == 1
    assert len(commands) == 4


def test_what_could_not_be_installed_is_tried_again(commands: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    good = subprocess.run

    def bad(command: tuple[str | Path, ...], **_: Any) -> None:
        raise subprocess.CalledProcessError(1, str(command[0]))

    monkeypatch.setattr(subprocess, "run", bad)
    with pytest.raises(subprocess.CalledProcessError):
        installed("4.1.1", [TABLES])
    monkeypatch.setattr(subprocess, "run", good)
    place = installed("4.1.1", [TABLES])
    assert commands == ["venv", f"{place}/bin/pip", "mvn"]
