"""The journal: one atomic entry a tick makes everything of that tick visible.

An entry is the whole control state after its tick: positions, clocks, bounds, ledger, live
segments, output files. So a start reads the last entry only, whatever the number of ticks,
and whoever wants to know where time stands needs nothing else, neither Spark nor Java.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rowtime.core.errors import Failure, Problem, Refused, refuse
from rowtime.state.files import remove, write_new
from rowtime.state.sealed import sealed, unsealed

KEPT_ENTRIES = 64
_NAME = re.compile(r"(\d{12})\.json")

Entry = Mapping[str, Any]


class Journal:
    """The entries of one checkpoint, in ``<checkpoint>/journal/<tick>.json``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def last(self) -> Entry | None:
        """The newest entry; ``None`` before the first commit. Raises what `unsealed` does."""
        ticks = self._ticks()
        return self.read(ticks[-1]) if ticks else None

    def check(self) -> int:
        """Check that no entry is missing; the last tick comes back, -1 before the first commit.

        Those that pruning may have begun to remove need not be there. Raises ``Failure`` (R420) for a gap.
        """
        there = self._ticks()
        last = there[-1] if there else -1
        gone = sorted(set(range(max(0, _first_kept(last)), last)) - set(there))
        if gone:
            raise behind(self._folder.parent, f"the entry of tick {gone[0]} is gone, and that of tick {last} is there")
        return last

    def read(self, tick: int) -> Entry:
        """The entry of one tick."""
        return unsealed(self._path(tick))

    def entries(self) -> Iterator[Entry]:
        """Those that are still there, oldest first."""
        return map(self.read, self._ticks())

    def commit(self, tick: int, entry: Mapping[str, Any]) -> None:
        """Create the entry of a tick, durably and at once.

        Raises ``Refused`` (R403) if another driver has committed that tick, or one behind it when
        that tick's own entry was pruned: this one was thought dead and must not go on.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            write_new(self._path(tick), sealed({"tick": tick, **entry}))
        except FileExistsError:
            raise _overtaken(tick) from None
        if self._ticks()[-1] > tick:
            remove(self._path(tick))
            raise _overtaken(tick)
        self._prune(tick)

    def _prune(self, tick: int) -> None:
        if tick % KEPT_ENTRIES == 0:
            for old in self._ticks():
                if old <= tick - KEPT_ENTRIES:
                    remove(self._path(old))

    def _ticks(self) -> list[int]:
        if not self._folder.is_dir():
            return []
        return sorted(int(found[1]) for path in self._folder.iterdir() if (found := _NAME.fullmatch(path.name)))

    def _path(self, tick: int) -> Path:
        return self._folder / f"{tick:012d}.json"


def _first_kept(last: int) -> int:
    """The first tick whose entry has to be there, by the last commit that has pruned."""
    return last // KEPT_ENTRIES * KEPT_ENTRIES - KEPT_ENTRIES + 1


def behind(checkpoint: Path, what: str) -> Failure:
    """R420: the journal is not the one that was written; going on from it would write rows twice."""
    hint = (
        "Restore the whole checkpoint from one copy, together with the outputs of the same moment; "
        "or begin anew with another --checkpoint and empty outputs."
    )
    return Failure(Problem("R420", f"the journal of {checkpoint} has lost entries: {what}", hint=hint))


def _overtaken(tick: int) -> Refused:
    what = f"another driver has committed tick {tick} of this checkpoint"
    return refuse("R403", what, "Stop one of the two; a checkpoint belongs to one running pipeline.")
