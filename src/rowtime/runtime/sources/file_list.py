"""The numbered files of a directory: a list in the checkpoint that only grows; the journal has its checksum.

A line is a JSON list: path, arrival (µs UTC), size, and since checksums exist an object with the other facts about a
file. A file is written to the list when a tick takes it. Lines after the committed ones belong to a tick that did not
commit; their files are numbered again.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from rowtime.core.stores import Place
from rowtime.runtime.sources.file_places import has_size
from rowtime.state.files import append, begin, damaged, make_folder, write_over

_EDGE: Final = 1 << 14  # bytes at each end of a file that its print covers
_HALF: Final = 1 << 23  # bytes at each end of a file that its content's checksum covers
_BLOCK: Final = 1 << 20


@dataclass(frozen=True)
class NumberedFile:
    """A file as it was when it got its number.

    ``arrived``: µs UTC, raised if times go back; ``time``: of its last change, ns, 0 if an older version did not record
    it; ``node``: its place in the file system; ``print``: see `print_of`; ``content``: see `content_of`, 0 until it is
    read. ``code``: why its rows are not read, as a code of an error, in words ``why``; ``was``: the name under which
    they have been read. ``code`` may be empty. ``version``: the version of the lake table that added it; ``values``:
    those of its partition columns, as texts. ``grows``: it may get more lines later; it is read from the byte ``start``
    to ``size``, where a line ends.
    """

    path: str
    arrived: int
    size: int
    time: int = 0
    node: int = 0
    print: int = 0
    content: int = 0
    code: str = ""
    why: str = ""
    was: str = ""
    version: int = 0
    values: Mapping[str, str | None] = field(default_factory=dict)
    grows: bool = False
    start: int = 0

    @property
    def length(self) -> int:
        """Return how many bytes are read."""
        return self.size - self.start

    @property
    def read(self) -> bool:
        """Return True if its rows are read under this number."""
        return self.code in ("", REPLACED)

    @property
    def identity(self) -> tuple[int, int, int]:
        """Return what does not change if a file is renamed."""
        return self.size, self.time, self.print

    def line(self) -> bytes:
        """Return the file as a line of the list."""
        more = {name: value for name in _MORE if (value := getattr(self, name))}
        return json.dumps([self.path, self.arrived, self.size, *([more] if more else [])]).encode() + b"\n"


_MORE: Final = ("time", "node", "print", "content", "code", "why", "was", "version", "values", "grows", "start")
UNREADABLE: Final = "R520"
APPENDED: Final = "R521"
RENAMED: Final = "R522"
REPLACED: Final = "R523"


def print_of(path: str, size: int) -> int:
    """Return the checksum of the first and the last 16 KiB of the first ``size`` bytes of a file."""
    return _sum_of(path, size, _EDGE)


def content_of(file: NumberedFile) -> int:
    """Return the checksum of a file's content; above 16 MiB, of both ends (8 MiB); 0 if the print covers all of it.

    Takes a third of a millisecond per MiB. Raises ``OSError``.
    """
    return _sum_of(file.path, file.size, _HALF) if file.size > 2 * _EDGE else 0


def _sum_of(path: str, size: int, edge: int) -> int:
    total = 0
    handle = os.open(path, os.O_RDONLY)  # with many small files, opening them costs the most
    try:
        for first, end in ((0, min(size, edge)), (max(min(size, edge), size - edge), size)):
            for at in range(first, end, _BLOCK):
                total = zlib.crc32(os.pread(handle, min(_BLOCK, end - at), at), total)
    finally:
        os.close(handle)
    return total


def is_as_numbered(file: NumberedFile) -> bool:
    """Return True if the file exists with the same size and time; one that grows may have more."""
    if not file.path.startswith("/"):
        return has_size(file.path, file.size)
    try:
        facts = os.stat(file.path)  # noqa: PTH116 - for many files, a Path for each costs more than this
    except OSError:
        return False
    if file.grows:
        return facts.st_size >= file.size and _still_holds(file)
    return facts.st_size == file.size and (not file.time or facts.st_mtime_ns == file.time)


def _still_holds(file: NumberedFile) -> bool:
    try:
        return holds(file)
    except OSError:
        return False


def end_of_lines(path: str, start: int, size: int) -> int:
    """Return where the last full line between two places of a file ends, else ``start``. Raises ``OSError``."""
    with Path(path).open("rb") as file:
        end = size
        while end > start:
            begin = max(start, end - _BLOCK)
            file.seek(begin)
            index = file.read(end - begin).rfind(b"\n")
            if index >= 0:
                return begin + index + 1
            end = begin
    return start


def is_unchanged(file: NumberedFile) -> bool:
    """Return True if the file exists with the same content; its time may differ."""
    if is_as_numbered(file):
        return True
    try:
        return Path(file.path).stat().st_size == file.size and file.print > 0 and holds(file)
    except OSError:
        return False


def holds(file: NumberedFile) -> bool:
    """Return True if the present file begins with the recorded content. Raises ``OSError``."""
    if print_of(file.path, file.size) != file.print:
        return False
    return not file.content or content_of(file) == file.content


class FileList:
    """The list of one source, in the folder ``notes`` of its checkpoint."""

    def __init__(self, notes: Place) -> None:
        self.path = notes / "files.jsonl"
        self.files: list[NumberedFile] = []
        self._sums: list[int] = []
        self._sure = True  # whether the written content is known
        self._under_way: tuple[Future[None], int] | None = None  # a running write, and the line count before it

    def load(self, committed: int, checksum: int | None, *, whole: bool = False) -> None:
        """Read the list: the committed files, or all; the first ``committed`` have the ``checksum``.

        Raises ``Failure`` (R406) if it does not have them as they were written.
        """
        self._confirm()
        stored = self.path.read_bytes() if self.path.exists() else b""
        lines = [line + b"\n" for line in stored.split(b"\n")[:-1]]
        sums = _running(lines)
        if len(lines) < committed:
            raise damaged(f"{self.path} lists {len(lines)} of the {committed} files that have been read")
        if checksum is not None and committed and sums[committed - 1] != checksum:
            raise damaged(f"{self.path} has changed since rowtime wrote it: its checksum differs")
        lines = lines if whole else lines[:committed]
        files = [_parsed(self.path, line) for line in lines]
        kept = b"".join(lines)
        if not whole and (kept != stored or not stored):
            make_folder(self.path.parent)
            write_over(self.path, kept)
        # Not before the list is as this source knows it: a failed write is tried again.
        self.files, self._sums = files, sums[: len(lines)]

    def sum_of(self, count: int) -> int:
        """Return the checksum of the first lines, which have been written."""
        return self._sums[count - 1] if count else 0

    def add(self, files: Sequence[NumberedFile]) -> None:
        """Give numbers to files."""
        self.files += files

    def put(self, first: int, files: Sequence[NumberedFile]) -> None:
        """Give the numbers from ``first`` on to files as they are now; none of these may be committed."""
        for number, file in enumerate(files, first):
            if self.files[number] != file:
                self._unwrite(number)
                self.files[number] = file

    def write(self, count: int) -> None:
        """Write the missing ones of the first ``count`` files; durable as `files.begin` says."""
        self._confirm()
        before = len(self._sums)
        lines = [file.line() for file in self.files[before:count]]
        if not lines:
            return
        more, self._sure = self._sure, False
        data = b"".join(lines if more else (file.line() for file in self.files[:count]))
        writing = begin(self.path, lambda: (append if more else write_over)(self.path, data))
        self._under_way, self._sure = (None, True) if writing is None else ((writing, before), False)
        self._sums += _running(lines, self._sums[-1] if self._sums else 0)

    def _confirm(self) -> None:
        """Wait for a running write. If it has failed, the content is unknown: everything is written again."""
        if self._under_way is not None:
            (writing, before), self._under_way = self._under_way, None
            self._sure = writing.exception() is None
            del self._sums[len(self._sums) if self._sure else before :]

    def cut(self, count: int) -> None:
        """Keep only the first numbers; none after ``count`` may be committed."""
        self._unwrite(count)
        del self.files[count:]

    def _unwrite(self, count: int) -> None:
        self._confirm()
        if len(self._sums) > count:
            write_over(self.path, b"".join(file.line() for file in self.files[:count]))
            del self._sums[count:]


def _running(lines: Sequence[bytes], at: int = 0) -> list[int]:
    """Return the checksum of everything up to each line."""
    sums = []
    for line in lines:
        at = zlib.crc32(line, at)
        sums.append(at)
    return sums


def _parsed(path: Place, line: bytes) -> NumberedFile:
    try:
        content: Any = json.loads(line)
        name, arrived, size, *more = content
        extra: Mapping[str, Any] = more[0] if more else {}
        return NumberedFile(str(name), int(arrived), int(size), **{key: extra[key] for key in _MORE if key in extra})
    except (ValueError, TypeError):
        raise damaged(f"{path} is not as rowtime wrote it: it has a line that is not valid") from None


def present(file: NumberedFile, moved: Mapping[str, str]) -> NumberedFile:
    """Return a file with its present name."""
    path, seen = file.path, {file.path}
    while path in moved and moved[path] not in seen:
        path = moved[path]
        seen.add(path)
    return file if path == file.path or Path(file.path).exists() else replace(file, path=path)
