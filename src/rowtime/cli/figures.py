"""Figures of a run, summed over the progress of its ticks: the content of every display."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rowtime.core.counts import counted

UNREADABLE = "R520"  # of a file that is set aside
WINDOW = 5.0  # seconds over which the rate is computed


@dataclass(frozen=True)
class Reached:
    """How far one stream has been read, in a ``unit``: what was read in this run, and what is left.

    ``left`` is the amount at the last look.
    """

    unit: str
    read: int = 0
    left: int = 0

    def after(self, backlog: Mapping[str, Any]) -> Reached:
        """Return the same after a tick. For a table the unit can change, and only one unit counts."""
        read = self.read if backlog["unit"] == self.unit else 0
        return Reached(backlog["unit"], read + backlog["taken"], backlog["left"])

    @property
    def share(self) -> float:
        """Return a share from 0 to 1."""
        return self.read / (self.read + self.left) if self.left else 1.0


@dataclass
class Figures:
    """Rows, clocks and the ledger since ``began``; all times in seconds of one monotonic clock.

    ``aside``: files that were set aside, by stream; ``unread``: the same since the checkpoint began, if no row of the
    stream was ever read.
    ``taken``, ``clocks`` and ``reached`` are by stream (the last one if an end is known), ``ledger`` by gate;
    ``failure`` is that of the last try, empty once a tick has succeeded.
    """

    began: float
    ticks: int = 0
    last_tick: int | None = None
    rows_out: int = 0
    last_output: float = 0.0
    taken: Counter[str] = field(default_factory=Counter)
    aside: Counter[str] = field(default_factory=Counter)
    unread: Mapping[str, int] = field(default_factory=dict)
    clocks: dict[str, str] = field(default_factory=dict)
    reached: dict[str, Reached] = field(default_factory=dict)
    ledger: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    failure: str = ""
    failures: int = 0
    recent: deque[tuple[float, float, int]] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.last_output = self.began

    def take(self, progress: Mapping[str, Any], now: float) -> None:
        """Add one tick, or one failed try; a change of the plan counts as neither."""
        if "changed" in progress:
            return
        if "failure" in progress:
            self.failure, self.failures = progress["failure"], progress.get("failures", 1)
            return
        self.failure = ""
        self.ticks += 1
        self.last_tick = progress["batchId"]
        self._count(progress, now)
        if progress["numInputRows"]:  # a tick with only a bound must not set the rate to 0
            self.recent.append((now - progress["batchDuration"] / 1000, now, progress["numInputRows"]))

    def _count(self, progress: Mapping[str, Any], now: float) -> None:
        for source in progress["sources"]:
            name = source["description"].rsplit(" (", 1)[0]
            self.taken[name] += source["numInputRows"]
            self.clocks[name] = source["clock"]
            if many := sum(file["code"] == UNREADABLE for file in source.get("files", ())):
                self.aside[name] += many
            if "backlog" in source:
                before = self.reached.get(name, Reached(source["backlog"]["unit"]))
                self.reached[name] = before.after(source["backlog"])
        for gate, counts in progress["observedMetrics"].items():
            self.ledger[gate].update(counts)
        if progress["sink"]["numOutputRows"]:
            self.rows_out += progress["sink"]["numOutputRows"]
            self.last_output = now

    @property
    def rows_in(self) -> int:
        """Return the rows taken from all streams."""
        return self.taken.total()

    @property
    def refused(self) -> dict[str, dict[str, int]]:
        """Return refused rows by gate and reason, without zeros."""
        by_gate = {gate: {why: n for why, n in counts.items() if why not in ("in", "accepted") and n}
                   for gate, counts in self.ledger.items()}  # fmt: skip
        return {gate: reasons for gate, reasons in by_gate.items() if reasons}

    @property
    def rows_refused(self) -> int:
        """Return the rows refused at all gates."""
        return sum(n for reasons in self.refused.values() for n in reasons.values())

    def rate(self, now: float) -> float:
        """Return the present rate in rows per second: over the ticks in the window, or since the last one began.

        So the rate falls slowly during a long tick, and never to zero at once.
        """
        while len(self.recent) > 1 and self.recent[0][1] < now - WINDOW:
            self.recent.popleft()
        if not self.recent:
            return 0.0
        return sum(rows for _, _, rows in self.recent) / max(now - self.recent[0][0], 1e-3)

    def ahead(self, backlogs: Mapping[str, Mapping[str, Any]]) -> dict[str, Reached]:
        """Return how far each stream has been read; ``backlogs``: the current tick's, which count as unread."""
        reached = dict(self.reached)
        for name, backlog in backlogs.items():
            before = reached.get(name, Reached(backlog["unit"]))
            reached[name] = before.after({**backlog, "taken": 0, "left": backlog["taken"] + backlog["left"]})
        return reached

    def summary(self, now: float) -> dict[str, Any]:
        """Return the run as plain values."""
        return {
            "ticks": self.ticks,
            "rows_in": self.rows_in,
            "rows_out": self.rows_out,
            "rows_refused": self.rows_refused,
            "refused": self.refused,
            **({"files_set_aside": dict(self.aside)} if self.aside else {}),
            "clocks": dict(self.clocks),
            "seconds": round(now - self.began, 3),
        }

    def summary_text(self, now: float) -> str:
        """Return the run in a line."""
        rows = f"{counted(self.rows_in, 'rows')} in, {self.rows_out:,} out, {self.rows_refused:,} refused"
        aside = f", {counted(self.aside.total(), 'files')} set aside" if self.aside else ""
        return f"done: {rows}{aside}, in {counted(self.ticks, 'ticks')} and {now - self.began:.1f} s"
