"""Records: the journal of one checkpoint, read little by little and kept as moments.

A page has to come within a second, however long the journal is. So each request reads entries for a part of a second:
the newest first, then by halving, so that an overview is there at once and gets finer. Counts in an entry are those
since the beginning, so differences between two moments are exact, however far apart they are. The driver keeps the last
64 to 127 entries; moments of older ones stay here while the console runs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from rowtime.core.errors import Failure, Problem, Refused, refuse
from rowtime.core.stores import Place
from rowtime.plan.stored import StoredPlan
from rowtime.state.checkpoint import Checkpoint
from rowtime.state.files import damaged
from rowtime.state.journal import Entry, Journal
from rowtime.state.liveness import Liveness, liveness
from rowtime.web.moments import Moment
from rowtime.web.refusals import Refusals

DAMAGED: Final = "R406"
SHOWN: Final = 3  # faults
BUDGET: Final = 0.3  # seconds in which one request reads entries
NEWEST: Final = 128  # newest entries that are all read
TRIED: Final = 64  # newest entries to try if one after the other is damaged
MOST: Final = 4_096  # moments that are kept; of a longer journal every second, fourth, … one


class Records:
    """The state of one checkpoint's records; several requests may use it at once."""

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
        self.faults: dict[int, Problem] = {}  # by number of entry
        self.wanted = 0

    def refresh(self, budget: float = BUDGET) -> None:
        """Look for new entries, and read for at most so many seconds; the last entry in any case.

        If that is damaged, the newest valid one counts as the last; ``damage`` returns the others. Raises ``Refused``
        (R405) for anything but a checkpoint, and what reading its last entry raises if none can be read.
        """
        with self._turn:
            numbers = self.checkpoint.journal.numbers()
            if not numbers:
                self._check()
                self._last = None
                return
            if self._last is None or self._last[0] != numbers[-1]:
                self._last = self._newest(numbers)
                self._take(*self._last)
            self._read(numbers, time.monotonic() + budget)

    @property
    def last(self) -> Entry | None:
        """Return the newest entry; ``None`` before the first tick."""
        newest = self._last
        return newest[1] if newest is not None and newest[1]["tick"] >= 0 else None

    @property
    def number(self) -> int:
        """Return the number of the newest entry, -1 if there is none; it changes with the content."""
        return -1 if self._last is None else self._last[0]

    def check(self) -> None:
        """Raise ``Refused`` if this version cannot read the plan."""
        _ = self.plan

    @property
    def plan(self) -> StoredPlan | None:
        """Return the plan of the newest entry."""
        key = tuple((self.last or {}).get("plans", ())) if self.last is not None else ("first",)
        if key not in self._plans:
            plan = self.checkpoint.plan_of(self.last)
            if plan is None:
                return None
            self._plans[key] = plan
        return self._plans[key]

    @property
    def liveness(self) -> Liveness:
        """Return whether its driver is running."""
        return liveness(self.place)

    @property
    def damage(self) -> list[Problem]:
        """Return the damage in the journal, the newest entries last, with its consequences for the pipeline."""
        with self._turn:
            problems = [self.faults[number] for number in sorted(self.faults)[-SHOWN:]]
            if not problems or self._last is None or max(self.faults) < self._last[0]:
                return problems
            shown = f"The pages show it as it was after tick {self._last[1]['tick']}."
            hint = f"{shown} The pipeline does not start before this is repaired. {problems[-1].hint}"
            return [*problems[:-1], replace(problems[-1], hint=hint)]

    @property
    def moments(self) -> Sequence[Moment]:
        """Return the moments that have been read, oldest first."""
        with self._turn:
            return [self._moments[tick] for tick in sorted(self._moments)]

    @property
    def read(self) -> int:
        """Return how many of the ``wanted`` entries have been read."""
        return min(self.wanted, len(self._seen))

    def entry_at(self, tick: int) -> Entry | None:
        """Return the entry of a tick, if the journal still has it."""
        with self._turn:
            if self._last is not None and self._last[1]["tick"] == tick:
                return self._last[1]
            numbers = self.checkpoint.journal.numbers()
            for number in reversed(self._near(numbers, tick)):
                entry = self._entry(number)
                if entry is not None and entry["tick"] == tick:
                    return entry
            return None

    def _near(self, numbers: Sequence[int], tick: int) -> list[int]:
        """Return the possible numbers of a tick's entry: the tick plus an epoch that never falls."""
        epoch = 0 if self._last is None else self._last[1].get("epoch", 0)
        present = set(numbers)
        return [number for number in range(tick, tick + epoch + 1) if number in present]

    def _newest(self, numbers: Sequence[int]) -> tuple[int, Entry]:
        """Return the number of the newest valid entry, and its content."""
        for number in reversed(numbers[-TRIED:]):
            entry = self._entry(number)
            if entry is not None:
                return number, entry
        return numbers[-1], self.checkpoint.journal.read(numbers[-1])  # which raises

    def _check(self) -> None:
        """Raise R405 for anything but a checkpoint."""
        if not any((self.place / name).exists() for name in ("plan.json", "journal", ".lock")):
            what = f"{self.place} is not a checkpoint: it has no plan and no journal"
            raise refuse("R405", what, "Give the checkpoint folder of the pipeline.")

    def _read(self, numbers: Sequence[int], until: float) -> None:
        wanted = _chosen(numbers)
        self.wanted = len(wanted)
        again = sorted(self.faults)[-SHOWN:]  # somebody may have restored them
        missing = [number for number in wanted if number not in self._seen or number in again]
        for number in _by_halves(missing):
            if time.monotonic() > until:
                break
            entry = self._entry(number)
            if entry is not None:
                self._take(number, entry)
        if len(self._moments) > 2 * MOST:
            self._thin()

    def _entry(self, number: int) -> Entry | None:
        """Return an entry; ``None`` if it was pruned meanwhile, or is damaged, which the pages show.

        Raises the other errors of reading: that it has a newer format, or that a store does not answer.
        """
        self.faults.pop(number, None)
        try:
            return self.checkpoint.journal.read(number)
        except FileNotFoundError:
            return None
        except Failure as error:
            if error.problems[0].code != DAMAGED:
                raise
            self.faults[number] = error.problems[0]
        except (KeyError, TypeError, ValueError, OSError) as error:
            fault = f"entry {number} of the journal cannot be read: {error}"
            self.faults[number] = damaged(fault).problems[0]
        self._seen.add(number)
        return None

    def _take(self, number: int, entry: Entry) -> None:
        self._seen.add(number)
        if entry["tick"] >= 0:
            self._moments[entry["tick"]] = Moment.of(entry)

    def _thin(self) -> None:
        """Keep only every second one of the old moments."""
        old = sorted(self._moments)[:-NEWEST]
        for tick in old[::2]:
            del self._moments[tick]


def _chosen(numbers: Sequence[int]) -> list[int]:
    """Return the entries to read: the newest, and every n-th of older ones, so that they are not too many."""
    stride = 1
    while len(numbers) // stride > MOST:
        stride *= 2
    newest = numbers[-NEWEST:]
    return [*(number for number in numbers[:-NEWEST] if number % stride == 0), *newest]


def _by_halves(numbers: Sequence[int]) -> Iterator[int]:
    """Yield them in an order in which each next one halves the gaps between those before."""
    return iter(sorted(numbers, key=lambda number: (-(number & -number) if number else -(1 << 62), -number)))


def problems_of(error: Exception) -> Sequence[Problem]:
    """Return a page's text for an error; an unexpected one is shown as a failure of the console."""
    if isinstance(error, Refused | Failure):
        return error.problems
    return [Problem("R709", f"the console cannot show this: {type(error).__name__}: {error}")]
