"""Paths of the file system, which every machine of a cluster has to share."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from urllib.parse import unquote, urlparse

from rowtime.core.errors import refuse

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
