"""A checkpoint: the folder that holds a pipeline's plan, journal, state and rejected rows.

``plan.json`` (the first plan), ``plans/`` (later plans, after SQL changes), ``journal/`` (the entries of ticks),
``state/`` (segments), ``rejected/`` (refused rows, one folder per gate), ``sources/`` (numbered files), ``cuts/``
(`state.cuts`), ``identity`` (a unique name), ``spark/`` (Spark's own checkpoint, if a ``foreachBatch`` source needs
one).
"""

from __future__ import annotations

import hashlib
import os
import re
import uuid
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

from rowtime.core.errors import refuse
from rowtime.core.stores import ObjectPlace, Place, below
from rowtime.plan.stored import FORMAT, StoredPlan
from rowtime.state import files, refused_files
from rowtime.state.journal import PAUSED, Entry, Journal, behind
from rowtime.state.liveness import FAILING, LOCK, announce, locked, released
from rowtime.state.refused_files import tick_of
from rowtime.state.sealed import sealed, unsealed

PLANS = "plans"
IDENTITY = "identity"
FOREVER = 2**62  # stands for a last tick that is still to come
_LONGEST: Final = 200  # bytes of a folder name; the limit of file systems is 255
_BEGINNING: Final = 120  # bytes of a longer one that stay readable
_MARKS: Final = frozenset({LOCK, "plan.json", "journal", "statements.writer", "statements.done", "statements.dropped"})
_OF_NOBODY: Final = ("lost+found", "last-error.txt", FAILING)  # may be in a folder before its first start
_ANOTHER_FOLDER: Final = "Give --checkpoint a folder of its own: a new one, or an empty one."
_PUBLISHED = re.compile(r"(-?\d+) ([0-9a-f]{8})\s*")
_SUM_IN_NAME = re.compile(r"\.([0-9a-f]{8})\.parquet$")


class Checkpoint:
    """One checkpoint folder. Reading needs no lock; running does (``acquire``), or on a store an epoch of its own."""

    def __init__(self, folder: Place) -> None:
        self.folder = folder
        if isinstance(folder, ObjectPlace):
            folder.bucket.use = f"the checkpoint {folder}"
        self.journal = Journal(folder / "journal")
        self.own = ""  # its id, once this object drives it
        self._lock: IO[str] | None = None
        self._whole: set[Place] = set()

    @property
    def plan(self) -> StoredPlan | None:
        """Return the plan of the newest entry; ``None`` for a fresh checkpoint."""
        return self.plan_of(self.journal.last())

    def plan_of(self, last: Entry | None) -> StoredPlan | None:
        """Return the plan of an entry."""
        names = (last or {}).get("plans", ())
        if names:
            return self._later_plan(names[-1])
        if last is None and not (self.folder / "plan.json").exists():
            return None
        return self.first_plan

    def check(self) -> None:
        """Check that the driver has everything it needs to continue.

        Raises ``Failure``: R420 if entries of the journal are missing, or if the sinks have later ticks than its last
        one; R406 if a plan is missing.
        """
        last = self.journal.check()
        if self.published > last:
            raise behind(self.folder, f"tick {self.published} is in the outputs", last)
        if last >= 0:
            self.first_plan  # noqa: B018 - raises if it is missing or damaged

    def later_plans(self, entry: Entry) -> list[StoredPlan]:
        """Return the plans after the first one, up to that of an entry; each has its first tick in ``since``."""
        return [self._later_plan(name) for name in entry.get("plans", ())]

    def _later_plan(self, name: str) -> StoredPlan:
        return _plan_in(self.folder / PLANS / name, "which the journal names")

    @property
    def first_plan(self) -> StoredPlan:
        """Return the first plan of the checkpoint."""
        return _plan_in(self.folder / "plan.json", "the plan of this checkpoint")

    @property
    def begun(self) -> bool:
        """Return True once the script of this checkpoint has taken effect."""
        return any((self.folder / name).exists() for name in ("plan.json", "statements.done"))

    @property
    def identity(self) -> str:
        """Return the checkpoint's id, wherever its folder is; empty for one that an older version wrote last."""
        path = self.folder / IDENTITY
        return path.read_text(errors="replace") if path.exists() else ""

    def check_identity(self, entry: Entry | None) -> None:
        """Raise ``Failure`` (R406) if the checkpoint has lost the id that an entry of its journal knows."""
        identity = self.identity
        if identity != (entry or {}).get(IDENTITY, identity):
            state = "has changed since rowtime wrote it" if identity else "is gone"
            raise files.damaged(f"{self.folder / IDENTITY}, by which the targets know this checkpoint, {state}")

    @property
    def driven(self) -> bool:
        """Return True if this object is the one driver."""
        return self._lock is not None or self.journal.drives

    def acquire(self) -> None:
        """Become the one driver of this checkpoint; raises ``Refused`` (R404) if there is another.

        Also raises it (R421) if the folder contains something else, such as somebody's data. The folder has rows and,
        in its plan, OPTIONS: a new one is private to its owner. Calling it again does nothing. A store has no locks:
        the last one to come is the driver, and the one before it commits nothing more.
        """
        if self.driven:
            return
        self.check_place()
        files.make_private(self.folder)
        if isinstance(self.folder, ObjectPlace):
            self.journal.raise_epoch()
            self.folder.bucket.guard = self.journal.check_driver
        else:
            self._lock = self._locked(self.folder)
        try:
            self._identify()
        except BaseException:
            self.release()
            raise

    def _identify(self) -> None:
        """Give a new checkpoint an id. Raises ``Failure`` (R406) if it has lost the one that its journal knows."""
        self.check_identity(self.journal.last())
        identity = self.identity
        self.own = identity or uuid.uuid4().hex
        if not identity:
            files.write_over(self.folder / IDENTITY, self.own.encode())

    def _locked(self, folder: Path) -> IO[str]:
        lock = (folder / LOCK).open("a+")
        with files.able(folder / LOCK):
            if locked(lock, os.getpid()):
                return lock
        lock.seek(0)
        what = f"a pipeline (process {lock.readline().strip() or 'unknown'}) is running on this checkpoint"
        raise refuse("R404", what, "Stop it first, or give this one a --checkpoint of its own.")

    def announce(self, page: str | None) -> None:
        """Record the address of Spark's page, while this driver has the checkpoint."""
        if self._lock is not None and page:
            announce(self._lock, page)

    def check_place(self) -> None:
        """Raise ``Refused`` (R421) for a folder that contains something else than a checkpoint."""
        present = sorted(path.name for path in self.folder.iterdir()) if self.folder.is_dir() else []
        if self.folder.is_file():
            raise refuse("R421", f"{self.folder} is a file, not a folder", _ANOTHER_FOLDER)
        others = [name for name in present if not name.startswith(".") and name not in _OF_NOBODY]
        if others and not _MARKS.intersection(present):
            shown = ", ".join(others[:3]) + (f" and {len(others) - 3:,} more" if len(others) > 3 else "")  # noqa: PLR2004
            what = f"{self.folder} is not a checkpoint, and it is not empty: it holds {shown}"
            raise refuse("R421", what, _ANOTHER_FOLDER)

    def release(self) -> None:
        """Release the checkpoint for another driver."""
        self.journal.leave()
        if self._lock is not None:
            released(self._lock)
            self._lock = None

    def bind(self, plan: StoredPlan) -> None:
        """Write the plan of a checkpoint without a tick."""
        files.write_over(self.folder / "plan.json", sealed(plan.as_json(), indent=1, number=FORMAT))

    def change(self, plan: StoredPlan, entry: Entry) -> Entry:
        """Switch to another plan with an entry (with its ``tick``) that reads nothing; return the journaled entry.

        The plan is written before the entry, and has no effect until the entry names it. Raises what `Journal.commit`
        does.
        """
        tick, names = entry["tick"], entry.get("plans", ())
        name = f"{len(names) + 1:06d}-{uuid.uuid4().hex[:6]}.json"
        files.make_folder(self.folder / PLANS)
        files.write_new(
            self.folder / PLANS / name, sealed(replace(plan, since=tick).as_json(), indent=1, number=FORMAT)
        )
        journaled = {**entry, "plans": [*names, name]}
        self.journal.commit(tick, journaled)
        return journaled

    @property
    def published(self) -> int:
        """Return the last tick whose output is known to be delivered completely; -1 for none.

        A missing or damaged file is ignored: the last tick is delivered again, as after a crash.
        """
        path = self.folder / "published"
        match = _PUBLISHED.fullmatch(path.read_text(errors="replace")) if path.exists() else None
        if match is None or int(match[2], 16) != _sum(match[1]):
            return -1
        return int(match[1])

    @published.setter
    def published(self, tick: int) -> None:
        # Not synced: if it is lost, the last tick is only delivered again. On a store it is written in the background.
        path = self.folder / "published"
        files.begin(path, lambda: _noted(path, f"{tick} {_sum(str(tick)):08x}"))

    def sweep(self, entry: Entry | None) -> None:
        """Remove leftovers of a crashed tick: plans and state files that no committed entry names."""
        files.arrived(self.folder)  # otherwise it would remove what `show_refused` is still moving
        tick = -1 if entry is None else entry["tick"]
        files.sweep(self.folder / PLANS, () if entry is None else entry.get("plans", ()))
        logs = [] if entry is None else [entry["segments"], entry.get(PAUSED, {}).get("segments", {})]
        live = {row[0] for kept in logs for log in kept.values() for row in log}
        files.clear(path for path in self._below("state") if below(path, self.folder) not in live)
        files.clear(path for path in self._below("rejected") if tick_of(path) > tick)

    def _below(self, name: str) -> Iterator[Place]:
        folder = self.folder / name
        return (path for path in folder.rglob("*") if isinstance(path, ObjectPlace) or path.is_file())

    def show_refused(self, entry: Entry) -> None:
        """Move the refused rows of a committed entry to their final place; if repeated, it moves the rest.

        Only files that the entry names are moved, not those of another try of a task or of a driver that was thought
        dead. From then on the checksum of a file is in its name. On a store the files are there once `files.arrived`
        returns.
        """
        sums = entry.get("sums", {})
        for gate, paths in entry.get("refused", {}).items():
            place = self._refused_by(gate)
            files.make_folder(place)
            for written in paths:
                path, checksum = self.folder / written, sums.get(written)
                target = place / (path.name if checksum is None else f"{path.stem}.{checksum:08x}.parquet")
                files.begin(path, partial(_moved, path, target))
            files.sync_names(place)

    def rejected(self, gate: str, tick: int) -> list[Place]:
        """Return the files of rows that a gate refused up to a committed tick, oldest first; former names included.

        Their names begin with their tick, so the journal lists only those of the last one, which a crashed driver may
        not have moved. Raises ``Failure`` (R406) for one that is damaged or missing.
        """
        entry = self.journal.last() or {}
        paths: list[Place] = []
        for name, first, last in self.spans(gate):
            kept = self._kept(entry, name)
            place = self._refused_by(name)
            checksums = {path: self._sum_of(entry, path) or 0 for path in kept.values()}
            refused_files.compare(entry, name, place, checksums, lambda: [*self.journal.entries()])
            paths += [kept[file] for file in sorted(kept) if first <= tick_of(kept[file]) <= min(tick, last)]
        for path in set(paths) - self._whole:
            files.check_sum(path, self._sum_of(entry, path))
            self._whole.add(path)
        return paths

    def _kept(self, entry: Entry, gate: str) -> dict[str, Place]:
        """Return the files of a gate's refused rows by name; some of the last entry may not be moved yet."""
        written = [self.folder / path for path in entry.get("refused", {}).get(gate, ())]
        left = [path for path in written if path.exists()]
        moved: dict[str, Place] = {path.name: path for path in self._refused_by(gate).glob("*.parquet")}
        moving = {name.partition(".")[0] for name in moved}  # a driver may be moving them now
        return moved | {path.name: path for path in left if path.stem not in moving}

    def _sum_of(self, entry: Entry, path: Place) -> int | None:
        """Return the checksum of a file of refused rows, if known."""
        in_name = _SUM_IN_NAME.search(path.name)
        in_entry = entry.get("sums", {}).get(below(path, self.folder))
        return int(in_name[1], 16) if in_name else in_entry

    def _refused_by(self, gate: str) -> Place:
        return self.folder / "rejected" / folder_of(gate)

    def spans(self, gate: str) -> Sequence[Span]:
        """Return the names of a gate over time: each name, with its first and last tick."""
        return spans_of(self.plan, gate)


def _plan_in(path: Place, what: str) -> StoredPlan:
    try:
        return StoredPlan.read(unsealed(path))
    except FileNotFoundError:
        raise files.damaged(f"{path}, {what}, is gone") from None


Span = Sequence[Any]


def _noted(path: Place, text: str) -> None:
    path.write_text(text)


def _moved(path: Place, target: Place) -> None:
    if path.exists():
        files.move(path, target)


def spans_of(plan: StoredPlan | None, gate: str) -> list[Span]:
    """Return the names of a gate of a plan over time: name, first and last tick."""
    return [*(plan.spans if plan else {}).get(gate, [[gate, plan.anew if plan else 0, FOREVER]])]


def _sum(text: str) -> int:
    return zlib.crc32(text.encode())


def folder_of(name: str) -> str:
    """Return a folder name for an operator: users' names are never used as paths directly.

    Law: no two names share a folder. A name that is too long for a file system gets its beginning and a hash.
    """
    shown = "".join(c if c.isalnum() or c in "-_." else _encoded(c) for c in name)
    shown = f"%2e{shown[1:]}" if shown.startswith(".") else shown or "%"
    if len(shown.encode()) <= _LONGEST:
        return shown
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:32]
    return f"{shown.encode()[:_BEGINNING].decode(errors='ignore')}~{digest}"


def _encoded(character: str) -> str:
    return "".join(f"%{byte:02x}" for byte in character.encode(errors="surrogatepass"))
