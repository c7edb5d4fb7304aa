"""Every write of this process below a folder, seen before it happens: so it can fail, or the disk can be copied."""

from __future__ import annotations

import errno
import io
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

_CALLS = ((os, "link"), (os, "rename"), (os, "replace"), (os, "mkdir"), (os, "unlink"), (os, "fsync"))
CHANGING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
Seen = Callable[[str, str], None]  # what is called, the path


@contextmanager
def watched(folder: Path, seen: Seen) -> Iterator[threading.RLock]:
    """Call ``seen`` before each call that changes something below the folder; its exceptions are raised there.

    Yields the lock that is held while ``seen`` runs. Whoever calls ``seen`` for other writes holds the same one: with
    two locks, two threads may each wait for the lock of the other.
    """
    bases, turn = {str(folder), str(folder.resolve())}, threading.RLock()

    def about(what: str, path: object) -> None:
        text = _opened_as(path) if what == "fsync" else path
        if isinstance(text, str | os.PathLike) and any(f"{os.fspath(text)}/".startswith(f"{base}/") for base in bases):
            with turn:
                seen(what, os.fspath(text))

    calls = (*_CALLS, (io, "open"), (os, "open"))
    before = [(module, name, getattr(module, name)) for module, name in calls]
    writer = pq.ParquetWriter.__init__
    for module, name, call in before:
        setattr(module, name, _opening(call, about) if name == "open" else _calling(name, call, about))

    def opened(self: Any, where: Any, *given: Any, **options: Any) -> None:
        about("write", where)
        writer(self, where, *given, **options)

    pq.ParquetWriter.__init__ = opened  # type: ignore[method-assign]
    try:
        yield turn
    finally:
        pq.ParquetWriter.__init__ = writer  # type: ignore[method-assign]
        for module, name, call in before:
            setattr(module, name, call)


def _opened_as(file: Any) -> str:
    """Return the path of an open file: other threads sync files of their own folders, in which nothing may fail."""
    return str(Path("/proc/self/fd", str(file if isinstance(file, int) else file.fileno())).readlink())


def _calling(name: str, call: Any, about: Seen) -> Any:
    def called(path: Any, *given: Any, **options: Any) -> Any:
        about(name, given[0] if name in ("link", "rename", "replace") else path)
        return call(path, *given, **options)

    return called


def _opening(call: Any, about: Seen) -> Any:
    """Wrap ``io.open``, which takes a mode, or ``os.open``, which takes flags."""

    def opened(path: Any, mode: str | int = "r", *given: Any, **options: Any) -> Any:
        if mode & CHANGING if isinstance(mode, int) else set(mode) & set("wax+"):
            about("open", path)
        return call(path, mode, *given, **options)

    return opened


def failing(at: int, number: int) -> Seen:
    """Let the write of that number fail, counted from 0, with this error number."""
    count = iter(range(10**9))

    def seen(_what: str, path: str) -> None:
        if next(count) == at:
            raise OSError(number, os.strerror(number), path)

    return seen


ERRORS = (errno.ENOSPC, errno.EACCES, errno.EIO)
