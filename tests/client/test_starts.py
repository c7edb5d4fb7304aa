"""First starts in progress: undone or kept as a whole, whichever process dies during that."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import rowtime as rt
from reliability.crash.inside import copied
from reliability.crash.writes import watched
from rowtime.client import starts
from rowtime.client.home import Home
from rowtime.client.stream_log import last
from rowtime.core.errors import Failure

OLD = {"columns": [{"name": "n", "type": "BIGINT", "nullable": True}], "format": None, "options": {}}
NEW = {**OLD, "columns": [{"name": "n", "type": "INT", "nullable": True}]}
NAMES = ("again", "gone", "kept", "new")


def home_of(folder: Path) -> Home:
    """A home with three streams; each has a row of some writer."""
    home = Home(folder / "home")
    for name in ("again", "gone", "kept"):
        home.define(name, OLD)
        with rt.writer(name, home=home, writer="someone") as log:
            log.insert([{"n": 1}])
    return home


def begun(home: Home, *, runs: bool = True) -> starts.Start:
    """A start that drops two streams, defines one of them again, and defines another; its script inserts rows."""
    start = {"checkpoint": str(home.path.parent / "check"), "tick": -1, "runs": runs, "writers": ["script"]}
    found = starts.begin(home, start, {"again": NEW, "new": NEW}, ["again", "gone"])
    for name in ("again", "new"):
        with rt.writer(name, home=home, writer="script") as log:
            log.insert([{"n": 2}, {"n": 3}])
    return found


def starting(home: Home) -> None:
    """A start whose process no longer exists."""
    begun(home).lock.close()


def seen(home: Home) -> dict[str, Any]:
    """What the next process finds: definitions, and the number of items of each writer."""
    found: dict[str, Any] = {name: home.definition(name) for name in NAMES}
    return found | {f"{name}'s log": {w: e.end for w, e in last(home.log_path(name)).items()} for name in NAMES}


def commit(folder: Path) -> None:
    (folder / "check" / "journal").mkdir(parents=True)
    (folder / "check" / "journal" / f"{0:012d}.json").touch()


def images(folder: Path, place: Path, act: Callable[[], object]) -> list[Path]:
    """The content of the disk before each write of an action."""
    found: list[Path] = []
    busy: list[bool] = []

    def keep(_what: str, _path: str) -> None:
        if not busy:
            busy.append(True)
            found.append(copied(folder, place / str(len(found))))
            busy.clear()

    with watched(folder, keep):
        act()
    return found


@pytest.mark.parametrize("committed", [False, True])
def test_a_process_that_settles_a_start_may_die(tmp_path: Path, committed: bool) -> None:
    live = tmp_path / "live"
    home = home_of(live)
    before = seen(home)
    deaths = images(live, tmp_path / "starting", partial(starting, home))
    if committed:
        deaths = []
        commit(live)
    deaths += images(live, tmp_path / "settling", home.names)
    after = seen(home)
    assert (after == before) is not committed
    assert after["gone"] == (None if committed else OLD)
    assert after["again's log"] == ({"script": 2} if committed else {"someone": 1})
    assert len(deaths) > 5
    for number, death in enumerate(deaths):
        shutil.rmtree(live)
        death.rename(live)
        assert seen(Home(live / "home")) == after, number
        left = [
            path.name for path in (*(live / "home" / "starts").glob("*"), *(live / "home" / "logs").glob(".aside*"))
        ]
        assert left in ([], [".lock"]) or not [name for name in left if not name.startswith(".")], number


def test_a_start_counts_while_it_runs_and_records_how_it_ended(tmp_path: Path) -> None:
    home = home_of(tmp_path)
    before = seen(home)
    for succeeded in (False, True):
        start = begun(home)
        alive = seen(home)
        assert (alive["again"], alive["new"], alive["gone"]) == (NEW, NEW, OLD)
        start.settle(succeeded=succeeded)
        assert (seen(home) == before) is not succeeded
    assert seen(home)["gone"] is None


def test_a_draft_that_a_full_disk_or_a_kill_left_made_the_home_unusable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = home_of(tmp_path)
    before = seen(home)

    def full(_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("rowtime.client.starts.os.fsync", full)
        with pytest.raises(Failure, match=f"R422 {home.path} cannot be used: No space"):
            begun(home)
    assert [path.name for path in (home.path / "starts").glob("*.json")] == []
    (home.path / "starts" / ".0123.json").touch()  # the process was killed before it wrote it
    assert seen(home) == before
    begun(home).settle(succeeded=True)


def test_later_rows_and_definitions_of_others_stay(tmp_path: Path) -> None:
    home = home_of(tmp_path)
    start = begun(home)
    with rt.writer("new", home=home, writer="other") as log:
        log.insert([{"n": 4}])
    start.settle(succeeded=False)
    assert seen(home)["new's log"] == {"other": 1, "script": 2}
    start = begun(home)
    home.define("again", {**OLD, "idle_after": 5}, replace=True)
    start.settle(succeeded=False)
    assert home.definition("again") == {**OLD, "idle_after": 5}


def test_a_script_that_runs_no_tick_has_succeeded_with_its_last_statement(tmp_path: Path) -> None:
    for done in (False, True):
        folder = tmp_path / str(done)
        home = home_of(folder)
        before = seen(home)
        begun(home, runs=False).lock.close()
        if done:
            (folder / "check").mkdir()
            (folder / "check" / starts.STATEMENTS_DONE).touch()
        assert (seen(home) == before) is not done
