"""Files that a crash leaves whole or absent: durable writes and atomic creation."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import uuid
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO

from rowtime.core.checksums import checksum
from rowtime.core.errors import Failure, Problem, refuse
from rowtime.core.shared_paths import sync


def make_folder(folder: Path) -> None:
    """Create a folder and what is missing above it, durably."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync(folder.parent)


def make_private(folder: Path) -> None:
    """Create a folder that only its owner can look into; one that is there stays as it is."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


def write_new(path: Path, data: bytes) -> None:
    """Create a file with its whole content, durably; raises ``FileExistsError`` if it is there.

    A link is atomic and refuses an existing name, so two drivers can never both create
    the same journal entry.
    """
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        _write(draft, data)
        with able(path):
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    sync(path.parent)


@contextlib.contextmanager
def able(path: Path) -> Iterator[None]:
    """R410 where the file system of ``path`` has no links or locks: object stores that are mounted have none."""
    try:
        yield
    except (FileExistsError, BlockingIOError):
        raise
    except OSError as error:
        if error.errno not in _UNABLE:
            raise
        what = f"the file system of {path.parent} cannot create an entry once or lock it: {error.strerror}"
        raise refuse("R410", what, "Take a folder of a POSIX file system: a disk, NFS 4, EFS, CephFS.") from error


_UNABLE = (errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK)


def write_over(path: Path, data: bytes) -> None:
    """Replace a file with a new whole content, durably."""
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        _write(draft, data)
        draft.rename(path)
    finally:
        draft.unlink(missing_ok=True)
    sync(path.parent)


def append(path: Path, data: bytes) -> None:
    """Append to a file that is there, durably; after an ``OSError`` it is as it was."""
    before = path.stat().st_size
    with path.open("ab", buffering=0) as file:
        try:
            _all(file, data)
            os.fsync(file.fileno())
        except OSError:
            file.truncate(before)
            raise


def _all(file: IO[bytes], data: bytes) -> None:
    """Write all or raise: an unbuffered file may take a part where the disk is full."""
    if file.write(data) < len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), file.name)


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def check_sum(path: Path, expected: int | None) -> None:
    """Raise ``Failure`` (R406) if a file of the checkpoint is gone, or its bytes do not have this checksum."""
    try:
        found = checksum(path) if expected is not None else path.stat() and None
    except FileNotFoundError:
        raise damaged(f"{path}, which the journal names, is gone") from None
    if found != expected:
        raise damaged(f"{path} is not as rowtime wrote it: its checksum differs")


def damaged(what: str) -> Failure:
    """R406: something that a checkpoint keeps is gone or changed."""
    hint = "Restore the file, or the whole checkpoint, from a copy. Rowtime does not guess what it held."
    return Failure(Problem("R406", what, hint=hint))


def move(source: Path, target: Path) -> None:
    """Move a file, also between file systems; the target appears whole or not at all."""
    try:
        source.rename(target)
    except OSError:
        draft = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
        shutil.copyfile(source, draft)
        sync(draft)
        draft.rename(target)
        source.unlink()


def link(source: Path, target: Path) -> None:
    """Give a file that never changes a second name, durably; one of the two may be removed without the other."""
    make_folder(target.parent)
    os.link(source, target)
    sync(target.parent)


def remove(path: Path) -> None:
    """Remove a file or a folder if it is there."""
    with contextlib.suppress(FileNotFoundError):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def sweep(folder: Path, kept: Collection[str]) -> None:
    """Remove what stands in a folder under other names than these."""
    for path in folder.glob("*"):
        if path.name not in kept:
            remove(path)
