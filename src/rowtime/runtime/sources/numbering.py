"""Numbering: which files of a directory are new, and what has become of those that have been read.

A file gets its number when it is found; a number is never used twice. What is found besides new files gets a number
too, under which nothing is read, so that it stands in the journal at its place: a file that cannot be read (R520), one
with more rows than when it was read (R521), one that was read under another name (R522). A file that was written anew
after it was read is another file (R523), and is read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from rowtime.core.errors import Failure, Problem
from rowtime.runtime.sources.contract import Limits
from rowtime.runtime.sources.file_faults import UNREAD, damage_of, fault_of, lasting, said, told
from rowtime.runtime.sources.file_list import (
    APPENDED,
    RENAMED,
    REPLACED,
    UNREADABLE,
    FileList,
    NumberedFile,
    is_as_numbered,
    print_of,
)

LOOKED_AT: Final = 1_000  # files that are looked at again, each time: of many, a change is found after some time
SHOWN: Final = 100  # files that the journal names
_SECOND: Final = 1_000_000_000  # ns; file systems that know whole seconds only give one time to many files


class Numbering:
    """The numbers of the files at ``path``, of ``kind``, of which columns of the types ``wanted`` are read.

    ``chosen``: whether the files of a name belong to them.
    """

    def __init__(
        self, path: Path, notes: Path, kind: str, wanted: Mapping[str, str], chosen: Callable[[str], bool]
    ) -> None:
        self.path, self.kind, self.wanted, self.chosen = path, kind, wanted, chosen
        self.list = FileList(notes)
        self._loaded = False
        self._at: dict[str, int] = {}
        self._identities: dict[tuple[int, int, int], int] = {}
        self._unreadable: set[str] = set()
        self._touched: dict[str, int] = {}
        self._blamed: dict[tuple[str, int, int], str] = {}
        self._turn = 0

    @property
    def count(self) -> int:
        """How many numbers there are."""
        return len(self.list.files)

    def load(self, state: Mapping[str, Any], *, whole: bool = False) -> None:
        """Read the list, once. Raises ``Failure`` (R406) if it is not as the journal knows it."""
        committed, known = state.get("listed", 0), state.get("sum")
        if not self._loaded:
            self.list.load(committed, known, whole=whole)
            self._index()
            self._loaded = True
        elif whole and (self.count < committed or (known is not None and self.list.sum_of(committed) != known)):
            self.list.load(committed, known, whole=True)

    def take(self, first: int, limits: Limits) -> list[NumberedFile]:
        """The files from a number on, as they are now, within the limits; new ones are numbered if none is left."""
        if first >= self.count:
            self.number(self.new())
        taken = list(_within(self.list.files[first:], limits))
        if not all(is_as_numbered(file) for file in taken if file.read):
            self.list.cut(first)
            self._index()
            self.number(self.new())
            taken = list(_within(self.list.files[first:], limits))
        faults = {at: why for at, file in enumerate(taken) if file.read and (why := self._fault(file))}
        if faults:
            taken = [replace(f, code=UNREADABLE, why=faults[at]) if at in faults else f for at, f in enumerate(taken)]
            self.list.cut(first, [*taken, *self.list.files[first + len(taken) :]])
            self._index()
        return taken

    def state(self, before: Mapping[str, Any], first: int, taken: Sequence[NumberedFile]) -> dict[str, Any]:
        """What the journal keeps once files are taken: the list's length and checksum, and what was found besides."""
        end = first + len(taken)
        found: dict[str, Any] = {"listed": end, "sum": self.list.sum_of(end)}
        aside, counts = dict(before.get("aside", {})), dict(before.get("counts", {}))
        unreadable = set(map(_shown, self._unreadable))
        aside = {name: note for name, note in aside.items() if note[0] != UNREADABLE or name in unreadable}
        for file in taken:
            aside.pop(_shown(file.path), None)
            if file.code:
                aside[_shown(file.path)] = [file.code, file.why]
                counts[file.code] = counts.get(file.code, 0) + 1
        if counts:
            found |= {"aside": dict([*aside.items()][-SHOWN:]), "counts": counts}
        return found

    def new(self) -> list[NumberedFile]:
        """What has no number yet, in the order in which it gets one."""
        if not self.path.exists():
            hint = "Create the directory, or correct the path."
            raise Failure(Problem("R501", f"the source {self.path} is not there", hint=hint))
        names = [str(self.path)] if self.path.is_file() else _names(str(self.path))
        fresh = (self._fresh(name) for name in names if name not in self._at and self.chosen(name.rpartition("/")[2]))
        found = [file for file in (*fresh, *self._changed()) if file is not None]
        return sorted(found, key=lambda file: (file.arrived, file.path))

    def number(self, files: Sequence[NumberedFile]) -> None:
        """Give numbers to files."""
        if not files:
            return
        latest = self.list.files[-1].arrived if self.list.files else 0
        # SPEC 2.4: an arrival time that goes back is raised to the previous one.
        arrivals = accumulate((file.arrived for file in files), max, initial=latest)
        first = self.count
        raised = zip(files, islice(arrivals, 1, None), strict=True)
        self.list.add([file if file.arrived == at else replace(file, arrived=at) for file, at in raised])
        self._index(first)

    def blame(self, error: BaseException, taken: Sequence[NumberedFile]) -> bool:
        """True if files are the reason for a failure and are left out from now on, or are not there any more."""
        text = told(error)
        named = [file for file in taken if file.path in text]
        if not named and not (isinstance(error, pa.ArrowException | OSError) or UNREAD in text):
            return False
        found = False
        for file in named or taken:
            why = damage_of(self.kind, file.path) if is_as_numbered(file) else ""
            why = lasting(text) if why is None and named else why
            if why:
                self._blamed[file.path, file.size, file.time] = why
            found = found or why is not None
        return found

    def places(self) -> dict[str, str]:
        """Where files are that were renamed after they were read."""
        return {file.was: file.path for file in self.list.files if file.code == RENAMED}

    # -- what has become of a file ----------------------------------------------------

    def _index(self, first: int = 0) -> None:
        if not first:
            self._at, self._identities = {}, {}
            self._unreadable.clear()
        for number, file in enumerate(self.list.files[first:], first):
            self._at[file.path] = number
            (self._unreadable.add if file.code == UNREADABLE else self._unreadable.discard)(file.path)
            if file.time and file.code != UNREADABLE:
                self._identities[file.identity] = number

    def _fault(self, file: NumberedFile) -> str | None:
        if not file.size:
            return "it is empty"
        blamed = self._blamed.get((file.path, file.size, file.time))
        return blamed or fault_of(self.kind, file.path, self.wanted)

    def _fresh(self, path: str) -> NumberedFile | None:
        """A file under a name that is new; ``None`` if it has gone meanwhile."""
        try:
            facts = os.stat(path)  # noqa: PTH116 - as in `is_as_numbered`
        except OSError:
            return None
        known = (path, facts.st_mtime_ns // 1000, facts.st_size, facts.st_mtime_ns, facts.st_ino)
        if not _is_utf8(path):
            return NumberedFile(*known, code=UNREADABLE, why="its name is not UTF-8: give it another one")
        try:
            file = NumberedFile(*known, print_of(path, facts.st_size))
        except OSError as error:
            return NumberedFile(*known, code=UNREADABLE, why=f"it cannot be opened: {said(error)}")
        before = self._identities.get(file.identity)
        return file if before is None else self._renamed(file, self.list.files[before])

    def _renamed(self, file: NumberedFile, before: NumberedFile) -> NumberedFile:
        alike = file.node == before.node or file.time % _SECOND > 0
        if file.path == before.path or not alike or os.path.exists(before.path):  # noqa: PTH110 - as above
            return file
        why = f"it has been read as {before.path}"
        return replace(file, code=RENAMED, why=why, was=before.path)

    def _changed(self) -> Iterator[NumberedFile | None]:
        """Files that are not as they were when they were numbered."""
        due = self.list.files[self._turn : self._turn + LOOKED_AT]
        for number, file in enumerate(due, self._turn):
            if self._at.get(file.path) == number and file.path not in self._unreadable:
                yield self._looked_at(file)
        self._turn = self._turn + LOOKED_AT if self._turn + LOOKED_AT < self.count else 0
        for path in sorted(self._unreadable):
            file = self.list.files[self._at[path]]
            if not os.path.lexists(path):
                self._unreadable.remove(path)  # and whatever comes under this name is new
                del self._at[path]
            elif not is_as_numbered(file) or (file.size and not file.print and _is_utf8(path) and _opens(path)):
                yield self._fresh(path)

    def _looked_at(self, file: NumberedFile) -> NumberedFile | None:
        if is_as_numbered(file):
            return None
        found = self._fresh(file.path)
        if found is None or self._touched.get(file.path) == found.time:
            return None
        same = found.size >= file.size and file.time > 0 and print_of(file.path, file.size) == file.print
        if same or not file.time:  # an older version has noted no more than the size
            self._touched[file.path] = found.time
            if found.size == file.size or file.code == APPENDED:
                return None
            why = f"it had {file.size:,} bytes when it was read, and has {found.size:,}; what was added is not read"
            return replace(file, arrived=found.arrived, time=found.time, code=APPENDED, why=why, was="")
        return replace(
            found, code=REPLACED, why="it has been written anew since it was read, and is read as a new file"
        )


def noted(file: NumberedFile) -> dict[str, str]:
    """What a number is there for, besides the rows of a new file, in plain values."""
    return {"file": _shown(file.path), "code": file.code, "why": file.why}


def _shown(path: str) -> str:
    """A name that people can read, whatever its bytes are."""
    return path.encode(errors="surrogateescape").decode(errors="replace")


def _is_utf8(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _opens(path: str) -> bool:
    try:
        with Path(path).open("rb"):
            return True
    except OSError:
        return False


def _names(folder: str) -> Iterator[str]:
    """Files below a folder, without those that Spark hides: names that begin with ``_`` or ``.``."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(("_", ".")):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _names(entry.path)
            elif entry.is_file():
                yield entry.path


def _within(files: Sequence[NumberedFile], limits: Limits) -> Iterator[NumberedFile]:
    used = 0
    for number, file in enumerate(files):
        used += file.size
        if number and limits.files is not None and number >= limits.files:
            return
        if number and limits.bytes is not None and used > limits.bytes:
            return
        yield file
