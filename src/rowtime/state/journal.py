"""The journal: one atomic entry a tick makes everything of that tick visible.

An entry is the whole control state after its tick: positions, clocks, bounds, ledger, live
segments, output files. So a start reads the last entry only, whatever the number of ticks,
and whoever wants to know where time stands needs nothing else, neither Spark nor Java.

A large entry, of a stream that thousands of writers have left, say, is stored as what differs from a **base**, an
object of its own that many entries share. A new base is written once the differences together are as long as the base:
with B bytes of which b change in a tick, a tick writes some ``sqrt(2 * B * b)`` bytes, not B.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from rowtime.core.errors import Failure, Problem, Refused, refuse
from rowtime.state.differences import applied, difference
from rowtime.state.files import damaged, make_folder, remove, write_new
from rowtime.state.sealed import FORMAT, WITH_BASES, sealed, unsealed

KEPT_ENTRIES = 64
LARGE: Final = 1 << 14  # bytes; a smaller entry is stored as it is
BASES: Final = "bases"
_NAME = re.compile(r"(\d{12})\.json")
_BASE_NAME = re.compile(r"(\d{12})-[0-9a-f]{6}\.json")


class _Base(NamedTuple):
    """What entries are told apart from: the name of its file, what it holds, and its length in bytes."""

    name: str
    entry: Mapping[str, Any]
    length: int


Entry = Mapping[str, Any]


class Journal:
    """The entries of one checkpoint, in ``<checkpoint>/journal/<tick>.json``; the bases in its folder ``bases``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._began = False  # this object has committed
        self._base: _Base | None = None  # that of the newest entry
        self._written = 0  # bytes of the differences from it

    def last(self) -> Entry | None:
        """The newest entry; ``None`` before the first commit. Raises what `read` does."""
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
        """The entry of one tick. Raises what `unsealed` does; R406 too if the base of the entry is gone."""
        stored = unsealed(self._path(tick))
        return applied(self._read_base(stored["base"]).entry, stored["changes"]) if "base" in stored else stored

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
            write_new(self._path(tick), self._stored({"tick": tick, **entry}))
        except FileExistsError:
            raise _overtaken(tick) from None
        if self._ticks()[-1] > tick:
            remove(self._path(tick))
            raise _overtaken(tick)
        self._prune(tick)

    def _stored(self, entry: Mapping[str, Any]) -> bytes:
        """An entry as its file holds it; writes a new base first where that is due."""
        if not self._began:
            self._go_on()
        if self._base is not None and self._written < self._base.length:
            return self._different(self._base, entry)
        whole = sealed(entry)
        if len(whole) < LARGE:
            self._base = None
            return whole
        name = f"{entry['tick']:012d}-{uuid.uuid4().hex[:6]}.json"
        make_folder(self._folder / BASES)
        write_new(self._folder / BASES / name, whole)
        # Read back: what the engine holds may change after this tick, and text has no tuples.
        self._base, self._written = _Base(name, json.loads(whole), len(whole)), 0
        return self._different(self._base, entry)

    def _go_on(self) -> None:
        """Take the base of the newest entry, so that runs of one tick each need no base each."""
        self._began, ticks = True, self._ticks()
        stored = unsealed(self._path(ticks[-1])) if ticks else {}
        if "base" in stored:
            self._base = self._read_base(stored["base"])
            self._written = stored["written"] + self._path(ticks[-1]).stat().st_size

    def _different(self, base: _Base, entry: Mapping[str, Any]) -> bytes:
        changes = difference(base.entry, {"format": FORMAT, **entry})
        found = sealed(
            {"tick": entry["tick"], "base": base.name, "written": self._written, "changes": changes}, number=WITH_BASES
        )
        self._written += len(found)
        return found

    def _read_base(self, name: str) -> _Base:
        path = self._folder / BASES / name
        if not _BASE_NAME.fullmatch(name):
            raise damaged(f"{self._folder} has an entry with the base {name!r}, which is no name of a base")
        try:
            return _Base(name, unsealed(path), path.stat().st_size)
        except FileNotFoundError:
            raise damaged(f"{path}, which the journal names, is gone") from None

    def _prune(self, tick: int) -> None:
        """Remove old entries, and the bases that none of those left has.

        A tick has its base from the same or an earlier tick, and a later tick never an earlier base.
        """
        if tick % KEPT_ENTRIES:
            return
        for old in self._ticks():
            if old <= tick - KEPT_ENTRIES:
                remove(self._path(old))
        bases = sorted(path.name for path in (self._folder / BASES).glob("*.json"))
        if not bases:
            return
        oldest = self._ticks()[0]
        with suppress(Failure):  # of a damaged entry that is not needed to go on
            needed = unsealed(self._path(oldest)).get("base", f"{oldest:012d}")
            for name in bases:
                if name < needed:
                    remove(self._folder / BASES / name)

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
