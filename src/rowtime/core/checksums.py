"""Checksums of files that never change: CRC-32 over every byte, computed at writing, compared at reading.

A checksum finds what a disk, a copy or an editor has changed. It is no protection against forgery.
"""

from __future__ import annotations

import zlib
from pathlib import Path

_BLOCK = 1 << 20  # bytes at once: large enough that the checksum runs without Python's lock, small enough for the cache


def checksum(path: Path) -> int:
    """Compute the CRC-32 of a file."""
    found = 0
    with path.open("rb", buffering=0) as file:
        while block := file.read(_BLOCK):
            found = zlib.crc32(block, found)
    return found
