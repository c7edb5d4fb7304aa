"""The mark of a pump in a directory: an empty file whose name says what the pump has published there.

    _rowtime/<pump>/published-<tag>-<tick>-<rows>-<link>

The tag is that of the pump's files. The mark gets the name of a tick before the tick's files are in place, so it counts
files that readers have moved away since. The link is the random number that the journal has for each tick, so a
directory that was emptied or restored, or that belongs to another copy of the checkpoint, is noticed by its mark.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rowtime.runtime.sinks.ownership import Proof
from rowtime.state.files import make_folder

_NAME: Final = re.compile(r"published-([0-9a-f]{8})-(\d+)-(\d+)-([0-9a-f]{16})")


@dataclass(frozen=True)
class Mark:
    """All ticks up to ``tick``, with so many ``rows``; ``link`` identifies this content."""

    tag: str
    tick: int
    rows: int
    link: str

    @property
    def proof(self) -> Proof:
        """Return what the journal stores of it."""
        return Proof(self.rows, self.link)


def mark_in(folder: Path, tag: str) -> Mark | None:
    """Return the mark of a pump of a checkpoint in the folder of the pump; ``None`` if there is none."""
    matches = (_NAME.fullmatch(path.name) for path in folder.glob(f"published-{tag}-*"))
    marks = [Mark(tag, int(match[2]), int(match[3]), match[4]) for match in matches if match]
    return max(marks, key=lambda mark: mark.tick, default=None)


def marked(folder: Path, tag: str, tick: int, rows: int, link: str) -> Mark:
    """Mark a tick as published, unless it is, and return the mark. The caller makes its name durable."""
    before, mark = mark_in(folder, tag), Mark(tag, tick, rows, link)
    if before is None:
        make_folder(folder)
        _place(folder, mark).touch()
    else:
        _place(folder, before).rename(_place(folder, mark))
    return mark


def _place(folder: Path, of: Mark) -> Path:
    return folder / f"published-{of.tag}-{of.tick:010}-{of.rows}-{of.link}"
