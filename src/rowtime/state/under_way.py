"""The current tick: a driver's activity, in the words that every display uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from rowtime.core.counts import counted
from rowtime.core.time import SECOND
from rowtime.state.costs import CLOCK, DRIVER, INPUT, JOBS, JOURNAL, PLANNING, SINKS

DOING: Final[Mapping[str, str]] = {
    INPUT: "looking for input",
    PLANNING: "planning",
    CLOCK: "clock pass",
    JOBS: "computing with Spark",
    DRIVER: "computing on the driver",
    SINKS: "writing output",
    JOURNAL: "committing",
}
"""The driver's activity in each part of a tick."""


@dataclass(frozen=True)
class UnderWay:
    """A tick that has not ended. ``began``: µs UTC; ``part``: one of the parts of a tick (`state.costs`).

    ``rows``: how many rows it reads, ``None`` if unknown so far; with ``at_most`` a guess by the bytes of its files.
    ``what``: the running operator and its purpose, empty before the first one.
    """

    tick: int
    began: int
    part: str
    rows: int | None = None
    at_most: bool = False
    what: str = ""

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> UnderWay:
        """Return a tick from the values of `as_json`; raises ``KeyError``, ``TypeError`` or ``ValueError``."""
        others = (str(stored["part"]), stored.get("rows"), bool(stored.get("at_most")), str(stored.get("what", "")))
        return cls(int(stored["tick"]), int(stored["began"]), *others)

    def as_json(self) -> dict[str, Any]:
        """Return the same as plain values."""
        return asdict(self)

    def seconds(self, now: int) -> float:
        """Return for how long it has been running at ``now`` (µs UTC)."""
        return max(0, now - self.began) / SECOND

    def words(self, now: int) -> str:
        """Return one line: ``tick 3: clock pass (stream s: clock pass), 1,000 rows, for 12 s``."""
        doing = DOING.get(self.part, self.part)
        if self.what and self.part != INPUT:  # the purpose is set before a job begins, and stays set after it
            doing += f" ({self.what.partition(': ')[0] if self.part == PLANNING else self.what})"
        rows = "" if self.rows is None else f", {counted(self.rows, 'rows')}"
        rows = f", at most{rows[1:]} (by bytes)" if rows and self.at_most else rows
        return f"tick {self.tick}: {doing}{rows}, for {self.seconds(now):.0f} s"
