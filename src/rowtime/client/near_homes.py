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
    found = next((one for one in _homes(folder) if one != home.absolute() and _defines(one, file)), None)
    what = "it" if name else "streams"
    if found is None:
        return ""
    return f'The home {found} defines {what}: --home {found}, or home="{found}" in Python.'


def _homes(folder: str) -> Iterator[Path]:
    current = Path.cwd()
    yield from (parent / folder for parent in current.parents)
    try:
        names = sorted(one.name for one in os.scandir(current) if one.is_dir())
    except OSError:
        return
    yield from (current / name / folder for name in names[:MOST])


def _defines(home: Path, name: str) -> bool:
    """Return True if a readable home has a stream with this file name."""
    try:
        return any((home / "streams").glob(name))
    except OSError:
        return False
