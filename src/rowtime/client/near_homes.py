"""Near homes: where a stream may be defined that the home in use does not have.

The default home is `.rowtime` in the working directory. So a command in another folder of the same project finds an
empty home. It then says which home near by has streams.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rowtime.client.file_names import escape

MOST: Final = 100  # folders beside each other that are looked at


def near(home: Path, folder: str, name: str) -> str:
    """A hint which home near by defines a stream; of any stream, if ``name`` is empty. Empty if there is none.

    ``folder``: what a home is called by default. Homes in the folders above and in those directly below are near.
    """
    file = f"{escape(name.lower())}.json" if name else "*.json"
    found = next((one for one in _homes(folder) if one != home.absolute() and _defines(one, file)), None)
    what = "it" if name else "streams"
    return f"The home {found} defines {what}: --home {found}" if found is not None else ""


def _homes(folder: str) -> Iterator[Path]:
    here = Path.cwd()
    yield from (parent / folder for parent in here.parents)
    try:
        names = sorted(one.name for one in os.scandir(here) if one.is_dir())
    except OSError:
        return
    yield from (here / name / folder for name in names[:MOST])


def _defines(home: Path, name: str) -> bool:
    """True if the streams of a home that may be read include one of this file name."""
    try:
        return any((home / "streams").glob(name))
    except OSError:
        return False
