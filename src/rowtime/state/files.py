"""Files that a crash leaves whole or absent: durable writes and atomic creation."""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from pathlib import Path


def sync_directory(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_new(path: Path, data: bytes) -> None:
    """Create a file with its whole content, durably; raises ``FileExistsError`` if it is there.

    A link is atomic and refuses an existing name, so two drivers can never both create
    the same journal entry.
    """
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    _write(draft, data)
    try:
        os.link(draft, path)
    finally:
        draft.unlink()
    sync_directory(path.parent)


def write_over(path: Path, data: bytes) -> None:
    """Replace a file with a new whole content, durably."""
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    _write(draft, data)
    draft.rename(path)
    sync_directory(path.parent)


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def move(source: Path, target: Path) -> None:
    """Move a file, also between file systems; the target appears whole or not at all."""
    try:
        source.rename(target)
    except OSError:
        draft = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
        shutil.copyfile(source, draft)
        draft.rename(target)
        source.unlink()


def remove(path: Path) -> None:
    """Remove a file or a folder if it is there."""
    with contextlib.suppress(FileNotFoundError):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
