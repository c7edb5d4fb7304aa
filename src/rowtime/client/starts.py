"""Running first starts: their changes to a home count while they run, and are undone unless they succeed.

    <home>/starts/<id>.json       the changes of a start, written first; locked by its process
    <home>/starts/.lock           held by the process that settles a start

The logs of streams that it drops and defines again are set aside (`home_logs`). A bucket has no locks: there a record
is a lease (`Lease`), which a start renews, and which a process takes before it settles the start.

A start that succeeds settles its record itself. One that died leaves it, and the next process that looks for a
definition settles it: the changes stay if the checkpoint has committed a tick since, else they are undone. Law:
settling twice, or dying while settling and settling again, is settling once.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import threading
import uuid
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from rowtime.client.stream_log import last
from rowtime.core.errors import Failure, Problem, Refused
from rowtime.core.machine import limit_of
from rowtime.core.shared_paths import sync
from rowtime.core.stores import ObjectPlace, Place, listed, place_of

if TYPE_CHECKING:
    from rowtime.client.home import Home

FOLDER: Final = "starts"
STATEMENTS_DONE: Final = "statements.done"  # in a checkpoint: the script's statements have taken effect
_LOCK: Final = ".lock"
_RECORDS: Final = "[!.]*.json"  # without drafts
_ENTRY: Final = re.compile(r"\d{12}\.json")

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Start:
    """A running start; its record is locked, or its lease held, while this object exists."""

    home: Home
    path: Place
    lock: IO[str] | Lease

    def settle(self, *, succeeded: bool) -> None:
        """Keep the changes of the start if it ``succeeded`` or has committed a tick, else undo them.

        Raises ``Failure`` (R501) if it succeeded and another process had considered it dead before.
        """
        if isinstance(self.lock, Lease) and self.lock.taken:
            if succeeded:
                raise _buried(self.home)
            return
        with _settling(self.path.parent):
            _settle(self.home, self.path, succeeded=succeeded)
            self.lock.close()


def begin(home: Home, start: Mapping[str, Any], defines: Mapping[str, dict[str, Any]], drops: Collection[str]) -> Start:
    """Define streams until the start is settled; those of ``drops`` are removed only when it has succeeded.

    A stream in both begins with an empty log, and the old one is set aside. ``start`` has the facts that show success:
    the folder of its ``checkpoint``, the ``tick`` before it (-1 for none), whether it ``runs`` ticks at all;
    ``writers`` are those of the script's rows and bounds.
    """
    home.create()
    folder = home.path / FOLDER
    if isinstance(folder, Path):
        folder.mkdir(mode=0o700, exist_ok=True)
    changes = {
        name: {"before": home.defined(name), "after": after, "seen": _seen(home, name)}
        for name, after in defines.items()
    }
    path = folder / f"{uuid.uuid4().hex}.json"
    record = {**start, "defines": changes, "drops": sorted(drops)}
    lock = Lease.new(path, record) if isinstance(path, ObjectPlace) else _written(path, record)
    for name in drops:
        if name in defines:
            home.logs.put_aside(name, path.stem)
    for name, after in defines.items():
        home.define(name, after, replace=True)
    return Start(home, path, lock)


def settle_all(home: Home, ours: Place | None = None) -> None:
    """Settle the starts whose processes are gone; ``ours``: a checkpoint that no other process drives any more."""
    folder = home.path / FOLDER
    if isinstance(folder, ObjectPlace):
        for record in sorted(folder.glob("*.json")):
            _settle_lease(home, record, ours)
    elif any(listed(folder, _RECORDS)):
        with _settling(folder):
            for path in sorted(listed(folder, _RECORDS)):
                _settle_file(home, folder / path.name)


def _settle_file(home: Home, path: Path) -> None:
    with path.open("r+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return  # it is running
        _settle(home, path, succeeded=False)


def _settle_lease(home: Home, path: ObjectPlace, ours: Place | None) -> None:
    try:
        dead = ours is not None and json.loads(path.read_bytes())["checkpoint"] == str(ours)
    except FileNotFoundError:  # somebody else has settled it
        return
    lease = Lease.of(path, dead=dead)
    if lease is not None:
        try:
            _settle(home, path, succeeded=False)
        finally:
            lease.close()


@contextmanager
def _settling(folder: Place) -> Iterator[None]:
    if isinstance(folder, ObjectPlace):  # the lease excludes others
        yield
        return
    with (folder / _LOCK).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _written(path: Path, record: Record) -> IO[str]:
    """Return a new record, durable and locked before anybody can see it."""
    draft = path.with_name(f".{path.name}")
    try:
        file = draft.open("w", encoding="utf-8")
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(json.dumps(record))
        file.flush()
        os.fsync(file.fileno())
        draft.rename(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        problem = limit_of(error, f"{path.parent.parent} cannot be used")
        raise error if problem is None else Failure(problem) from error
    sync(path.parent)
    return file


def _settle(home: Home, path: Place, *, succeeded: bool) -> None:
    record = json.loads(path.read_text(encoding="utf-8"))
    if succeeded or _has_begun(record):
        for name in record["drops"]:
            if name not in record["defines"]:
                home.drop(name)
    else:
        for name, change in record["defines"].items():
            _take_back(home, path, record, name, change)
    home.logs.forget(path.stem)
    path.unlink()
    if isinstance(path, Path):
        sync(path.parent)


def _has_begun(record: Record) -> bool:
    """Return True if a start's checkpoint has committed a tick since, or its script's statements have taken effect."""
    checkpoint = place_of(record["checkpoint"])
    if not record["runs"]:
        return (checkpoint / STATEMENTS_DONE).exists()
    entries = {path.name: path for path in (checkpoint / "journal").glob("*.json") if _ENTRY.fullmatch(path.name)}
    return bool(entries) and _tick_of(entries[max(entries)]) > record["tick"]


def _tick_of(entry: Place) -> int:
    """Return the tick of a journal entry; its number if it cannot be read: opening it reports the damage."""
    try:
        return int(json.loads(entry.read_bytes())["tick"])
    except (ValueError, KeyError):
        return int(entry.stem)


def _take_back(home: Home, path: Place, record: Record, name: str, change: Record) -> None:
    """Restore a stream, unless somebody else has defined it since, or written to it."""
    aside = home.logs.aside(name, path.stem)
    seen = {} if aside else change["seen"]
    items = _seen(home, name)
    if home.defined(name) not in (change["before"], change["after"]) or any(
        end > seen.get(writer, 0) for writer, end in items.items() if writer not in record["writers"]
    ):
        return
    home.restore(name, change["before"])
    if aside:
        home.logs.put_back(name, path.stem)
    elif change["before"] is None and not change["seen"]:
        home.remove_log(name)


def _seen(home: Home, name: str) -> dict[str, int]:
    """Return how many items each writer of a log has."""
    return {writer: entry.end for writer, entry in last(home.log_path(name)).items()}


def _buried(home: Home) -> Failure:
    what = (
        "this start did not renew its lease for a minute, and another process has removed what it defined in "
        f"{home.path}"
    )
    hint = "Start again: that defines the streams again. The rows that the script inserts must then be sent again."
    return Failure(Problem("R501", what, hint=hint))


# Leases: objects that a process renews as long as it holds them, because a bucket has no locks.
#
# A process that has not renewed one for `LASTS` counts as dead, and another process may take the lease. The clock of
# the store decides, because those of machines differ. Writes are conditional, so if two processes take a lease, only
# one succeeds.

LASTS: Final = 60.0  # seconds
_RENEWED: Final = 10.0  # seconds between two renewals
_MEMBERS: Final = ("holder", "renewed")


class Taken(Exception):
    """Another process holds the lease."""


class Lease:
    """An object with a content, and the mark of its holder: this process. ``taken``: another process has it."""

    def __init__(self, place: ObjectPlace, content: Mapping[str, Any]) -> None:
        self.place, self.taken = place, False
        self._content, self._holder, self._number = dict(content), uuid.uuid4().hex, 0
        self._written = b""
        self._done = threading.Event()
        self._renewer = threading.Thread(target=self._renew, name=f"lease of {place.name}", daemon=True)

    @classmethod
    def new(cls, place: ObjectPlace, content: Mapping[str, Any]) -> Lease:
        """Create the object, and hold it."""
        lease = cls(place, content)
        lease._written = lease._text()
        place.create(lease._written)
        lease._renewer.start()
        return lease

    @classmethod
    def of(cls, place: ObjectPlace, *, dead: bool = False) -> Lease | None:
        """Take over a lease that nobody holds, or whose holder is known to be ``dead``; ``None`` if it is held.

        Nobody holds a lease whose object is missing.
        """
        with suppress(FileNotFoundError, Taken):
            if dead or _age(place) > LASTS:
                before = place.read_bytes()
                lease = cls(place, {name: value for name, value in json.loads(before).items() if name not in _MEMBERS})
                lease._write(before)
                lease._renewer.start()
                return lease
        return None

    def close(self) -> None:
        """Stop renewing it."""
        self._done.set()
        if self._renewer.is_alive():
            self._renewer.join()

    def _renew(self) -> None:
        while not self._done.wait(_RENEWED):
            try:
                self._write(self._written)
            except (Taken, FileNotFoundError, Refused):
                self.taken = True
                return
            except Failure:  # the store does not answer
                continue

    def _write(self, before: bytes) -> None:
        """Write the object again, if it is unchanged."""
        self._number += 1
        after = self._text()

        def same() -> None:
            if self.place.read_bytes() not in (before, after):
                raise Taken

        self.place.replace(after, judge=same)
        self._written = after

    def _text(self) -> bytes:
        return json.dumps({**self._content, "holder": self._holder, "renewed": self._number}).encode()


def _age(place: ObjectPlace) -> float:
    """Return how many seconds ago an object was written, by the clock of its store."""
    now = place.parent / ".now"
    now.upload(uuid.uuid4().bytes)
    return (now.size()[1] - place.size()[1]).total_seconds()
