"""The state of a driver as others see it in its checkpoint: running, retrying, stopped, crashed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rowtime.core.errors import Refused
from rowtime.state.checkpoint import Checkpoint
from rowtime.state.liveness import FAILING, Liveness, forget_failures, liveness, note_failure


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "check"


def test_a_process_with_the_lock_runs_and_one_that_released_it_has_stopped(folder: Path) -> None:
    driver = Checkpoint(folder)
    driver.acquire()
    assert liveness(folder) == Liveness("running", os.getpid())
    driver.release()
    assert liveness(folder) == Liveness("stopped")


def test_a_driver_that_died_with_the_lock_has_crashed(folder: Path) -> None:
    code = "import os, sys; from pathlib import Path; from rowtime.state.checkpoint import Checkpoint\n"
    code += "Checkpoint(Path(sys.argv[1])).acquire(); os._exit(9)"
    died = subprocess.Popen([sys.executable, "-c", code, str(folder)])
    assert died.wait(60) == 9
    assert liveness(folder) == Liveness("crashed", died.pid)


def test_failures_are_reported_until_a_tick_succeeds(folder: Path) -> None:
    driver = Checkpoint(folder)
    driver.acquire()
    note_failure(folder, OSError("no space"), 3, ended=False)
    found = liveness(folder)
    assert (found.state, found.error, found.failures) == ("retrying", "OSError: no space", 3)
    forget_failures(folder)
    assert liveness(folder).state == "running"
    note_failure(folder, OSError("no space"), 4, ended=True)
    driver.release()
    assert liveness(folder).state == "crashed"


def test_a_half_written_note_is_ignored(folder: Path) -> None:
    Checkpoint(folder).acquire()
    (folder / FAILING).write_text('{"at": 12')
    assert liveness(folder).error == ""


def test_readers_do_not_exclude_a_driver(folder: Path) -> None:
    folder.mkdir()
    code = "import fcntl, sys, time\nfile = open(sys.argv[1], 'a+')\nfcntl.flock(file, fcntl.LOCK_SH)\n"
    code += "print('held', flush=True)\ntime.sleep(0.03)"
    looks = subprocess.Popen([sys.executable, "-c", code, str(folder / ".lock")], stdout=subprocess.PIPE, text=True)
    assert looks.stdout is not None
    assert looks.stdout.readline() == "held\n"
    driver = Checkpoint(folder)
    driver.acquire()
    assert looks.wait(60) == 0
    with pytest.raises(Refused, match="R404"):
        Checkpoint(folder).acquire()


def test_a_driver_says_where_sparks_page_is(folder: Path) -> None:
    driver = Checkpoint(folder)
    driver.acquire()
    driver.announce("http://127.0.0.1:4040")
    assert liveness(folder) == Liveness("running", os.getpid(), page="http://127.0.0.1:4040")
    with pytest.raises(Refused, match=rf"process {os.getpid()}\) is running"):
        Checkpoint(folder).acquire()
    driver.release()
    assert liveness(folder).page == ""
