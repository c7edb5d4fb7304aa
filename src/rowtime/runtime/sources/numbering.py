"""Numbering: which files of a directory are new, and what has happened to those that have been read.

A file gets its number when it is found; a number is never used twice. Other findings get a number too, under which
nothing is read, so that the journal has them in order: a file that cannot be read (R520), one with more rows than when
it was read (R521), one that was read under another name (R522). A file that was overwritten after it was read counts as
a new file (R523), and is read.

Each look at the directory compares the size, the time and the place of every file with the recorded ones; only if one
of them differs is its content read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate, islice
from pathlib import Path
from typing import Any, Final

from rowtime.core.errors import Failure, Problem
from rowtime.core.stores import Place
from rowtime.runtime.sources.contract import Limits
from rowtime.runtime.sources.file_faults import UNREAD, Expected, damage_of, first_line, lasting, messages_of
from rowtime.runtime.sources.file_globs import Chosen
from rowtime.runtime.sources.file_list import (
    APPENDED,
    RENAMED,
    REPLACED,
    UNREADABLE,
    FileList,
    NumberedFile,
    content_of,
    end_of_lines,
    holds,
    is_as_numbered,
    print_of,
)
from rowtime.runtime.sources.file_places import COMPRESSED, DAMAGED
from rowtime.runtime.sources.touched import Facts, Touched

SHOWN: Final = 100  # files that the journal names
_LARGE: Final = 1 << 20  # bytes from which a file is worth a thread
_SECOND: Final = 1_000_000_000  # ns; file systems with whole seconds give many files the same time


class Numbering:
    """The numbers of the files at ``path``; those with the ``expected`` content are read.

    ``chosen``: which of the files there belong to the stream. ``growing``: files may get more lines later, each time
    under a new number.
    """

    def __init__(self, path: Path, notes: Place, expected: Expected, chosen: Chosen, *, growing: bool = False) -> None:
        self.path, self.expected, self.chosen, self.growing = path, expected, chosen, growing
        self.list = FileList(notes)
        self._loaded = False
        self._at: dict[str, int] = {}
        self._identities: dict[tuple[int, int, int], int] = {}
        self._unreadable: set[str] = set()
        self._known: dict[str, Facts] = {}
        self._touched = Touched(notes)
        self._blamed: dict[tuple[str, int, int], str] = {}

    @property
    def count(self) -> int:
        """Return how many numbers there are."""
        return len(self.list.files)

    def load(self, state: Mapping[str, Any], *, whole: bool = False) -> None:
        """Read the list, once. Raises ``Failure`` (R406) if it differs from the journal's record."""
        committed, checksum = state.get("listed", 0), state.get("sum")
        if not self._loaded:
            self.list.load(committed, checksum, whole=whole)
            self._touched.load()
            self._index_all()
            self._loaded = True
        elif whole and (self.count < committed or (checksum is not None and self.list.sum_of(committed) != checksum)):
            self.list.load(committed, checksum, whole=True)

    def take(self, first: int, limits: Limits) -> list[NumberedFile]:
        """Return the present files from a number on, within the limits; new ones are numbered if none is left."""
        if first >= self.count:
            self.number(self.new())
        taken = list(within(self.list.files[first:], limits))
        if not all(is_as_numbered(file) for file in taken if file.read):
            self.list.cut(first)
            self._index_all()
            self.number(self.new())
            taken = list(within(self.list.files[first:], limits))
        taken = _each(self._as_read, taken)
        self.list.put(first, taken)
        self.list.write(first + len(taken))
        self._index(first, first + len(taken))
        return taken

    def size_from(self, number: int) -> int:
        """Return how many bytes the files have from a number on."""
        return sum(file.length for file in islice(self.list.files, number, None))

    def pass_over(self) -> None:
        """Number present files without reading them."""
        self.number(self.new())
        self.list.write(self.count)

    def state(self, before: Mapping[str, Any], first: int, taken: Sequence[NumberedFile]) -> dict[str, Any]:
        """Return the journal's notes once files are taken: the list's length and checksum, and other findings."""
        end = first + len(taken)
        state: dict[str, Any] = {"listed": end, "sum": self.list.sum_of(end)}
        aside, counts = dict(before.get("aside", {})), dict(before.get("counts", {}))
        unreadable = set(map(_shown, self._unreadable))
        aside = {name: note for name, note in aside.items() if note[0] != UNREADABLE or name in unreadable}
        for file in taken:
            aside.pop(_shown(file.path), None)
            if file.code:
                aside[_shown(file.path)] = [file.code, file.why]
                counts[file.code] = counts.get(file.code, 0) + 1
        if counts:
            state |= {"aside": dict([*aside.items()][-SHOWN:]), "counts": counts}
        return state

    def new(self) -> list[NumberedFile]:
        """Return files without a number, in the order in which they get one."""
        present = self._present()
        fresh = (self._file_of(path, facts) for path, facts in present if self._known.get(path) != facts)
        files = [file for file in (*fresh, *self._unreadable_now()) if file is not None]
        return sorted(files, key=lambda file: (file.arrived, file.path))

    def _present(self) -> Iterator[tuple[str, Facts]]:
        try:
            if not self.path.exists():
                hint = "Create the directory, or correct the path."
                raise Failure(Problem("R501", f"the source {self.path} does not exist", hint=hint))
            yield from _listed(self.path, self.chosen)
        except OSError as error:
            what = f"the source {self.path} cannot be read: {error.strerror} ({error.filename})"
            hint = "Give the user that runs rowtime the right to read and list each folder below it."
            raise Failure(Problem("R501", what, hint=hint)) from error

    def number(self, files: Sequence[NumberedFile]) -> None:
        """Give numbers to files."""
        latest = self.list.files[-1].arrived if self.list.files else 0
        # Semantics 2.4: an arrival time that goes back is raised to the previous one.
        arrivals = accumulate((file.arrived for file in files), max, initial=latest)
        first = self.count
        raised = zip(files, islice(arrivals, 1, None), strict=True)
        self.list.add([file if file.arrived == at else replace(file, arrived=at) for file, at in raised])
        self._index(first)

    def blame(self, error: BaseException, taken: Sequence[NumberedFile]) -> bool:
        """Return True if files caused a failure and are skipped from now on, or no longer exist."""
        text = messages_of(error)
        named = [file for file in taken if file.path in text]
        if not named and not (isinstance(error, DAMAGED) or UNREAD in text):
            return False
        blamed = False
        for file in named or taken:
            why = damage_of(self.expected.kind, file.path) if is_as_numbered(file) else ""
            why = lasting(text) if why is None and named else why
            if why:
                self._blamed[file.path, file.size, file.time] = why
            blamed = blamed or why is not None
        return blamed

    def places(self) -> dict[str, str]:
        """Return the present names of files that were renamed after they were read."""
        return {file.was: file.path for file in self.list.files if file.code == RENAMED}

    # -- changes of files ---------------------------------------------------------------

    def _index_all(self) -> None:
        self._at, self._identities, self._known = {}, {}, {}
        self._unreadable.clear()
        self._index(0)

    def _index(self, first: int, end: int | None = None) -> None:
        for number, file in enumerate(self.list.files[first:end], first):
            self._at[file.path] = number
            self._known[file.path] = self._touched.facts(number) or (file.size, file.time, file.node)
            (self._unreadable.add if file.code == UNREADABLE else self._unreadable.discard)(file.path)
            if file.time and file.code != UNREADABLE:
                self._identities[file.identity] = number
            elif self._identities.get(file.identity) == number:
                del self._identities[file.identity]

    def _as_read(self, file: NumberedFile) -> NumberedFile:
        """Return a file that is about to be read, with the checksum of its content; set aside if it cannot be read."""
        if not file.read:
            return file
        why = self._fault(file)
        try:
            content = 0 if why else file.content or content_of(file)
        except OSError as error:
            why = f"it cannot be read: {first_line(error)}"
        if why:
            return replace(file, code=UNREADABLE, why=why)
        return replace(file, content=content) if content else file

    def _fault(self, file: NumberedFile) -> str | None:
        if not file.size:
            return "it is empty"
        blamed = self._blamed.get((file.path, file.size, file.time))
        return blamed or self.expected.fault_of(file.path)

    def _file_of(self, path: str, facts: Facts) -> NumberedFile | None:
        """Return what to number for a file that is new or changed; ``None`` for nothing."""
        if path not in self._at:
            return self._fresh(path) if self.chosen.has(path) else None
        return self._looked_at(self._at[path], facts) if path not in self._unreadable else None

    def _fresh(self, path: str) -> NumberedFile | None:
        """Return a file with a new name; ``None`` if it no longer exists."""
        try:
            facts = os.stat(path)  # noqa: PTH116 - as in `is_as_numbered`
        except OSError:
            return None
        identity = (path, facts.st_mtime_ns // 1000, facts.st_size, facts.st_mtime_ns, facts.st_ino)
        if self.growing and _is_utf8(path) and not path.lower().endswith(COMPRESSED):
            return self._grown(path, facts.st_size, facts.st_mtime_ns, facts.st_ino)
        if not _is_utf8(path):
            return NumberedFile(*identity, code=UNREADABLE, why="its name is not UTF-8: give it another one")
        try:
            file = NumberedFile(*identity, print_of(path, facts.st_size), values=self.expected.values_of(path))
        except OSError as error:
            return NumberedFile(*identity, code=UNREADABLE, why=f"it cannot be opened: {first_line(error)}")
        before = self._identities.get(file.identity)
        return file if before is None else self._renamed(file, self.list.files[before])

    def _grown(self, path: str, size: int, time: int, node: int, start: int = 0) -> NumberedFile | None:
        """Return the full lines of a file from a byte on; ``None`` if there are none yet."""
        identity = (path, time // 1000, size, time, node)
        try:
            end = end_of_lines(path, start, size)
            file = replace(NumberedFile(*identity, print_of(path, end)), size=end, grows=True, start=start)
        except OSError as error:
            return NumberedFile(*identity, code=UNREADABLE, why=f"it cannot be opened: {first_line(error)}")
        if end == start:
            return None
        file = replace(file, values=self.expected.values_of(path))
        before = self._identities.get(file.identity) if not start else None
        return file if before is None else self._renamed(file, self.list.files[before])

    def _renamed(self, file: NumberedFile, before: NumberedFile) -> NumberedFile:
        alike = file.node == before.node or file.time % _SECOND > 0
        if file.path == before.path or not alike or os.path.exists(before.path):  # noqa: PTH110 - as above
            return file
        why = f"it has been read as {before.path}"
        return replace(file, code=RENAMED, why=why, was=before.path, content=before.content)

    def _unreadable_now(self) -> Iterator[NumberedFile | None]:
        """Yield files that could not be read and have changed."""
        for path in sorted(self._unreadable):
            file = self.list.files[self._at[path]]
            if not os.path.lexists(path):
                self._unreadable.remove(path)  # a later file with this name is new
                del self._at[path], self._known[path]
            elif not is_as_numbered(file) or (file.size and not file.print and _is_utf8(path) and _opens(path)):
                with suppress(FileNotFoundError):
                    facts = _facts(Path(path).stat())
                    yield self._grown(path, *facts, start=file.start) if file.grows else self._fresh(path)

    def _looked_at(self, number: int, facts: Facts) -> NumberedFile | None:
        """Return what to number for a file that was read and has another size, time or place; ``None`` if unchanged.

        An older version has recorded only the size.
        """
        file = self.list.files[number]
        size, time, _ = facts
        try:
            same = not file.time or (size >= file.size and holds(file))
        except OSError:
            return None
        if not same:
            fresh = self._fresh(file.path)
            why = "it was rewritten after it was read, and is read again as a new file"
            return fresh if fresh is None or fresh.code else replace(fresh, code=REPLACED, why=why)
        if file.grows:
            more = self._grown(file.path, *facts, start=file.size)
            if more is None:
                self._known[file.path] = facts
            return more
        if size == file.size or file.code == APPENDED:
            self._known[file.path] = facts
            self._touched.add(number, facts)
            return None
        why = f"it had {file.size:,} bytes when it was read, and has {size:,}; what was added is not read"
        return replace(file, arrived=time // 1000, time=time, code=APPENDED, why=why, was="")


def _each(change: Callable[[NumberedFile], NumberedFile], files: Sequence[NumberedFile]) -> list[NumberedFile]:
    """Apply a change that reads files, to several concurrently."""
    width = min(len(files), os.cpu_count() or 1)
    if not any(file.size > _LARGE for file in files):
        return [*map(change, files)]
    changed = [*files]
    with ThreadPoolExecutor(width) as pool:
        for at, part in enumerate(
            pool.map(lambda part: [*map(change, part)], (files[at::width] for at in range(width)))
        ):
            changed[at::width] = part
    return changed


def noted(file: NumberedFile) -> dict[str, str]:
    """Return why a number exists, besides the rows of a new file, in plain values."""
    return {"file": _shown(file.path), "code": file.code, "why": file.why}


def _shown(path: str) -> str:
    """Return a readable name, whatever its bytes are."""
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


def _listed(place: Path, chosen: Chosen) -> Iterator[tuple[str, Facts]]:
    """Yield the files at a place with their facts."""
    if not place.is_file():
        yield from _below(str(place), chosen)
    else:
        yield str(place), _facts(place.stat())


def _below(folder: str, chosen: Chosen) -> Iterator[tuple[str, Facts]]:
    """Yield files below a folder, without those that Spark hides: names that begin with ``_`` or ``.``."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(("_", ".")):
                continue
            if entry.is_dir(follow_symlinks=False):
                if chosen.enters(entry.path):
                    yield from _below(entry.path, chosen)
            elif entry.is_file():
                with suppress(FileNotFoundError):  # it no longer exists
                    yield entry.path, _facts(entry.stat())


def _facts(status: os.stat_result) -> Facts:
    return status.st_size, status.st_mtime_ns, status.st_ino


def within(files: Sequence[NumberedFile], limits: Limits) -> Iterator[NumberedFile]:
    """Yield the first of some files, within the limits of a tick, at least one."""
    used = 0
    for number, file in enumerate(files):
        used += file.length
        if number and limits.files is not None and number >= limits.files:
            return
        if number and limits.bytes is not None and used > limits.bytes:
            return
        yield file
