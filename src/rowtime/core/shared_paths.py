"""Where rowtime keeps and finds files: places of the file system, which every machine of a cluster has to share."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from urllib.parse import unquote, urlparse

from rowtime.core.errors import refuse

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


def local(path: str | Path, what: str) -> Path:
    """The absolute path of a place that may be given as ``file:`` URL; R211 for one on an object store or in HDFS.

    A path would take such a URL for the name of a folder, and each machine would write to one of its own.
    """
    found = _SCHEME.match(str(path))
    if found is None:
        return Path(path).absolute()
    if found[1].lower() == "file":
        return Path(unquote(urlparse(str(path)).path))
    raise refuse(
        "R211",
        f"{what} is {path}, and {found[1]} is not a file system that rowtime can write to",
        "Use a folder that all machines mount: NFS, EFS, CephFS, a shared volume.",
    )


def sync(path: Path) -> None:
    """Make a file's content durable, or the names in a folder: a new file survives the death of a machine only then."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def temporary() -> Path:
    """A new, empty file of this machine alone: a draft of what a store takes as a whole."""
    handle, name = tempfile.mkstemp(prefix="rowtime-")
    os.close(handle)
    return Path(name)
