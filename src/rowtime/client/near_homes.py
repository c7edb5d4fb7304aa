"""Nearby homes, in which a stream may be defined that the present home lacks.

The default home is `.rowtime` in the working directory. So a command in another folder of the same project finds an
empty home. It then names a nearby home that has streams.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rowtime.client.file_names import escape

MOST: Final = 100  # sibling folders that are searched


def near(home: Path, folder: str, name: str) -> str:
    """Return a hint which nearby home defines a stream; any stream, if ``name`` is empty. Empty if there is none.

    ``folder``: the default name of a home. Homes in the folders above and in those directly below are nearby.
    """
    file = f"{escape(name.lower())}.json" if name else "*.json"
    nearest = next(
        (candidate for candidate in _homes(folder) if candidate != home.absolute() and _defines(candidate, file)), None
    )
    what = "it" if name else "streams"
    if nearest is None:
        return ""
    return f'The home {nearest} defines {what}: --home {nearest}, or home="{nearest}" in Python.'


def _homes(folder: str) -> Iterator[Path]:
    current = Path.cwd()
    yield from (parent / folder for parent in current.parents)
    try:
        names = sorted(entry.name for entry in os.scandir(current) if entry.is_dir())
    except OSError:
        return
    yield from (current / name / folder for name in names[:MOST])


def _defines(home: Path, name: str) -> bool:
    """Return True if a readable home has a stream with this file name."""
    try:
        return any((home / "streams").glob(name))
    except OSError:
        return False
