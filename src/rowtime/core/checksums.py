"""Checksums of files that never change: CRC-32 over every byte, computed at writing, compared at reading.

A checksum finds what a disk, a copy or an editor has changed. It does not protect against forgery.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path

_BLOCK = 1 << 20  # bytes per read: large enough to run without Python's lock, small enough for the cache


def checksum(path: str | Path) -> int:
    """Compute the CRC-32 of a file."""
    total = 0
    handle = os.open(path, os.O_RDONLY)  # with thousands of small files, opening them costs the most
    try:
        while block := os.read(handle, min(_BLOCK, os.fstat(handle).st_size or 1)):
            total = zlib.crc32(block, total)
    finally:
        os.close(handle)
    return total
