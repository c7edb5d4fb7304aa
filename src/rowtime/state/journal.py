"""The journal: one atomic entry a tick makes everything of that tick visible.

An entry is the whole control state after its tick: positions, clocks, bounds, ledger, live segments, output files. So a
start reads only the last entry, whatever the number of ticks, and readers of the bounds need nothing else, neither
Spark nor Java.

A large entry, for example of a stream that thousands of writers have left, is stored as the difference from a **base**,
an object of its own that many entries share. A new base is written once the differences together are as long as the
base: with B bytes of which b change in a tick, a tick writes some ``sqrt(2 * B * b)`` bytes, not B.

If there is no lock, an **epoch** keeps a second driver out (semantics 14.3). A driver begins with an entry of its own,
which repeats the last one with the epoch one higher. The entry of a tick is under the number tick + epoch, so this one
takes the place of the next entry of every older driver. Without epochs the number is the tick.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from rowtime.core.errors import Failure, Problem, Refused, refuse
from rowtime.core.stores import TRIES, Place
from rowtime.state.files import damaged, make_folder, remove, write_new
from rowtime.state.sealed import FORMAT, WITH_BASES, sealed, unsealed

KEPT_ENTRIES = 64
_MARK: Final = ("epoch", "driver")
LARGE: Final = 1 << 14  # bytes; a smaller entry is stored as it is
BASES: Final = "bases"
PAUSED: Final = "paused"  # what an entry keeps of the operators of pumps that do not run, by the names of its parts
_NAME = re.compile(r"(\d{12})\.json")
_BASE_NAME = re.compile(r"(\d{12})-[0-9a-f]{6}\.json")


class _Base(NamedTuple):
    """The base of entries: the name of its file, its content, and its length in bytes."""

    name: str
    entry: Mapping[str, Any]
    length: int


Entry = Mapping[str, Any]


class Journal:
    """The entries of one checkpoint, in ``<checkpoint>/journal/<number>.json``; the bases in its folder ``bases``.

    ``remembers``: a base that was read is cached for the next entry with it, for readers of many entries.
    """

    def __init__(self, folder: Place, *, remembers: bool = False) -> None:
        self._folder, self._remembers = folder, remembers
        self.keeps = KEPT_ENTRIES  # the least number of entries to keep, for inspection
        self._mark: dict[str, Any] = {}  # the epoch, and the driver that has raised it: the last members of each entry
        self._driver = ""  # the id of this object, once it has raised the epoch
        self._unsure = False  # whether the outcome of a commit is unknown
        self._number = -1  # of the newest entry that this object has written
        self._began = False  # whether this object has committed
        self._base: _Base | None = None  # the base of the newest entry
        self._written = 0  # bytes of the differences from it
        self._last_read: _Base | None = None

    def last(self) -> Entry | None:
        """Return the newest entry; ``None`` before the first commit. Raises what `read` does."""
        newest = self._newest()
        return newest if newest["tick"] >= 0 else None

    def _newest(self) -> Entry:
        numbers = self.numbers()
        return self.read(numbers[-1]) if numbers else {"tick": -1}

    def check(self) -> int:
        """Check that no entry is missing; return the last tick, -1 before the first commit.

        Entries that pruning may have begun to remove may be missing. Raises ``Failure`` (R420) for a gap.
        """
        numbers = self.numbers()
        last = numbers[-1] if numbers else -1
        gone = sorted(set(range(max(0, _first_kept(last)), last)) - set(numbers))
        newest = self._newest()
        if gone:
            tick = newest["tick"]
            what = f"the entry of tick {gone[0] - last + tick} is gone, and that of tick {tick} is there"
            raise behind(self._folder.parent, what)
        return int(newest["tick"])

    def read(self, number: int) -> Entry:
        """Return the entry with a number. Raises what `unsealed` does; R406 too if the base of the entry is missing."""
        stored = unsealed(self._path(number))
        return applied(self._known_base(stored["base"]).entry, stored["changes"]) if "base" in stored else stored

    def entries(self) -> Iterator[Entry]:
        """Yield the entries that still exist, oldest first, one per tick."""
        by_tick = {entry["tick"]: entry for entry in map(self.read, self.numbers())}
        return (entry for tick, entry in by_tick.items() if tick >= 0)

    def commit(self, tick: int, entry: Mapping[str, Any]) -> None:
        """Create the entry of a tick, durably and at once.

        Raises ``Refused`` (R403) if another driver has committed that tick, or a later one when that tick's own entry
        was pruned: this one was thought dead and must not continue.
        """
        if not self._began:
            self._go_on()
        self._create({**entry, "tick": tick})

    def raise_epoch(self) -> None:
        """Repeat the last entry with a higher epoch: from now on no earlier driver can commit.

        Raises ``Refused`` (R403) if this driver has done so before, and another one has since.
        """
        for _ in range(TRIES):
            newest, driver = self._newest(), self._driver or uuid.uuid4().hex
            if self._driver:
                self._check(newest)
            self._go_on()
            self._mark = {"epoch": newest.get("epoch", 0) + 1, "driver": driver}
            with suppress(Refused):  # another driver was faster
                self._create({name: value for name, value in newest.items() if name not in ("format", "sum")})
                self._driver = driver
                return
        raise _overtaken(newest["tick"] + 1)

    @property
    def drives(self) -> bool:
        """Return True if this object has raised the epoch and has not left."""
        return bool(self._driver)

    def check_driver(self) -> None:
        """Raise ``Refused`` (R403) if another driver has raised the epoch since this one did."""
        if self._driver and self.numbers()[-1] > self._number:
            self._check(self._newest())

    def _check(self, newest: Entry) -> None:
        if newest["driver"] != self._driver:
            raise _overtaken(newest["tick"])

    def settle(self) -> Entry | None:
        """Take the place of a commit without an answer, so that its outcome is final; return the last entry."""
        if self._driver and self._unsure:
            self.raise_epoch()
        self.check_driver()
        return self.last()

    def leave(self) -> None:
        """Stop being a driver."""
        self._driver = ""

    def _create(self, entry: Entry) -> None:
        make_folder(self._folder)
        tick = entry["tick"]
        number = tick + self._mark.get("epoch", 0)
        data = self._stored({**entry, **self._mark}, number)
        self._unsure = True
        try:
            write_new(self._path(number), data)
        except FileExistsError:
            self._unsure = False
            raise _overtaken(tick) from None
        self._unsure, newest = False, self.numbers()[-1]
        if newest > number:
            if _first_kept(newest) > number:  # otherwise the next driver continues from this entry
                remove(self._path(number))
            raise _overtaken(tick)
        self._number = number
        self._prune(number)

    def _stored(self, entry: Mapping[str, Any], number: int) -> bytes:
        """Return an entry in the form of its file; writes a new base first if that is due."""
        if self._base is not None and self._written < self._base.length:
            return self._different(self._base, entry)
        whole = sealed(entry)
        if len(whole) < LARGE:
            self._base = None
            return whole
        name = f"{number:012d}-{uuid.uuid4().hex[:6]}.json"
        make_folder(self._folder / BASES)
        write_new(self._folder / BASES / name, whole)
        # Read it back: the engine's objects may change after this tick, and JSON has no tuples.
        self._base, self._written = _Base(name, json.loads(whole), len(whole)), 0
        return self._different(self._base, entry)

    def _go_on(self) -> None:
        """Take the epoch and the base of the newest entry, so that runs of one tick each do not need a base each."""
        self._began, numbers = True, self.numbers()
        stored = unsealed(self._path(numbers[-1])) if numbers else {}
        self._mark, self._base = {name: stored[name] for name in _MARK if name in stored}, None
        if "base" in stored:
            self._base = self._read_base(stored["base"])
            self._written = stored["written"] + len(self._path(numbers[-1]).read_bytes())

    def _different(self, base: _Base, entry: Mapping[str, Any]) -> bytes:
        changes = difference(base.entry, {"format": FORMAT, **entry})
        delta = {"tick": entry["tick"], **self._mark, "base": base.name, "written": self._written, "changes": changes}
        data = sealed(delta, number=WITH_BASES)
        self._written += len(data)
        return data

    def _read_base(self, name: str) -> _Base:
        path = self._folder / BASES / name
        if not _BASE_NAME.fullmatch(name):
            raise damaged(f"{self._folder} has an entry with the base {name!r}, which is not the name of a base")
        try:
            return _Base(name, unsealed(path), len(path.read_bytes()))
        except FileNotFoundError:
            raise damaged(f"{path}, which the journal names, is gone") from None

    def _known_base(self, name: str) -> _Base:
        if self._last_read is None or self._last_read.name != name or not self._remembers:
            self._last_read = self._read_base(name)
        return self._last_read

    def _prune(self, number: int) -> None:
        """Remove old entries, and the bases that no remaining entry uses.

        The base of an entry is from its own or an earlier number, and a later entry never has an earlier base.
        """
        if number % KEPT_ENTRIES:
            return
        for old in self.numbers():
            if old <= number - max(KEPT_ENTRIES, self.keeps):
                remove(self._path(old))
        bases = sorted(path.name for path in (self._folder / BASES).glob("*.json"))
        if not bases:
            return
        oldest = self.numbers()[0]
        with suppress(Failure):  # of a damaged entry that is not needed to continue
            needed = unsealed(self._path(oldest)).get("base", f"{oldest:012d}")
            for name in bases:
                if name < needed:
                    remove(self._folder / BASES / name)

    def numbers(self) -> list[int]:
        """Return the numbers of the existing entries, in order."""
        with suppress(FileNotFoundError, NotADirectoryError):
            folder = self._folder
            names = os.listdir(folder) if isinstance(folder, Path) else [path.name for path in folder.iterdir()]  # noqa: PTH208 - there may be 100,000, and each tick asks
            return sorted(int(match[1]) for match in map(_NAME.fullmatch, names) if match)
        return []

    def _path(self, number: int) -> Place:
        return self._folder / f"{number:012d}.json"


def _first_kept(last: int) -> int:
    """Return the first number whose entry has to exist, by the last commit that has pruned."""
    return last // KEPT_ENTRIES * KEPT_ENTRIES - KEPT_ENTRIES + 1


def behind(checkpoint: Place, what: str, last: int | None = None) -> Failure:
    """Return R420: the journal is not the one that was written; continuing from it would write rows twice.

    ``last``: the tick of its last entry if that is too early for ``what`` was found, -1 if it has none.
    """
    if last is not None:
        what = f"{'none is left' if last < 0 else f'its last entry is that of tick {last}'}, and {what}"
    hint = (
        "Restore the whole checkpoint from one copy, together with the outputs of the same moment; "
        "or start again with another --checkpoint and empty outputs."
    )
    return Failure(Problem("R420", f"the journal of {checkpoint} has lost entries: {what}", hint=hint))


def _overtaken(tick: int) -> Refused:
    what = f"another driver has committed tick {tick} of this checkpoint"
    return refuse("R403", what, "Stop one of the two; a checkpoint belongs to one running pipeline.")


# -- differences between two JSON objects, so that a large one that changes little is stored once

# Objects are compared member by member, at every depth; anything else, also a list, is replaced as a whole.
# The members of a difference. Each is omitted if it is empty.
SET: Final = "set"  # members that are new or replaced, by name
IN: Final = "in"  # differences of members that are objects before and after, by name
GONE: Final = "gone"  # names of removed members

_ABSENT: Final = object()


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the difference from ``old`` to ``new``; empty if equal. Law: `applied` to ``old``, it gives ``new``."""
    put, inside = dict[str, Any](), dict[str, Any]()
    for name, value in new.items():
        before = old.get(name, _ABSENT)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            if changes := difference(before, value):
                inside[name] = changes
        elif type(value) is not type(before) or value != before:
            put[name] = value
    gone = [name for name in old if name not in new]
    return {key: part for key, part in ((SET, put), (IN, inside), (GONE, gone)) if part}


def applied(old: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the new object. It shares unchanged parts with ``old``; ``old`` stays as it is."""
    gone = frozenset(changes.get(GONE, ()))
    result = {name: value for name, value in old.items() if name not in gone}
    result.update(changes.get(SET, {}))
    result.update((name, applied(old[name], inner)) for name, inner in changes.get(IN, {}).items())
    return result
