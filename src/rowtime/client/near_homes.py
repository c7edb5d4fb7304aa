"""Nearby homes, in which a stream may be defined that the present home lacks.

The default home is `.rowtime` in the working directory. So a command in another folder of the same project finds an
empty home. It then names a nearby home that has streams.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from shlex import quote
from typing import Final

from rowtime.client.file_names import escape
from rowtime.core.errors import Problem

MOST: Final = 100  # sibling folders that are searched


def near(home: Path, folder: str, name: str) -> str:
    """Return a hint which nearby home defines a stream; any stream, if ``name`` is empty. Empty if there is none.

    ``folder``: the default name of a home. Homes in the folders above and in those directly below are nearby.
    """
    nearest = _nearest(home, folder, name)
    return f"The home {nearest} defines {'it' if name else 'streams'}: {_option(nearest)}." if nearest else ""


def stray(home: Path, folder: str, names: Iterable[str]) -> Problem | None:
    """Return a warning if a nearby home defines one of the streams that a script defines in this home, which is empty.

    Only for the default home: another one is named on purpose.
    """
    if home.absolute() != Path.cwd() / folder:
        return None
    for name in names:
        if nearest := _nearest(home, folder, name):
            what = f"the home {home.absolute()} is new, and the home {nearest} already defines {name}"
            return Problem("R218", what, hint=f"If you meant that one: {_option(nearest)}.", warns=True)
    return None


def _nearest(home: Path, folder: str, name: str) -> Path | None:
    file = f"{escape(name.lower())}.json" if name else "*.json"
    return next((near for near in _homes(folder) if near != home.absolute() and _defines(near, file)), None)


def _option(home: Path) -> str:
    """Return how a command and a program name a home, ready to be copied."""
    return f"--home {quote(str(home))}, or home={json.dumps(str(home), ensure_ascii=False)} in Python"


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
