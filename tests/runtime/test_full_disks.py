"""A full disk is reported with a code and a path, and the tick is repeated."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import typer
from pyspark.errors import PySparkException, PythonException

import rowtime as rt
from rowtime.cli.outcome import guarded
from rowtime.client import log_folder
from rowtime.client.writer import Writer
from rowtime.core.errors import Failure
from rowtime.runtime.faults import naming_disks
from rowtime.runtime.retries import permanent
from rowtime.state import files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def full(path: object) -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (full("/check/journal/1.json"), "the checkpoint /check cannot be written: No space left on device (/check/"),
        (full("/scratch/x"), "the checkpoint /check cannot be written: No space left on device (/scratch/x)"),
        (OSError(errno.EACCES, "Permission denied", "/check/state"), "Permission denied (/check/state)"),
        (OSError(errno.EROFS, "Read-only file system", "/check"), "Read-only file system (/check)"),
        (OSError(errno.EMFILE, "Too many open files", "/in/a.csv"), "Too many open files (/in/a.csv)"),
        (
            PythonException("Traceback\nOSError: [Errno 28] No space left on device: '/check/state'\n"),
            "a task of Spark cannot write: OSError: [Errno 28] No space left on device: '/check/state'",
        ),
        (
            PySparkException(message="Job aborted.\njava.io.IOException: No space left on device\n\tat x"),
            "a task of Spark cannot write: java.io.IOException: No space left on device",
        ),
    ],
    ids=lambda found: type(found).__name__ if isinstance(found, Exception) else "",
)
def test_a_full_disk_is_named_and_tried_again(error: Exception, said: str) -> None:
    with pytest.raises(Failure) as found, naming_disks(Path("/check")):
        raise error
    assert found.value.problems[0].code == "R422"
    assert said in found.value.problems[0].message
    assert not permanent(found.value)


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.EACCES, "Permission denied", "/in/a.csv"),
        ConnectionRefusedError(errno.ECONNREFUSED, "refused"),
        PySparkException(message="[DIVIDE_BY_ZERO] Division by zero."),
    ],
    ids=str,
)
def test_other_errors_stay_as_they_are(error: Exception) -> None:
    with pytest.raises(type(error)) as found, naming_disks(Path("/check")):
        raise error
    assert found.value is error


def test_too_many_open_files_have_a_hint_of_their_own() -> None:
    with pytest.raises(Failure, match="ulimit -n") as found, naming_disks(Path("/check")):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), "/in/a.csv")
    assert "Free some space" not in str(found.value)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EMFILE])
def test_a_disk_that_is_full_at_the_start_had_no_code(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql("CREATE STREAM a (n INT); SELECT STREAM n FROM a;")
    pipeline.sink("result", lambda _: None)
    with monkeypatch.context() as patch:
        patch.setattr(files, "_write", lambda path, _: (_ for _ in ()).throw(OSError(number, "cannot", str(path))))
        with pytest.raises(Failure, match=r"R422 the checkpoint .*check cannot be written: cannot .*check/.*identity"):
            pipeline.run_available(tmp_path / "check")
    pipeline.run_available(tmp_path / "check")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EMFILE])
def test_a_full_disk_of_a_log_was_taken_for_an_unreachable_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    with Writer(tmp_path / "log") as writer:
        with monkeypatch.context() as patch:
            patch.setattr(log_folder, "checksum", lambda _: (_ for _ in ()).throw(OSError(number, os.strerror(number))))
            with pytest.raises(Failure, match=r"R422 the stream log .*log cannot be used: ") as raised:
                writer.insert([{"n": 1}])
        assert not permanent(raised.value)
        writer.insert([{"n": 1}])
        assert writer.position == 1


def test_a_command_that_meets_a_limit_says_so_with_a_code(capsys: pytest.CaptureFixture[str]) -> None:
    def fails() -> None:
        raise OSError(errno.EMFILE, "Too many open files", "/in/a.csv")

    with pytest.raises(typer.Exit) as left:
        guarded(fails)()
    assert left.value.exit_code == 3
    assert "R422 a file cannot be opened or written: Too many open files (/in/a.csv)" in capsys.readouterr().err


def test_a_tick_whose_disk_was_full_is_repeated(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Python exception ended the run, and did not name the path."""
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql("CREATE STREAM a (n INT); SELECT STREAM n FROM a;")
    got: list[int] = []
    pipeline.sink("result", lambda batch: got.extend(batch.table()["n"].to_pylist()) if batch.count else None)
    for stream in pipeline.compile().defines:
        pipeline.home.define(stream.name, stream.as_json())
    with rt.writer("a", home=tmp_path / "home") as writer:
        writer.insert([{"n": 1}])
    engine = pipeline._engine(tmp_path / "check", rt.Limits(), ends=False)
    written = files._write

    def no_room(path: Path, data: bytes) -> None:
        monkeypatch.setattr(files, "_write", written)
        raise full(path)

    monkeypatch.setattr(files, "_write", no_room)
    with pytest.raises(Failure, match=r"R422 the checkpoint .*check cannot be written"):
        engine.tick()
    engine.tick()
    engine.stop()
    assert got == [1]
