"""Files are read from local paths also if Spark's default file system is another one."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reliability.crash.cases import Case, close
from rowtime.runtime import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def states(spark: SparkSession, case: Case) -> list[Any]:
    engine = case.engine(spark)
    found = []
    while engine.tick() is not None:
        found.append(case.state())
    close(engine)
    return found


@pytest.mark.parametrize("number", [2, pytest.param(5, marks=pytest.mark.slow)])  # a stream log and its state; files
def test_no_path_is_left_to_the_default_file_system(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    case, moved = (Case(number, tmp_path / name) for name in ("plain", "odd [a] {b}"))
    case.make()
    shutil.copytree(case.folder, moved.folder)
    wanted = states(spark, case)
    monkeypatch.setattr(session, "_CONF", {**session._CONF, "fs.defaultFS": "nowhere:///"})
    assert states(spark, moved) == wanted
    assert wanted[-1]["files"] or wanted[-1]["received"]
