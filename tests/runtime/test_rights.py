"""What the user may not read, list or write is an error with a code that says what to do, in every command."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer

import rowtime as rt
from rowtime.cli.outcome import guarded
from rowtime.client.home import Home
from rowtime.client.writer import Writer
from rowtime.core.errors import Failure
from rowtime.core.machine import limit_of
from rowtime.core.stores import listed
from rowtime.state import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RIGHTS = "Give the user that runs rowtime the right to read and write there."


@pytest.fixture
def lock(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Provides ``lock(folder)``: from then on nobody may list the folder, not even root."""
    locked: set[str] = set()

    def refusing(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: Any = ".") -> Any:
            if str(path) in locked:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return function(path)

        return call

    for name in ("listdir", "scandir"):
        monkeypatch.setattr(os, name, refusing(getattr(os, name)))
    return lambda folder: locked.add(str(folder))


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (errno.ENOSPC, "Free some space"),
        (errno.EFBIG, "ulimit -f"),
        (errno.EACCES, RIGHTS),
        (errno.EROFS, "Mount the disk for writing"),
        (errno.EMFILE, "ulimit -n"),
        (errno.EISDIR, "Move away what is there"),
        (errno.ENAMETOOLONG, "shorter"),
    ],
    ids=errno.errorcode.get,
)
def test_each_error_of_the_system_has_its_own_remedy(
    capsys: pytest.CaptureFixture[str], number: int, hint: str
) -> None:
    """A full disk and missing rights had one hint in common; missing rights had no code in commands."""
    error = OSError(number, os.strerror(number), "/check/plan.json")
    problem = limit_of(error, "it cannot be written")
    assert problem is not None
    assert hint in problem.hint

    def fails() -> None:
        raise error

    with pytest.raises(typer.Exit) as left:
        guarded(fails)()
    assert left.value.exit_code == 3
    shown = capsys.readouterr().err
    assert "R422 a file cannot be opened or written" in shown
    assert hint in shown


def test_a_folder_of_files_that_may_not_be_listed_has_a_code(
    spark: SparkSession, tmp_path: Path, lock: Callable[[Path], None]
) -> None:
    (tmp_path / "in" / "day").mkdir(parents=True)
    sql = f"CREATE STREAM a (n INT) USING csv OPTIONS (path '{tmp_path}/in'); SELECT STREAM n FROM a;"
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(sql).sink("result", lambda _: None)
    pipeline.run_available(tmp_path / "check")
    lock(tmp_path / "in" / "day")
    with pytest.raises(Failure, match=r"R501 .*the source .*/in cannot be read: Permission denied .*/in/day") as raised:
        pipeline.run_available(tmp_path / "check")
    assert "the right to read and list" in str(raised.value)


def test_a_home_that_may_not_be_listed_was_taken_for_an_empty_one(tmp_path: Path, lock: Callable[[Path], None]) -> None:
    home = Home(tmp_path)
    home.define("a", {"columns": []})
    assert home.names() == ["a"]
    lock(tmp_path / "streams")
    with pytest.raises(Failure, match=r"R422 .*Permission denied") as raised:
        home.names()
    assert RIGHTS in str(raised.value)


def test_bounds_in_a_folder_that_may_not_be_listed_were_left_out(tmp_path: Path, lock: Callable[[Path], None]) -> None:
    assert settings.waiting(tmp_path, {}) == []
    assert [*listed(tmp_path / "nowhere", "*")] == []
    settings.put(tmp_path, "a", 1)
    assert len(settings.waiting(tmp_path, {})) == 1
    lock(tmp_path / settings.FOLDER)
    with pytest.raises(PermissionError):
        settings.waiting(tmp_path, {})


def test_a_log_that_may_not_be_written_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(path: Path, *_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "mkdir", denied)
    with pytest.raises(Failure, match=r"R422 the stream log .* cannot be used: Permission denied") as raised:
        Writer(tmp_path / "log")
    assert RIGHTS in str(raised.value)
