"""Records: the journal of one checkpoint, read little by little and kept as moments.

A page is to come within a second, whatever the journal holds. So each request reads entries for a part of a second: the
newest first, then by halving, so that a picture of the whole is there at once and gets finer. Counts in an entry are
those since the beginning, so what happened between two moments is exact, however far they lie apart. The driver keeps
the last 64 to 127 entries; what was read of older ones stays here for as long as the console runs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from typing import Final

from rowtime.core.errors import Failure, Problem, Refused, RowtimeError, refuse
from rowtime.core.stores import Place
from rowtime.plan.stored import StoredPlan
from rowtime.state.checkpoint import Checkpoint
from rowtime.state.journal import Entry, Journal
from rowtime.state.liveness import Liveness, liveness
from rowtime.web.moments import Moment
from rowtime.web.refusals import Refusals

BUDGET: Final = 0.3  # seconds in which one request reads entries
NEWEST: Final = 128  # entries of which every one is read
MOST: Final = 4_096  # moments that are kept; of a longer journal every second, fourth, … one


class Records:
    """What is known of one checkpoint; several requests may ask at once."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.checkpoint = Checkpoint(place)
        self.checkpoint.journal = Journal(place / "journal", remembers=True)
        self.refusals = Refusals(self.checkpoint)
        self._turn = threading.Lock()
        self._moments: dict[int, Moment] = {}  # by tick
        self._seen: set[int] = set()  # numbers of entries
        self._last: tuple[int, Entry] | None = None
        self._plans: dict[tuple[str, ...], StoredPlan] = {}
        self.faults: dict[int, str] = {}
        self.wanted = 0

    def refresh(self, budget: float = BUDGET) -> None:
        """Look for new entries, and read for at most so many seconds; the last entry in any case.

        Raises ``Refused`` (R405) for what is no checkpoint, and what reading its last entry raises.
        """
        with self._turn:
            numbers = self.checkpoint.journal.numbers()
            if not numbers:
                self._check()
                self._last = None
                return
            if self._last is None or self._last[0] != numbers[-1]:
                self._last = (numbers[-1], self.checkpoint.journal.read(numbers[-1]))
                self._take(numbers[-1], self._last[1])
            self._read(numbers, time.monotonic() + budget)

    @property
    def last(self) -> Entry | None:
        """The newest entry; ``None`` before the first tick."""
        found = self._last
        return found[1] if found is not None and found[1]["tick"] >= 0 else None

    @property
    def number(self) -> int:
        """The number of the newest entry, -1 where there is none: another number, another picture."""
        return -1 if self._last is None else self._last[0]

    @property
    def plan(self) -> StoredPlan | None:
        """The plan that the newest entry goes by."""
        key = tuple((self.last or {}).get("plans", ())) if self.last is not None else ("first",)
        if key not in self._plans:
            found = self.checkpoint.plan_of(self.last)
            if found is None:
                return None
            self._plans[key] = found
        return self._plans[key]

    @property
    def liveness(self) -> Liveness:
        """Whether its driver is at work."""
        return liveness(self.place)

    @property
    def moments(self) -> Sequence[Moment]:
        """What has been read, oldest first."""
        with self._turn:
            return [self._moments[tick] for tick in sorted(self._moments)]

    @property
    def read(self) -> int:
        """How many of the ``wanted`` entries have been read."""
        return min(self.wanted, len(self._seen))

    def entry_at(self, tick: int) -> Entry | None:
        """The entry of a tick, if the journal still has it."""
        with self._turn:
            if self._last is not None and self._last[1]["tick"] == tick:
                return self._last[1]
            numbers = self.checkpoint.journal.numbers()
            for number in reversed(self._near(numbers, tick)):
                found = self._entry(number)
                if found is not None and found["tick"] == tick:
                    return found
            return None

    def _near(self, numbers: Sequence[int], tick: int) -> list[int]:
        """The numbers that the entry of a tick can have: the tick and an epoch that has never fallen."""
        epoch = 0 if self._last is None else self._last[1].get("epoch", 0)
        there = set(numbers)
        return [number for number in range(tick, tick + epoch + 1) if number in there]

    def _check(self) -> None:
        """R405 for what is no checkpoint."""
        if not any((self.place / name).exists() for name in ("plan.json", "journal", ".lock")):
            what = f"{self.place} is no checkpoint: it has no plan and no journal"
            raise refuse("R405", what, "Give the folder that the pipeline has.")

    def _read(self, numbers: Sequence[int], until: float) -> None:
        wanted = _chosen(numbers)
        self.wanted = len(wanted)
        missing = [number for number in wanted if number not in self._seen]
        for number in _by_halves(missing):
            if time.monotonic() > until:
                break
            entry = self._entry(number)
            if entry is not None:
                self._take(number, entry)
        if len(self._moments) > 2 * MOST:
            self._thin()

    def _entry(self, number: int) -> Entry | None:
        """An entry; ``None`` where it was pruned meanwhile, or cannot be read, which is told on the pages."""
        try:
            return self.checkpoint.journal.read(number)
        except FileNotFoundError:
            return None
        except RowtimeError as error:
            self.faults[number] = str(error).split("\n", 1)[0]
        except (KeyError, TypeError, ValueError, OSError) as error:
            self.faults[number] = f"R406 entry {number} cannot be read: {error}"
        self._seen.add(number)
        return None

    def _take(self, number: int, entry: Entry) -> None:
        self._seen.add(number)
        if entry["tick"] >= 0:
            self._moments[entry["tick"]] = Moment.of(entry)

    def _thin(self) -> None:
        """Keep every second moment of those that are old."""
        old = sorted(self._moments)[:-NEWEST]
        for tick in old[::2]:
            del self._moments[tick]


def _chosen(numbers: Sequence[int]) -> list[int]:
    """The entries to read: the newest, and of older ones every n-th, so that they are not too many."""
    stride = 1
    while len(numbers) // stride > MOST:
        stride *= 2
    newest = numbers[-NEWEST:]
    return [*(number for number in numbers[:-NEWEST] if number % stride == 0), *newest]


def _by_halves(numbers: Sequence[int]) -> Iterator[int]:
    """Those in an order in which each next one halves the gaps between those before."""
    return iter(sorted(numbers, key=lambda number: (-(number & -number) if number else -(1 << 62), -number)))


def problems_of(error: Exception) -> Sequence[Problem]:
    """What a page says of an error; anything unforeseen is told as a failure of the console."""
    if isinstance(error, Refused | Failure):
        return error.problems
    return [Problem("R709", f"the console cannot show this: {type(error).__name__}: {error}")]
