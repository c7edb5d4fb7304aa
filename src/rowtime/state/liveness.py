"""Whether a pipeline runs, is being retried, was stopped, or has crashed: read from its checkpoint by anybody.

A driver holds the lock of its checkpoint, and empties the lock's file when it gives it back. So a file that nobody
holds and that names a process was left by one that died. What failed is in ``failing.json``: a driver that tries a
tick again writes it, and removes it once a tick succeeds.

What a driver does now is in ``driver.json``, the tick under way among it. A store has no locks, so there a driver
writes it every few seconds as a sign of life (`runtime.pulse`); one that has not come for long was left by a driver
that died.
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
MISSED: Final = 3  # signs of life after which a driver is taken for dead
RUNNING, RETRYING, STOPPED, CRASHED, UNKNOWN = "running", "retrying", "stopped", "crashed", "unknown"


@dataclass(frozen=True)
class Liveness:
    """``state`` is one of the words above; ``process`` the driver that holds the lock or has died with it.

    ``error``: the last failure since a tick succeeded, ``failures`` how many there were, ``failed_at`` when (µs UTC).
    ``page``: the address of Spark's page, while a driver is at work. ``under_way``: the tick that it runs, if that has
    been under way for a second.
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
    """A driver's word of itself. ``at``: when it was written (µs UTC); ``every``: seconds until the next one, or 0.

    ``ended``: it has given the checkpoint back.
    """

    at: int
    process: int
    every: float = 0.0
    page: str = ""
    ended: bool = False
    under_way: UnderWay | None = None


def liveness(checkpoint: Place) -> Liveness:
    """How the pipeline of a checkpoint is, as far as others can tell."""
    failed, sign = _noted(checkpoint / FAILING), _sign(checkpoint)
    told = (str(failed.get("error", "")), int(failed.get("failures", 0)), failed.get("at"))
    if isinstance(checkpoint, Path):
        held, process, page = _holder(checkpoint / LOCK)
    elif sign is None or not sign.every:  # an older version has left no word
        return Liveness(CRASHED if failed.get("ended") else UNKNOWN, None, *told)
    else:
        held = not sign.ended and wall_clock() - sign.at < MISSED * sign.every * SECOND
        process, page = (None if sign.ended else sign.process), sign.page
    if held:
        doing = sign.under_way if sign is not None and sign.process == process else None
        return Liveness(RETRYING if failed and not failed["ended"] else RUNNING, process, *told, page, doing)
    crashed = process is not None or bool(failed.get("ended"))
    return Liveness(CRASHED if crashed else STOPPED, process, *told)


def give_sign(checkpoint: Place, sign: Sign) -> None:
    """Record a driver; in a bucket only if no other one has come. If the record cannot be written, there is none."""
    path, data = checkpoint / DRIVER, sealed(asdict(sign))
    with suppress(OSError, RowtimeError):
        if isinstance(path, Path):
            path.write_bytes(data)  # not synced: only the word of a driver that lives counts
        else:
            path.replace(data)


def take_sign_back(checkpoint: Place) -> None:
    """There is nothing to say."""
    with suppress(OSError, RowtimeError):
        (checkpoint / DRIVER).unlink(missing_ok=True)


def note_failure(checkpoint: Place, error: BaseException, failures: int, *, ended: bool) -> None:
    """Leave word of a failure; ``ended``: the run ends with it. Where that cannot be written, the failure is enough."""
    said = {"at": wall_clock(), "error": headline(error), "failures": failures, "ended": ended}
    with suppress(OSError, RowtimeError):
        write_over(checkpoint / FAILING, sealed(said))


def forget_failures(checkpoint: Place) -> None:
    """A tick has succeeded, or another run begins."""
    with suppress(OSError, RowtimeError):
        (checkpoint / FAILING).unlink(missing_ok=True)


def locked(file: IO[str], process: int) -> bool:
    """Take the lock of an open file for a driver; false if another one has it.

    Whoever looks (`liveness`) holds the lock for an instant, so a first refusal is not the last word.
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
    """Say where Spark's page is, to whoever looks at the lock."""
    with suppress(OSError):
        file.write(f"{page}\n")
        file.flush()


def released(file: IO[str]) -> None:
    """Release the lock, and record that the driver did not crash."""
    with suppress(OSError):
        file.truncate(0)
    file.close()


def _noted(path: Place) -> dict[str, Any]:
    """What a note says; one that is damaged or half written says nothing."""
    with suppress(OSError, RowtimeError):
        return unsealed(path)
    return {}


def _sign(checkpoint: Place) -> Sign | None:
    """The last word of a driver; that of another version may say nothing."""
    noted = _noted(checkpoint / DRIVER)
    with suppress(KeyError, TypeError, ValueError):
        doing = noted["under_way"]
        told = (float(noted["every"]), str(noted["page"]), bool(noted["ended"]))
        return Sign(int(noted["at"]), int(noted["process"]), *told, None if doing is None else UnderWay.of(doing))
    return None


def _holder(path: Path) -> tuple[bool, int | None, str]:
    """Whether a driver holds the lock, the process that the file names, and the address of Spark's page."""
    with _opened(path) as file:
        if file is None:
            return False, None, ""
        first, line, rest = file.read().partition("\n")  # older versions wrote no line, and left it whatever happened
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
