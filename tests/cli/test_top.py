"""``rowtime top`` shows the lines of the console's home page in a terminal."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rowtime.core.stores import ObjectPlace, place_of
from rowtime.state.checkpoint import Checkpoint
from rowtime.state.liveness import Sign, give_sign, note_failure
from rowtime.state.under_way import UnderWay
from tests.web.generated import Made

if TYPE_CHECKING:
    from typer.testing import Result


@pytest.fixture
def factory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The checkpoint of a stopped pipeline named factory, below the home directory."""
    monkeypatch.setenv("COLUMNS", "160")
    folder = tmp_path / ".rowtime" / "checkpoints" / "factory"
    folder.parent.mkdir(parents=True)
    Made(folder).make()
    return folder


def test_all_pipelines_of_a_home_are_a_table(rowtime: Callable[..., Result], factory: Path) -> None:
    (factory.parent / "empty").mkdir()
    result = rowtime("top", "--once")
    assert result.exit_code == 0, result.stderr
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines[0] == "pipeline state rows in rows out refused held freshness last tick"
    assert lines[1].startswith("empty unreadable ")
    assert lines[2].startswith("factory stopped 6,180 39 22 371 ")
    assert lines[3].startswith("empty: R405 ")


def test_a_failing_pipeline_is_reported_with_its_error(rowtime: Callable[..., Result], factory: Path) -> None:
    driver = Checkpoint(factory)
    driver.acquire()
    note_failure(driver.folder, OSError("[red]no space left"), 3, ended=False)
    text = rowtime("top", "--once").stdout
    driver.release()
    assert "retrying, try 3" in text
    assert "factory: OSError: [red]no space left" in text


def test_json_has_numbers_and_null_for_unknown_values(rowtime: Callable[..., Result], factory: Path) -> None:
    (factory.parent / "empty").mkdir()
    empty, found = json.loads(rowtime("top", "--json").stdout)
    assert (empty["state"], empty["tick"], empty["problems"][0]["code"]) == ("unreadable", None, "R405")
    assert (found["name"], found["state"], found["checkpoint"]) == ("factory", "stopped", str(factory))
    assert (found["rows_in"], found["rows_out"], found["rows_refused"], found["rows_held"]) == (6180, 39, 22, 371)
    assert found["freshness_seconds"] > 0


def test_a_checkpoint_is_named_by_its_folder_or_its_url(rowtime: Callable[..., Result], factory: Path) -> None:
    bucket = place_of(f"memory://{factory.parents[2].name}/factory")
    assert isinstance(bucket, ObjectPlace)
    for path in factory.rglob("*"):
        if path.is_file() and path.name != ".lock":
            (bucket / str(path.relative_to(factory))).upload(path)
    for given in (str(factory), str(bucket)):
        found = json.loads(rowtime("top", given, "--json").stdout)
        assert [(one["checkpoint"], one["rows_in"]) for one in found] == [(given, 6180)]


def test_a_home_without_pipelines_says_how_to_start_one(rowtime: Callable[..., Result]) -> None:
    result = rowtime("top", "--once")
    assert "There is no pipeline below" in result.stdout
    assert json.loads(rowtime("top", "--json").stdout) == []


def test_a_slow_tick_is_reported(rowtime: Callable[..., Result], factory: Path) -> None:
    driver = Checkpoint(factory)
    driver.acquire()
    began = time.time_ns() // 1000 - 12_500_000
    give_sign(
        factory, Sign(began, os.getpid(), under_way=UnderWay(7, began, "clock", 2_000, what="stream s: clock pass"))
    )
    try:
        text, [found] = rowtime("top", "--once").stdout, json.loads(rowtime("top", "--json").stdout)
    finally:
        driver.release()
    assert "factory: tick 7: clock pass (stream s: clock pass), 2,000 rows, for 1" in text
    assert found["under_way"]["part"] == "clock"
    assert found["doing"].startswith("tick 7: clock pass")
    assert json.loads(rowtime("top", "--json").stdout)[0]["doing"] == "", "no driver is at work"
