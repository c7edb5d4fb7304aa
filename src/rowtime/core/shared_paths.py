"""Paths of the file system, which every machine of a cluster has to share."""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlparse

from rowtime.core.errors import Failure, Problem, refuse

_LASTING = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


def local(path: str | Path, what: str) -> Path:
    """Return a path or ``file:`` URL as an absolute path; R211 for an object store or HDFS.

    Otherwise such a URL would be taken for the name of a folder, and each machine would write to its own.
    """
    match = _SCHEME.match(str(path))
    if match is None:
        return Path(path).absolute()
    if match[1].lower() == "file":
        return Path(unquote(urlparse(str(path)).path))
    raise refuse(
        "R211",
        f"{what} is {path}, and {match[1]} is not a file system that rowtime can write to",
        "Use a folder that all machines mount: NFS, EFS, CephFS, a shared volume.",
    )


@contextmanager
def usable(folder: Path, hint: str) -> Iterator[None]:
    """Raise ``Failure`` (R501) if this folder cannot be made or written: rights, a read-only disk, a file in the way.

    Other errors, such as a full disk, pass: they may not last.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _LASTING:
            raise
        what = f"the folder {folder.absolute()} cannot be written: {error.strerror}"
        raise Failure(Problem("R501", what, hint=hint)) from error


def sync(path: Path) -> None:
    """Make a file's content, or a folder's entries, durable: only then does a new file survive a machine crash."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def temporary() -> Path:
    """Return a new, empty local file: a draft of an object that a store takes as a whole."""
    handle, name = tempfile.mkstemp(prefix="rowtime-")
    os.close(handle)
    return Path(name)
