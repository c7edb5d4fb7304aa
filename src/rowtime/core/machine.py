"""Errors of the operating system: no room, no right to read or write, too many open files, a folder for a file."""

from __future__ import annotations

import errno
from typing import Final

from rowtime.core.errors import Problem

ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
OPEN_FILES: Final = (errno.EMFILE, errno.ENFILE)
REPEATED: Final = "The tick is repeated."

_FREE: Final = "Free some space, or raise the quota or the limit of file sizes (ulimit -f)."
_RIGHTS: Final = "Give the user that runs rowtime the right to read and write there."
_MOUNT: Final = "Mount the disk for writing, or name a folder on another one."
_BROKEN: Final = "Look at the log of the machine: the disk may be broken, or no longer there."
_WAY: Final = "Move away what is there, or correct the path: a folder is in the place of a file, or the reverse."
_NAME: Final = "Use a shorter path or name."
_FILES: Final = "Raise the limit of open files, for example with ulimit -n 65536; for a service, LimitNOFILE."
_HINTS: Final = {
    **dict.fromkeys(ROOM, _FREE),
    **dict.fromkeys(OPEN_FILES, _FILES),
    **dict.fromkeys((errno.EACCES, errno.EPERM), _RIGHTS),
    **dict.fromkeys((errno.EISDIR, errno.ENOTDIR), _WAY),
    errno.EROFS: _MOUNT,
    errno.EIO: _BROKEN,
    errno.ENAMETOOLONG: _NAME,
}


def limit_of(error: OSError, what: str, more: str = "") -> Problem | None:
    """Return R422 if an error is of this kind; ``what`` could not be done, ``more`` is added to the hint."""
    where = f" ({error.filename})" if error.filename is not None else ""
    hint = _HINTS.get(error.errno or 0)
    if hint is None:
        return None
    return Problem("R422", f"{what}: {error.strerror}{where}", hint=f"{hint} {more}".rstrip())
