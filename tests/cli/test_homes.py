"""Homes: which one is used, which one may be meant, and what is said of one that cannot be used."""

from __future__ import annotations

import json
import logging
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from rowtime.client.home import Home
from rowtime.core.errors import Failure

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.testing import Result

    Rowtime = Callable[..., Result]

CLICKS: dict[str, Any] = {
    "columns": [{"name": "page", "type": "STRING", "nullable": True}],
    "format": None,
    "options": {},
}
DEFINES = "CREATE STREAM clicks (page STRING);\n"


def test_a_home_in_another_folder_is_reported(
    rowtime: Rowtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Home(tmp_path / ".rowtime").define("clicks", CLICKS)
    below = tmp_path / "jobs"
    below.mkdir()
    (below / "job.sql").write_text("SELECT STREAM page FROM clicks;\n")
    monkeypatch.chdir(below)
    place = tmp_path / ".rowtime"
    hint = f'The home {place} defines it: --home {place}, or home="{place}" in Python.'
    assert hint in rowtime("check", "job.sql").stdout
    assert hint in rowtime("bound", "clicks", "2026-01-01").stderr
    listed = rowtime("streams")
    assert listed.stdout == ""
    assert f"The home {tmp_path / '.rowtime'} defines streams" in listed.stderr
    assert rowtime("check", "job.sql", "--home", str(tmp_path / ".rowtime")).exit_code == 0


def test_a_home_in_a_folder_below_is_reported(rowtime: Rowtime, tmp_path: Path) -> None:
    Home(tmp_path / "shop/.rowtime").define("clicks", CLICKS)
    (tmp_path / "job.sql").write_text("CREATE STREAM c (page STRING);\nSELECT STREAM page FROM clicks;\n")
    assert f"--home {tmp_path / 'shop/.rowtime'}" in rowtime("check", "job.sql").stdout
    (tmp_path / "other.sql").write_text("SELECT STREAM page FROM klicks;\n")
    assert "begin with CREATE STREAM" in rowtime("check", "other.sql").stdout


def test_the_streams_of_a_home_come_with_its_place(rowtime: Rowtime, tmp_path: Path) -> None:
    Home(tmp_path / ".rowtime").define("clicks", CLICKS)
    listed = rowtime("streams")
    assert listed.stdout == "clicks (page STRING)\n"
    assert listed.stderr.startswith("home: ")


def test_a_hint_to_a_home_can_be_copied_whatever_its_folder_is_called(
    rowtime: Rowtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = tmp_path / 'a "b" #1' / "jobs"
    below.mkdir(parents=True)
    place = below.parent / ".rowtime"
    Home(place).define("clicks", CLICKS)
    monkeypatch.chdir(below)
    hint = rowtime("bound", "clicks", "2026-01-01").stderr.splitlines()[-1]
    words = shlex.split(hint.split("defines it: ")[1].split(", or home=")[0])
    assert rowtime("bound", "clicks", "2026-01-01", *words).exit_code == 0
    assert json.loads(hint.split("home=")[1].removesuffix(" in Python.")) == str(place)


def test_a_script_that_defines_streams_again_in_an_empty_home_says_so(
    rowtime: Rowtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "job.sql").write_text(DEFINES)
    assert rowtime("run", "job.sql").stderr == ""
    below = tmp_path / "jobs"
    below.mkdir()
    monkeypatch.chdir(below)
    named = rowtime("run", "../job.sql", "--home", ".own")
    assert (named.exit_code, named.stderr) == (0, "")  # on purpose
    place = tmp_path / ".rowtime"
    pipeline = rt.Pipeline().sql(DEFINES + "SELECT STREAM page FROM clicks;")
    monkeypatch.setattr("rowtime.api.pipeline.started", lambda *_: None)
    with caplog.at_level(logging.WARNING, logger="rowtime"), pytest.raises(AttributeError):  # the engine is None
        pipeline.run_available()
    told = rowtime("run", "../job.sql")
    assert told.exit_code == 0
    assert told.stderr.strip() == caplog.messages[0]
    first, hint = told.stderr.strip().splitlines()
    assert first == f"R218 warning: the home {below / '.rowtime'} is new, and the home {place} already defines clicks"
    assert hint == f'If you meant that one: --home {place}, or home="{place}" in Python.'
    again = rowtime("run", "../job.sql")
    assert (again.exit_code, again.stderr) == (0, "")  # it is not new any more


def test_a_folder_that_cannot_be_written_has_a_code_and_a_hint(
    rowtime: Rowtime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "job.sql").write_text(DEFINES + "INSERT INTO clicks (page) VALUES ('a');\n")
    (tmp_path / "file").touch()
    place = tmp_path / "file/below/it"
    told = rowtime("run", "job.sql", "--checkpoint", "file/below/it")
    assert told.exit_code == 3
    assert told.stderr.splitlines()[:2] == [
        f"Failed: R501 the folder {place} cannot be written: Not a directory",
        "Make it writable, or name another: --checkpoint or --home, or ROWTIME_HOME.",
    ]
    with pytest.raises(Failure) as failure:
        Home(place).create()
    assert str(failure.value).splitlines() == [
        f"R501 the folder {place} cannot be written: Not a directory",
        "Make it writable, or name another: --home or ROWTIME_HOME.",
    ]
    monkeypatch.setenv("ROWTIME_HOME", str(tmp_path / "other"))
    assert rowtime("run", "job.sql").exit_code == 0


def test_init_in_a_folder_that_cannot_be_written(rowtime: Rowtime, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    told = rowtime("init", "file/below")
    assert told.exit_code == 3
    assert told.stderr.splitlines()[:2] == [
        f"Failed: R501 the folder {tmp_path / 'file/below'} cannot be written: Not a directory",
        "Name another folder, in which you can write.",
    ]
    assert rowtime("init", "other").exit_code == 0


IN = "USING csv OPTIONS (path 'in', header 'true')"
ONE = f"CREATE STREAM events (device STRING, c DOUBLE, at TIMESTAMP) {IN}; SELECT STREAM device FROM events;\n"
TWO = (
    f"CREATE STREAM events (device STRING, n BIGINT) {IN}; CREATE VIEW v AS SELECT STREAM n FROM events; "
    "SELECT STREAM n FROM v;\n"
)
THREE = "SELECT STREAM c FROM events;\n"


def _two_scripts(rowtime: Rowtime, folder: Path) -> None:
    """Two scripts in a folder define a stream, and a third reads it; the first and the third have run."""
    (folder / "in").mkdir()
    (folder / "in/1.csv").write_text("device,c,at\na,1,2026-01-01 10:00:00\n")
    for name, text in (("one", ONE), ("two", TWO), ("three", THREE)):
        (folder / f"{name}.sql").write_text(text)
    for name in ("one", "three"):
        assert rowtime("run", f"{name}.sql", "--available-now").exit_code == 0


def test_a_stream_that_another_script_defines_is_the_only_problem_and_a_home_of_its_own_solves_it(
    rowtime: Rowtime, tmp_path: Path
) -> None:
    _two_scripts(rowtime, tmp_path)
    told = rowtime("check", "two.sql", "--json")
    (problem,) = json.loads(told.stdout)[0]["problems"]
    assert problem["code"] == "R203", "nothing that only follows from the refused definition"
    assert "--home DIR" in problem["hint"]
    assert rowtime("check", "two.sql", "--home", "other").exit_code == 0
    (tmp_path / "two.sql").write_text(TWO.replace("events", "numbers"))
    assert rowtime("check", "two.sql").exit_code == 0


def test_replacing_a_stream_names_the_checkpoints_that_it_breaks(
    rowtime: Rowtime, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _two_scripts(rowtime, tmp_path)
    replaced = TWO.replace("CREATE STREAM", "CREATE OR REPLACE STREAM").replace("n BIGINT", "c DOUBLE")
    (tmp_path / "two.sql").write_text(replaced.replace(" n ", " c "))
    told = rowtime("check", "two.sql").stdout
    places = [str(tmp_path / ".rowtime/checkpoints" / name) for name in ("one", "three")]
    assert "R223 warning: the stream events gets another definition, which breaks other checkpoints: " in told
    assert f"{places[0]} (its script defines the stream otherwise, and is refused (R203) or replaces it again)" in told
    assert f"{places[1]} (it reads the stream, and may be refused)" in told
    assert "--home DIR" in told
    assert "R223" not in rowtime("check", "two.sql", "--home", "other").stdout, "the hint is followed"
    with caplog.at_level(logging.WARNING, "rowtime"):
        rt.Pipeline().sql((tmp_path / "two.sql").read_text()).start(tmp_path / "ck").stop()
    assert "R223" in caplog.text
    Home().define("events", Home().definition("events") | {"columns": CLICKS["columns"]}, replace=True)
    assert "R223" in rowtime("run", "two.sql", "--available-now").stderr
    assert "R223" not in rowtime("run", "two.sql", "--available-now").stderr, "it is the definition now"
    assert "R203" in rowtime("run", "one.sql", "--available-now").stderr
    assert "R401" in rowtime("run", "three.sql", "--available-now").stderr


def test_a_script_may_replace_its_own_stream_without_a_warning(rowtime: Rowtime, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/1.csv").write_text("device,c,at\na,1,2026-01-01 10:00:00\n")
    for text in (ONE, ONE.replace("CREATE", "CREATE OR REPLACE").replace("c DOUBLE", "c FLOAT")):
        (tmp_path / "one.sql").write_text(text)
        assert "R223" not in rowtime("check", "one.sql").stdout
        rowtime("run", "one.sql", "--available-now")


FILES = "CREATE STREAM files (d STRING) USING csv OPTIONS (path 'out'); "
PUMP = "CREATE STREAM clicks (page STRING); CREATE PUMP p AS INSERT INTO files SELECT STREAM page FROM clicks;"


def test_replacing_the_stream_of_another_scripts_output_names_its_checkpoint(rowtime: Rowtime, tmp_path: Path) -> None:
    """Only readers, and writers of stream logs, were looked for; the script was refused from then on."""
    (tmp_path / "writes.sql").write_text(FILES + PUMP)
    assert rowtime("run", "writes.sql", "--available-now").exit_code == 0
    (tmp_path / "other.sql").write_text(FILES.replace("CREATE", "CREATE OR REPLACE").replace("d STRING", "d INT"))
    told = rowtime("run", "other.sql").stderr
    assert f"R223 warning: the stream files gets another definition, which breaks other checkpoints: {tmp_path}" in told
    assert "R203" in rowtime("run", "writes.sql", "--available-now").stderr


def test_dropping_a_stream_names_the_checkpoints_that_it_breaks(rowtime: Rowtime, tmp_path: Path) -> None:
    """Rows that other pipelines read went without a word."""
    (tmp_path / "in").mkdir()
    (tmp_path / "log.sql").write_text("CREATE STREAM clicks (page STRING); SELECT STREAM page FROM clicks;")
    (tmp_path / "one.sql").write_text(ONE)
    (tmp_path / "three.sql").write_text(THREE)
    for name in ("log", "one", "three"):
        assert rowtime("run", f"{name}.sql", "--available-now").exit_code == 0
    (tmp_path / "drop.sql").write_text("DROP STREAM clicks; DROP STREAM events;")
    checkpoints = tmp_path / ".rowtime/checkpoints"
    for told in (rowtime("check", "drop.sql").stdout, rowtime("run", "drop.sql").stderr):
        assert (
            f"clicks is dropped, which breaks other checkpoints: {checkpoints}/log (its rows are removed, too)" in told
        )
        assert f"events is dropped, which breaks other checkpoints: {checkpoints}/three (their scripts do not" in told
    assert "R223" not in rowtime("check", "drop.sql").stdout, "nothing is left to drop"
    assert "R103" in rowtime("run", "three.sql", "--available-now").stderr
    assert rowtime("run", "one.sql", "--available-now").exit_code == 0, "it defines the stream again"
