"""Files and objects that are whole or absent after a crash: durable writes and atomic creation, on disks and stores."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import uuid
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import IO, Final

from rowtime.core.background import Background
from rowtime.core.checksums import checksum
from rowtime.core.errors import Failure, Problem, refuse
from rowtime.core.shared_paths import sync, usable
from rowtime.core.stores import ObjectPlace, Place, below

_AT_ONCE: Final = 16  # syncs


def make_folder(folder: Place) -> None:
    """Create a folder and its missing parents, durably; on a store there are only objects."""
    if isinstance(folder, Path) and not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync(folder.parent)


def sync_names(*folders: Place) -> None:
    """Make the names in folders durable, at the same time; those on a store are."""
    local = [folder for folder in folders if isinstance(folder, Path)]
    if len(local) > 1:
        with ThreadPoolExecutor(min(len(local), _AT_ONCE)) as pool:
            list(pool.map(sync, local))
    else:
        for folder in local:
            sync(folder)


def make_private(folder: Place) -> None:
    """Create a folder that only its owner can read; an existing one stays as it is."""
    if isinstance(folder, ObjectPlace):
        return
    with usable(folder, "Make it writable, or name another: --checkpoint or --home, or ROWTIME_HOME."):
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)


def begin(path: Place, work: Callable[[], None]) -> Future[None] | None:
    """Do some work on a file at once, or start that on an object.

    `arrived` waits for it and raises its error. Readers of the object wait for it, too.
    """
    if isinstance(path, ObjectPlace):
        return path.bucket.background.begin(path.key, work)
    work()
    return None


def begin_to_sync(path: Path) -> None:
    """Start to make a new file and its name durable; they are once `arrived` returns. It may be renamed meanwhile."""
    handle = os.open(path, os.O_RDONLY)

    def work() -> None:
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    _SYNCS.begin(str(path), work)


def arrived(folder: Place) -> None:
    """Wait for all running work in the bucket of a folder, or for syncs of files below it; raises the first error."""
    if isinstance(folder, ObjectPlace):
        folder.bucket.background.wait_for_all()
        return
    for place in {Path(name).parent for name in _SYNCS.wait_for_all(str(folder))}:
        _SYNCS.begin(str(place), partial(sync, place))
    _SYNCS.wait_for_all(str(folder))


_SYNCS = Background()


def write_new(path: Place, data: bytes) -> None:
    """Create a file with its whole content, durably; raises ``FileExistsError`` if it exists.

    A link is atomic and refuses an existing name, so two drivers can never both create the same journal entry. A store
    creates an object on the same condition.
    """
    if isinstance(path, ObjectPlace):
        path.create(data)
        return
    with _drafted(path, data) as draft, able(path):
        os.link(draft, path)


@contextlib.contextmanager
def able(path: Path) -> Iterator[None]:
    """Raise R410 if the file system of ``path`` has no links or locks, as mounted object stores."""
    try:
        yield
    except (FileExistsError, BlockingIOError):
        raise
    except OSError as error:
        if error.errno not in _UNABLE:
            raise
        what = f"the file system of {path.parent} cannot create an entry once or lock it: {error.strerror}"
        raise refuse("R410", what, "Use a folder of a POSIX file system: a disk, NFS 4, EFS, CephFS.") from error


_UNABLE = (errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK)


def write_over(path: Place, data: bytes) -> None:
    """Replace a file's whole content, durably."""
    if isinstance(path, ObjectPlace):
        path.replace(data)
        return
    with _drafted(path, data) as draft:
        draft.rename(path)


def append(path: Place, data: bytes) -> None:
    """Append to an existing file, durably; after an ``OSError`` it is unchanged. An object is written again."""
    if isinstance(path, ObjectPlace):
        path.replace(path.read_bytes() + data)
        return
    before = path.stat().st_size
    with path.open("ab", buffering=0) as file:
        try:
            _all(file, data)
            os.fsync(file.fileno())
        except OSError:
            file.truncate(before)
            raise


def _all(file: IO[bytes], data: bytes) -> None:
    """Write all or raise: an unbuffered write may be partial if the disk is full."""
    if file.write(data) < len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), file.name)


@contextlib.contextmanager
def _drafted(path: Path, data: bytes) -> Iterator[Path]:
    """Yield a durable file with this content beside ``path``, under a hidden name, to be renamed."""
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        _write(draft, data)
        yield draft
    finally:
        draft.unlink(missing_ok=True)
    sync(path.parent)


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def check_sum(path: Place, expected: int | None) -> None:
    """Raise ``Failure`` (R406) if a file of the checkpoint is missing, or does not have this checksum."""
    try:
        actual = _sum(path) if expected is not None else None
    except FileNotFoundError:
        actual = None
    if actual is None and not path.exists():
        raise damaged(f"{path}, which the journal names, is gone")
    if actual != expected:
        raise damaged(f"{path} has changed since rowtime wrote it: its checksum differs")


def _sum(path: Place) -> int:
    return checksum(path) if isinstance(path, Path) else zlib.crc32(path.read_bytes())


def damaged(what: str) -> Failure:
    """Return R406: something in a checkpoint is missing or changed."""
    hint = "Restore the file, or the whole checkpoint, from a copy. Rowtime does not guess what it held."
    return Failure(Problem("R406", what, hint=hint))


def move(source: Place, target: Place) -> None:
    """Move a file, also between file systems and out of a store; the target appears whole or not at all.

    On a store it has both names for a while. If another driver moves the object as well, it still arrives.
    """
    if isinstance(source, ObjectPlace):
        with contextlib.suppress(FileNotFoundError):
            if isinstance(target, ObjectPlace):
                source.copy_to(target)
            else:
                write_over(target, source.read_bytes())
            source.unlink(missing_ok=True)
        return
    assert isinstance(target, Path)
    try:
        source.rename(target)
    except OSError:
        draft = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
        shutil.copyfile(source, draft)
        sync(draft)
        draft.rename(target)
        source.unlink()


def link(source: Place, target: Place) -> None:
    """Give a file that never changes a second name, durably; either one may be removed without the other."""
    if isinstance(source, ObjectPlace):
        assert isinstance(target, ObjectPlace)
        source.copy_to(target)
        return
    assert isinstance(target, Path)
    make_folder(target.parent)
    os.link(source, target)
    sync(target.parent)


def copy_folder(source: Place, target: Path) -> None:
    """Copy a folder to a disk, if it exists."""
    if isinstance(source, Path):
        if source.is_dir():
            shutil.copytree(source, target)
        return
    for path in source.rglob():
        place = target / below(path, source)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(path.read_bytes())


def remove(path: Place) -> None:
    """Remove a file or a folder if it exists; on a store, an object."""
    with contextlib.suppress(FileNotFoundError):
        if isinstance(path, Path) and path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def begin_to_remove(path: Place) -> None:
    """`remove`, as `begin` does it."""
    begin(path, lambda: remove(path))


def sweep(folder: Place, kept: Collection[str]) -> None:
    """Remove everything in a folder except these names, which may be those of files in its folders."""
    inside: dict[str, list[str]] = {}
    for name in kept:
        first, _, rest = name.partition("/")
        inside.setdefault(first, []).extend([rest] if rest else [])
    clear(path for path in folder.glob("*") if path.name not in inside)
    for name, names in inside.items():
        if names:
            sweep(folder / name, names)


def clear(paths: Iterable[Place]) -> None:
    """Remove leftovers of a crash that this driver has found.

    On a store the guard is called once everything is found: a succeeding driver writes only afterwards, so none of its
    files is removed.
    """
    listed = [*paths]
    for bucket in {path.bucket for path in listed if isinstance(path, ObjectPlace)}:
        bucket.guard()
    for path in listed:
        remove(path)
