"""Whether a pipeline runs, is being retried, was stopped, or has crashed: anybody can read it from its checkpoint.

A driver holds the lock of its checkpoint, and empties the lock's file when it releases it. So a file that nobody holds
and that names a process was left by one that died. The last failure is in ``failing.json``: a driver that tries a tick
again writes it, and removes it once a tick succeeds.

The driver's present activity, including its current tick, is in ``driver.json``. A store has no locks, so there a
driver writes it every few seconds as a sign of life (`runtime.pulse`); an old one was left by a driver that died.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Final

from rowtime.core.errors import RowtimeError, headline
from rowtime.core.stores import Place
from rowtime.core.time import SECOND, wall_clock
from rowtime.state.files import write_over
from rowtime.state.sealed import sealed, unsealed
from rowtime.state.under_way import UnderWay

LOCK: Final = ".lock"
FAILING: Final = "failing.json"
DRIVER: Final = "driver.json"
MISSED: Final = 3  # missing signs of life after which a driver counts as dead
RUNNING, RETRYING, STOPPED, CRASHED, UNKNOWN = "running", "retrying", "stopped", "crashed", "unknown"


@dataclass(frozen=True)
class Liveness:
    """``state`` is one of the words above; ``process`` the driver that holds the lock or has died with it.

    ``error``: the last failure since a tick succeeded, ``failures`` their number, ``failed_at`` the time (µs UTC).
    ``page``: the address of Spark's page, while a driver runs. ``under_way``: the current tick, if it has run for a
    second.
    """

    state: str
    process: int | None = None
    error: str = ""
    failures: int = 0
    failed_at: int | None = None
    page: str = ""
    under_way: UnderWay | None = None


@dataclass(frozen=True)
class Sign:
    """A driver's sign of life. ``at``: when it was written (µs UTC); ``every``: seconds until the next one, or 0.

    ``ended``: it has released the checkpoint.
    """

    at: int
    process: int
    every: float = 0.0
    page: str = ""
    ended: bool = False
    under_way: UnderWay | None = None


def liveness(checkpoint: Place) -> Liveness:
    """Return the state of a checkpoint's pipeline, as far as others can tell."""
    failed, sign = _noted(checkpoint / FAILING), _sign(checkpoint)
    failure = (str(failed.get("error", "")), int(failed.get("failures", 0)), failed.get("at"))
    if isinstance(checkpoint, Path):
        held, process, page = _holder(checkpoint / LOCK)
    elif sign is None or not sign.every:  # an older version has left no sign
        return Liveness(CRASHED if failed.get("ended") else UNKNOWN, None, *failure)
    else:
        held = not sign.ended and wall_clock() - sign.at < MISSED * sign.every * SECOND
        process, page = (None if sign.ended else sign.process), sign.page
    if held:
        doing = sign.under_way if sign is not None and sign.process == process else None
        return Liveness(RETRYING if failed and not failed["ended"] else RUNNING, process, *failure, page, doing)
    crashed = process is not None or bool(failed.get("ended"))
    return Liveness(CRASHED if crashed else STOPPED, process, *failure)


def give_sign(checkpoint: Place, sign: Sign) -> None:
    """Record a driver; in a bucket only if no other one has come. If the record cannot be written, there is none."""
    path, data = checkpoint / DRIVER, sealed(asdict(sign))
    with suppress(OSError, RowtimeError):
        if isinstance(path, Path):
            path.write_bytes(data)  # not synced: only the sign of a live driver counts
        else:
            path.replace(data)


def take_sign_back(checkpoint: Place) -> None:
    """Remove the sign."""
    with suppress(OSError, RowtimeError):
        (checkpoint / DRIVER).unlink(missing_ok=True)


def note_failure(checkpoint: Place, error: BaseException, failures: int, *, ended: bool) -> None:
    """Record a failure; ``ended``: the run ends with it. An error in writing is ignored."""
    failure = {"at": wall_clock(), "error": headline(error), "failures": failures, "ended": ended}
    with suppress(OSError, RowtimeError):
        write_over(checkpoint / FAILING, sealed(failure))


def forget_failures(checkpoint: Place) -> None:
    """Remove the record: a tick has succeeded, or another run begins."""
    with suppress(OSError, RowtimeError):
        (checkpoint / FAILING).unlink(missing_ok=True)


def locked(file: IO[str], process: int) -> bool:
    """Take the lock of an open file for a driver; return False if another one has it.

    Readers (`liveness`) hold the lock for an instant, so a first refusal is not final.
    """
    for _ in range(5):
        with suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.truncate(0)
            file.write(f"{process}\n")
            file.flush()
            return True
        time.sleep(0.02)
    return False


def announce(file: IO[str], page: str) -> None:
    """Write the address of Spark's page into the lock file."""
    with suppress(OSError):
        file.write(f"{page}\n")
        file.flush()


def released(file: IO[str]) -> None:
    """Release the lock, and record that the driver did not crash."""
    with suppress(OSError):
        file.truncate(0)
    file.close()


def _noted(path: Place) -> dict[str, Any]:
    """Return the content of a note; a damaged or partial one has none."""
    with suppress(OSError, RowtimeError):
        return unsealed(path)
    return {}


def _sign(checkpoint: Place) -> Sign | None:
    """Return the last sign of a driver; that of another version may be unreadable."""
    noted = _noted(checkpoint / DRIVER)
    with suppress(KeyError, TypeError, ValueError):
        doing = noted["under_way"]
        others = (float(noted["every"]), str(noted["page"]), bool(noted["ended"]))
        return Sign(int(noted["at"]), int(noted["process"]), *others, None if doing is None else UnderWay.of(doing))
    return None


def _holder(path: Path) -> tuple[bool, int | None, str]:
    """Return whether a driver holds the lock, the process that the file names, and the address of Spark's page."""
    with _opened(path) as file:
        if file is None:
            return False, None, ""
        first, line, rest = file.read().partition("\n")  # older versions wrote no line, and left it in any case
        process = int(first) if line and first.isdigit() else None
        page = rest.strip() if rest.startswith(("http://", "https://")) else ""
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True, process, page
        except OSError:  # a file system without locks
            return False, process, page
        return False, process, page


@contextmanager
def _opened(path: Path) -> Iterator[IO[str] | None]:
    try:
        file = path.open()
    except OSError:
        yield None
        return
    with file:
        yield file
