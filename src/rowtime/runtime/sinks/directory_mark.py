"""The mark of a pump in a directory: an empty file whose name says what the pump has published there.

    _rowtime/<pump>/published-<tag>-<tick>-<rows>-<link>-<link before>

The tag is that of the pump's files. The mark gets the name of a tick before the tick's files are in place, so it counts
files that readers have moved away since. The link is a random number for each tick. The journal knows the link of the
tick before its last one, so a directory that was emptied or restored, or that belongs to another copy of the
checkpoint, is noticed by its mark.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rowtime.runtime.sinks.ownership import Proof
from rowtime.state.files import make_folder

_NAME: Final = re.compile(r"published-([0-9a-f]{8})-(\d+)-(\d+)-([0-9a-f]{16})-([0-9a-f]{16})")
_NOTHING: Final = "0" * 16


@dataclass(frozen=True)
class Mark:
    """All ticks up to ``tick``, with so many ``rows``; ``link`` identifies this content, ``before`` that before it."""

    tag: str
    tick: int
    rows: int
    link: str
    before: str = _NOTHING

    @property
    def proof(self) -> Proof:
        """Return what the journal stores of it."""
        return Proof(self.rows, self.link)

    def follows(self, known: Proof) -> bool:
        """Return True if this is the content that the journal knows, or that with one more tick."""
        return known.link in (self.link, self.before)


def mark_in(folder: Path, tag: str) -> Mark | None:
    """Return the mark of a pump of a checkpoint in the folder of the pump; ``None`` if there is none."""
    matches = (_NAME.fullmatch(path.name) for path in folder.glob(f"published-{tag}-*"))
    marks = [Mark(tag, int(match[2]), int(match[3]), match[4], match[5]) for match in matches if match]
    return max(marks, key=lambda mark: mark.tick, default=None)


def marked(folder: Path, tag: str, tick: int, rows: int) -> Mark:
    """Mark a tick as published, unless it is, and return the mark. The caller makes its name durable."""
    before = mark_in(folder, tag)
    if before is not None and (before.tick, before.rows) == (tick, rows):
        return before
    mark = Mark(tag, tick, rows, uuid.uuid4().hex[:16], _NOTHING if before is None else before.link)
    if before is None:
        make_folder(folder)
        _place(folder, mark).touch()
    else:
        _place(folder, before).rename(_place(folder, mark))
    return mark


def _place(folder: Path, of: Mark) -> Path:
    return folder / f"published-{of.tag}-{of.tick:010}-{of.rows}-{of.link}-{of.before}"
