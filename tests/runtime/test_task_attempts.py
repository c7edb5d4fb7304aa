"""Spark may run a task several times; only the files that one successful attempt has reported count."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from reliability.crash.cases import Case, close
from rowtime.core.errors import Failure
from rowtime.operators.contract.state import Route
from rowtime.plan.stored import StoredPlan
from rowtime.runtime import segment_writer
from rowtime.runtime.file_form import FileForm
from rowtime.state.checkpoint import Checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Tasks write everything twice: each file exists once more under another name."""
    others: list[Path] = []
    write = segment_writer._write_there

    def twice(rows: Any, target: Any, routes: Any) -> Any:
        written = write(rows, target, routes)
        for segment in (segment for segments in written.values() for segment in segments):
            path = Path(target.folder) / segment.path
            others.append(path.with_name(f"{path.stem}0{path.suffix}"))
            shutil.copyfile(path, others[-1])
        return written

    monkeypatch.setattr(segment_writer, "_write_there", twice)
    monkeypatch.setattr(segment_writer, "SMALL", 0)
    return others


def states(spark: SparkSession, case: Case) -> list[Any]:
    engine = case.engine(spark)
    found = []
    while engine.tick() is not None:
        found.append(case.state())
    close(engine)
    return found


@pytest.mark.slow
def test_another_attempt_of_a_task_leaves_no_trace(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    case = Case(0, tmp_path / "case")
    case.make()
    shutil.copytree(case.folder, tmp_path / "made")
    wanted = states(spark, case)
    assert wanted[-1]["rejected"]
    shutil.rmtree(case.folder)
    shutil.copytree(tmp_path / "made", case.folder)
    others = request.getfixturevalue("attempts")
    found = states(spark, case)
    assert any("/state/" in str(path) for path in others)
    assert any("rejected" in path.name for path in others)
    assert [clockless(state) for state in found] == [clockless(state) for state in wanted]
    close(case.engine(spark))
    assert not any(path.exists() for path in others if case.folder / "check" in path.parents)


def clockless(state: dict[str, Any]) -> dict[str, Any]:
    """Without the clocks of streams whose rows get the time of a reading."""
    return {**state, "clocks": {name: at for name, at in state["clocks"].items() if name not in "ab"}}


def test_a_file_that_the_driver_does_not_find_is_an_error(tmp_path: Path) -> None:
    numbers = {"rows": [1], "lowest": [0], "highest": [0], "sum": [0], "size": [1]}
    report = {"route": ["part"], "path": ["state/x.parquet"], **numbers}
    reported = SimpleNamespace(mapInArrow=lambda *_: SimpleNamespace(toArrow=lambda: pa.table(report)))
    rows = SimpleNamespace(columns=["__n"], toDF=lambda *_: reported)
    target = segment_writer._Target(tmp_path, "state/x", FileForm())
    with pytest.raises(Failure) as failed:
        segment_writer._write_there(rows, target, {"part": Route(0, {}, "__n")})
    assert failed.value.problems[0].code == "R508"
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "x.parquet").touch()
    assert segment_writer._write_there(rows, target, {"part": Route(0, {}, "__n")})["part"][0].rows == 1


def test_refused_rows_are_those_that_an_entry_names(tmp_path: Path) -> None:
    place = Checkpoint(tmp_path)
    place.bind(StoredPlan("", {}))
    names = [f"{7:012d}-{attempt}.parquet" for attempt in "ab"]
    (tmp_path / "state" / "s").mkdir(parents=True)
    for name in names:
        (tmp_path / "state" / "s" / name).touch()
    entry = {"segments": {}, "refused": {"s": [f"state/s/{names[0]}"]}}
    place.journal.commit(7, entry)
    assert place.rejected("s", 6) == []
    assert place.rejected("s", 7) == [tmp_path / "state" / "s" / names[0]]  # a driver died before it was moved
    for _ in range(2):
        place.show_refused(entry)
        place.sweep(place.journal.last())
        assert place.rejected("s", 7) == [tmp_path / "rejected" / "s" / names[0]]
    assert not list((tmp_path / "state" / "s").iterdir())
