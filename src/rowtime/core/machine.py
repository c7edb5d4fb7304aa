"""Errors of the operating system that a machine's limits cause: no room, no right to write, too many open files."""

from __future__ import annotations

import errno
from typing import Final

from rowtime.core.errors import Problem

ROOM: Final = (errno.ENOSPC, errno.EDQUOT)
DISK: Final = (*ROOM, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO)
OPEN_FILES: Final = (errno.EMFILE, errno.ENFILE)
REPEATED: Final = "The tick is repeated."

_FREE: Final = "Free some space, or give the user that runs rowtime the right to write there."
_FILES: Final = "Raise the limit of open files, for example with ulimit -n 65536; for a service, LimitNOFILE."


def limit_of(error: OSError, what: str, more: str = "") -> Problem | None:
    """Return R422 if an error is of this kind; ``what`` could not be done, ``more`` is added to the hint."""
    where = f" ({error.filename})" if error.filename is not None else ""
    if error.errno not in (*DISK, *OPEN_FILES):
        return None
    hint = _FILES if error.errno in OPEN_FILES else _FREE
    return Problem("R422", f"{what}: {error.strerror}{where}", hint=f"{hint} {more}".rstrip())
