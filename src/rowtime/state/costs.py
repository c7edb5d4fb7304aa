"""What ticks cost, as the journal records it: where the time went, rows, files and bytes.

The entry of a tick has its cost under ``cost``::

    {"began": 1767225600000000, "ended": 1767225600330000, "ms": {"input": 3.1, "plan": 117.0, "jobs": 182.4, …},
     "in": {"trades": 1000}, "out": {"big": 20}, "refused": 3, "files": 2, "bytes": 8123, "jobs": 1,
     "tasks": 3, "largest": 520, "shuffled": 20480,
     "left": {"trades": [300, "rows"]}, "given": {"big.group": 12},
     "times": {"trades": [1767225598000000, 1767225600000000, 1767225599100000]},
     "before": {"ended": 1767225599120000, "ms": {"sinks": 4.0, "journal": 9.2}}}

Times are µs UTC, durations milliseconds. An entry cannot have the time of its own writing, nor of the delivery after
it. So ``ended`` is the time before the entry is written, and ``before`` has what the previous tick took after its own
entry; it is missing if another process, or another try, ran that tick. Nothing is computed from costs: replays,
``verify`` and the next tick do not read them. Entries of upgrades have none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from itertools import pairwise
from typing import Any, Final, NamedTuple

KEY: Final = "cost"

INPUT: Final = "input"
PLANNING: Final = "plan"
CLOCK: Final = "clock"
JOBS: Final = "jobs"
DRIVER: Final = "driver"
SINKS: Final = "sinks"
JOURNAL: Final = "journal"

PARTS: Final[Mapping[str, str]] = {
    INPUT: "asking the sources what is new",
    PLANNING: "building queries, and computations inside operators",
    CLOCK: "deciding which rows gates refuse",
    JOBS: "Spark jobs: the one that computes the tick in tasks, or those for values that only Spark computes",
    DRIVER: "queries of operators on the driver",
    SINKS: "writing the rows for sinks, and delivering them",
    JOURNAL: "the journal entry, and the cleanup after it",
}
"""The parts of a tick. They do not overlap, and their sum is the whole."""

GOES_ON: Final = (SINKS, JOURNAL)
"""The parts that continue after the entry of a tick, so that only the next entry has their times."""

Milliseconds = Mapping[str, float]


class Left(NamedTuple):
    """How much of a stream is unread, in ``rows``, ``bytes`` or ``versions`` of a table."""

    amount: int
    unit: str


@dataclass(frozen=True)
class Spread:
    """How a tick was spread over Spark: the number of its ``tasks``; 0 if the driver's process computed it.

    ``largest``: the rows that the task with the most rows has read; ``shuffled``: the bytes that went from tasks to the
    last one. Both are 0 if one task did all.
    """

    tasks: int = 0
    largest: int = 0
    shuffled: int = 0


@dataclass(frozen=True)
class TickCost:
    """What a tick cost: ``began`` and ``ended`` in µs UTC, milliseconds by part, rows by stream and by sink.

    ``complete``: false while the times of the journal entry and the delivery are unknown; then ``ended`` is the time
    before them. ``files`` and ``size`` (bytes): what the tick has written: state, refused rows and output. ``jobs``:
    how many Spark jobs it ran, including the clock pass and sinks; ``spread``: over how many tasks. ``times``: the
    event times of the rows that gates accepted: least, greatest and, if each row was read, mean (µs UTC). ``left``: by
    stream, how much was unread after the tick's range, and in which unit, if known. ``given``: how many rows operators
    gave if no gate and no sink counts them, if known.
    """

    tick: int
    began: int
    ended: int
    milliseconds: Milliseconds
    rows_in: Mapping[str, int] = field(default_factory=dict)
    rows_out: Mapping[str, int] = field(default_factory=dict)
    refused: int = 0
    files: int = 0
    size: int = 0
    jobs: int = 0
    times: Mapping[str, Sequence[int]] = field(default_factory=dict)
    left: Mapping[str, Left] = field(default_factory=dict)
    complete: bool = False
    given: Mapping[str, int] = field(default_factory=dict)
    spread: Spread = Spread()

    @property
    def total(self) -> float:
        """Return the milliseconds from the first look for input to the end."""
        return sum(self.milliseconds.values())

    def stored(self, before: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return plain values for the journal; ``before``: how the previous tick ended, as `tail` returns it."""
        numbers = {"refused": self.refused, "files": self.files, "bytes": self.size, "jobs": self.jobs}
        numbers |= asdict(self.spread)
        return {
            "began": self.began,
            "ended": self.ended,
            "ms": _rounded(self.milliseconds),
            "in": dict(self.rows_in),
            "out": dict(self.rows_out),
            **{name: number for name, number in numbers.items() if number},
            **({"times": dict(self.times)} if self.times else {}),
            **({"left": {name: list(left) for name, left in self.left.items()}} if self.left else {}),
            **({"given": dict(self.given)} if self.given else {}),
            **({"before": dict(before)} if before else {}),
        }

    def tail(self, committed: TickCost) -> dict[str, Any]:
        """Return what came after the entry, for that of the next tick; ``committed``: the cost in the entry."""
        spent = {part: ms - committed.milliseconds.get(part, 0) for part, ms in self.milliseconds.items()}
        return {"ended": self.ended, "ms": _rounded({part: ms for part, ms in spent.items() if ms > 0})}


def cost_of(entry: Mapping[str, Any], following: Mapping[str, Any] | None = None) -> TickCost | None:
    """Return the cost of an entry's tick, with the addition in the ``following`` entry; ``None`` if not recorded."""
    stored = entry.get(KEY)
    if not stored:
        return None
    tail = _tail_in(entry, following)
    spent = Counter(stored["ms"])
    spent.update((tail or {}).get("ms", {}))
    return TickCost(
        entry["tick"],
        stored["began"],
        (tail or stored)["ended"],
        dict(spent),
        stored.get("in", {}),
        stored.get("out", {}),
        stored.get("refused", 0),
        stored.get("files", 0),
        stored.get("bytes", 0),
        stored.get("jobs", 0),
        stored.get("times", {}),
        left_in(entry),
        tail is not None,
        given_in(entry),
        Spread(*(stored.get(of.name, 0) for of in fields(Spread))),
    )


def left_in(entry: Mapping[str, Any]) -> dict[str, Left]:
    """Return how much was unread after the tick of an entry, by stream."""
    return {name: Left(*left) for name, left in entry.get(KEY, {}).get("left", {}).items()}


def given_in(entry: Mapping[str, Any]) -> Mapping[str, int]:
    """Return how many rows operators gave in the tick of an entry, as in `TickCost.given`."""
    counts: Mapping[str, int] = entry.get(KEY, {}).get("given", {})
    return counts


def costs_of(entries: Iterable[Mapping[str, Any]]) -> Iterator[TickCost]:
    """Yield the recorded costs of the ticks of a journal, oldest first."""
    costs = (cost_of(entry, following) for entry, following in pairwise([*entries, {}]))
    return (cost for cost in costs if cost is not None)


def _tail_in(entry: Mapping[str, Any], following: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if following is None or following.get("tick") != entry["tick"] + 1:
        return None
    tail: Mapping[str, Any] | None = following.get(KEY, {}).get("before")
    return tail


def _rounded(spent: Milliseconds) -> dict[str, float]:
    return {part: round(ms, 1) for part, ms in spent.items()}
