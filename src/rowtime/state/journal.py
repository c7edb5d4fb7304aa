"""The journal: one atomic entry a tick makes everything of that tick visible.

An entry is the whole control state after its tick: positions, clocks, bounds, ledger, live
segments, output files. So a start reads the last entry only, whatever the number of ticks,
and whoever wants to know where time stands needs nothing else, neither Spark nor Java.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rowtime.core.errors import refuse
from rowtime.state.files import remove, write_new

FORMAT = 1
KEPT_ENTRIES = 64

Entry = Mapping[str, Any]


class Journal:
    """The entries of one checkpoint, in ``<checkpoint>/journal/<tick>.json``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def last(self) -> Entry | None:
        """The newest entry; ``None`` before the first commit. Raises ``Refused`` (R402) on a newer format."""
        ticks = self._ticks()
        return self.read(ticks[-1]) if ticks else None

    def read(self, tick: int) -> Entry:
        """The entry of one tick."""
        entry: Entry = json.loads(self._path(tick).read_bytes())
        if entry.get("format", 0) > FORMAT:
            raise refuse(
                "R402",
                f"the checkpoint has format {entry['format']}, this version reads up to {FORMAT}",
                "Run it with the version of rowtime that wrote it, or a newer one.",
            )
        return entry

    def commit(self, tick: int, entry: Mapping[str, Any]) -> None:
        """Create the entry of a tick, durably and at once.

        Raises ``Refused`` (R403) if another driver has committed that tick: this one was
        thought dead and must not go on.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        data = json.dumps({"format": FORMAT, "tick": tick, **entry}, separators=(",", ":"))
        try:
            write_new(self._path(tick), data.encode())
        except FileExistsError:
            raise refuse(
                "R403",
                f"another driver has committed tick {tick} of this checkpoint",
                "Stop one of the two; a checkpoint belongs to one running pipeline.",
            ) from None
        self._prune(tick)

    def _prune(self, tick: int) -> None:
        if tick % KEPT_ENTRIES == 0:
            for old in self._ticks():
                if old <= tick - KEPT_ENTRIES:
                    remove(self._path(old))

    def _ticks(self) -> list[int]:
        if not self._folder.is_dir():
            return []
        return sorted(int(path.stem) for path in self._folder.glob("[0-9]*.json"))

    def _path(self, tick: int) -> Path:
        return self._folder / f"{tick:012d}.json"
