"""A checkpoint: the folder that holds a pipeline's plan, journal, state and rejected rows.

``plan.json`` (what runs), ``journal/`` (what has happened), ``state/`` (segments),
``rejected/`` (refused rows, a folder a gate), ``sources/`` (files that were numbered), ``cuts/`` (`state.cuts`),
``spark/`` (Spark's own checkpoint, where a ``foreachBatch`` source needs one).
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Final

from rowtime.core.errors import refuse
from rowtime.state.files import make_folder, make_private, remove, sync, write_new
from rowtime.state.journal import Entry, Journal
from rowtime.state.sealed import sealed, unsealed

_LONGEST: Final = 200  # bytes of a folder name; file systems allow 255
_BEGINNING: Final = 120  # bytes of a longer one that stay readable


class Checkpoint:
    """One checkpoint folder. Reading needs no lock; running does (``acquire``)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.journal = Journal(folder / "journal")
        self._lock: IO[str] | None = None

    @property
    def plan(self) -> Mapping[str, Any] | None:
        """What ``plan.json`` says; ``None`` for a fresh checkpoint."""
        path = self.folder / "plan.json"
        return unsealed(path) if path.exists() else None

    @property
    def begun(self) -> bool:
        """True once the script of this checkpoint has taken effect."""
        return any((self.folder / name).exists() for name in ("plan.json", "statements.done"))

    def acquire(self) -> None:
        """Become the one driver of this checkpoint; raises ``Refused`` (R404) if there is another.

        The folder holds rows and, in its plan, what OPTIONS say: a new one is private to its owner.
        """
        make_private(self.folder)
        lock = (self.folder / ".lock").open("a+")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise refuse(
                "R404",
                f"a pipeline (process {lock.read().strip() or 'unknown'}) is running on this checkpoint",
                "Stop it first, or give this one a --checkpoint of its own.",
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        self._lock = lock

    def release(self) -> None:
        """Let another driver in."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def bind(self, plan: Mapping[str, Any]) -> None:
        """Write the plan of a fresh checkpoint, or check that the old one is the same.

        Raises ``Refused`` (R401) with the first statement that differs; nothing is written.
        """
        if self.plan is None:
            write_new(self.folder / "plan.json", sealed(plan, indent=1))
        self.check(plan)

    def check(self, plan: Mapping[str, Any]) -> None:
        """Raise ``Refused`` (R401) where the checkpoint is another query's."""
        old = self.plan
        if old is None:
            return
        if old["fingerprint"] != plan["fingerprint"]:
            raise refuse(
                "R401",
                f"the checkpoint belongs to another query: {_difference(old, plan)}",
                "Run the query it was made for, or give this one a --checkpoint of its own.",
            )

    @property
    def published(self) -> int:
        """The last tick whose output has been handed over as a whole, as far as is known; -1 for none."""
        path = self.folder / "published"
        text = path.read_text() if path.exists() else ""
        return int(text) if text.strip().lstrip("-").isdigit() else -1

    @published.setter
    def published(self, tick: int) -> None:
        # Not synced: losing it only hands the last tick over once more.
        (self.folder / "published").write_text(str(tick))

    def sweep(self, entry: Entry | None) -> None:
        """Remove what a crashed tick left: state files that no committed entry names."""
        tick = -1 if entry is None else entry["tick"]
        live = set() if entry is None else {row[0] for log in entry["segments"].values() for row in log}
        for path in (self.folder / "state").rglob("*"):
            if path.is_file() and str(path.relative_to(self.folder)) not in live:
                remove(path)
        for path in (self.folder / "rejected").rglob("*"):
            if path.is_file() and _tick_of(path) > tick:
                remove(path)

    def show_refused(self, entry: Entry) -> None:
        """Move the refused rows of a committed entry to where they stay; again, it moves what is left.

        Only what the entry names comes there: not what another attempt of a task has written, nor a driver that
        was thought dead.
        """
        for gate, paths in entry.get("refused", {}).items():
            place = self._refused_by(gate)
            make_folder(place)
            for path in (self.folder / path for path in paths):
                if path.exists():
                    path.rename(place / path.name)
            sync(place)

    def rejected(self, gate: str, tick: int) -> list[Path]:
        """The files of rows that a gate refused up to a committed tick, oldest first.

        Their names begin with their tick, so the journal lists only those of the last one, which a driver that
        died may not have moved.
        """
        last = self.journal.last() or {}
        named = last.get("refused", {}).get(gate, ()) if last.get("tick", tick + 1) <= tick else ()
        left = {Path(path).name: self.folder / path for path in named if (self.folder / path).exists()}
        moved = {path.name: path for path in self._refused_by(gate).glob("*") if _tick_of(path) <= tick}
        return [path for _, path in sorted({**left, **moved}.items())]

    def _refused_by(self, gate: str) -> Path:
        return self.folder / "rejected" / folder_of(gate)


def _tick_of(path: Path) -> int:
    return int(path.name.split("-", 1)[0])


def folder_of(name: str) -> str:
    """A folder name for an operator: what users write never becomes a path as it stands.

    Law: no two names share a folder. A name that no file system would take goes by its beginning and a hash.
    """
    shown = "".join(c if c.isalnum() or c in "-_." else _encoded(c) for c in name)
    shown = f"%2e{shown[1:]}" if shown.startswith(".") else shown or "%"
    if len(shown.encode()) <= _LONGEST:
        return shown
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:32]
    return f"{shown.encode()[:_BEGINNING].decode(errors='ignore')}~{digest}"


def _encoded(character: str) -> str:
    return "".join(f"%{byte:02x}" for byte in character.encode(errors="surrogatepass"))


def _difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    before, after = old.get("operators", {}), new.get("operators", {})
    for name in [*before, *after]:
        if before.get(name) != after.get(name):
            return f"{name} was {before.get(name, 'absent')!r}, is {after.get(name, 'absent')!r}"
    return "the statements are not the same"
