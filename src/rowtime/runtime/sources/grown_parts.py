"""Parts of growing files: their new lines, each in a file of its own while a tick reads them."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from rowtime.core.errors import refuse
from rowtime.core.stores import Place
from rowtime.runtime.sources.file_list import NumberedFile

_BLOCK: Final = 1 << 20


@dataclass(frozen=True)
class GrownParts:
    """The parts that a tick reads, below the ``notes`` of a source.

    ``has_header``: the first line of a file has the names of the columns, and is copied to each part.
    """

    notes: Place
    has_header: bool

    def of(self, number: int, file: NumberedFile) -> NumberedFile:
        """Return a numbered file as it is read. Raises ``Refused`` (R542) for a checkpoint that is not on a disk."""
        if not file.grows:
            return file
        if not isinstance(self.notes, Path):
            what = "the parts of a growing file are copied to the checkpoint, which is in a store"
            raise refuse("R542", what, "Use a checkpoint on a disk that all machines mount.")
        place = self._folder / f"{number}{Path(file.path).suffix}"
        place.parent.mkdir(parents=True, exist_ok=True)
        with Path(file.path).open("rb") as source, place.open("wb") as target:
            if self.has_header and file.start:
                target.write(source.readline())
            source.seek(file.start)
            left = file.length
            while left and (data := source.read(min(left, _BLOCK))):
                target.write(data)
                left -= len(data)
        return replace(file, path=str(place), size=place.stat().st_size, start=0)

    def clear(self) -> None:
        """Remove them."""
        if isinstance(self.notes, Path):
            shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _folder(self) -> Path:
        assert isinstance(self.notes, Path)
        return self.notes.absolute() / "grown"
