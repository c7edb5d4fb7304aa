"""Event shapes: how the rows of a stream say when their event begins and ends (semantics 9.1 to 9.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any, Literal

from rowtime.core.fields import LATER, Micros

STRICT = -1
"""The delay (µs) of a bound above which starts are to come: each is greater than those before."""

Kind = Literal["POINT", "INTERVAL", "EDGE", "BY"]


@dataclass(frozen=True)
class EventShape:
    """``EVENT SHAPE kind (start, stop)`` with what is late and where bounds come from; durations in µs.

    ``by``: the column that names the shape of each row (``point``, ``interval``, ``start``, ``end``). ``adjusts``: late
    events that reach over the bound are moved to it. A bound comes after every ``rows`` rows, or whenever the greatest
    start passes a multiple of ``every``; it lies ``delay`` behind the greatest start, or just above it (`STRICT`).
    ``imports`` names the stream whose bounds count in place of its own, or beside those that are generated; they lie
    ``import_delay`` lower, or ``delay`` if none are generated. ``resolution``: what whole numbers count (SECOND, …);
    times are timestamps without it. A start that lies more than ``beyond`` above the greatest of its writer is refused.
    """

    kind: Kind
    start: str
    stop: str | None = None
    by: str | None = None
    adjusts: bool = False
    rows: int | None = None
    every: Micros | None = None
    delay: Micros = 0
    imports: str | None = field(default=None, metadata=LATER)
    resolution: str | None = field(default=None, metadata=LATER)
    beyond: Micros | None = field(default=None, metadata=LATER)
    import_delay: Micros = field(default=0, metadata=LATER)

    def __str__(self) -> str:
        """As a statement says it, behind EVENT SHAPE; durations as Python shows them."""
        named = ", ".join(name for name in (self.start, self.stop) if name is not None)
        late = " ON LATE ADJUST" if self.adjusts else ""
        every = f" BOUND EVERY {self.rows} ROWS" if self.rows is not None else ""
        every = f" BOUND EVERY {timedelta(microseconds=self.every)}" if self.every is not None else every
        every += _delayed(self.delay) if self.generates else ""
        every += "" if self.imports is None else f" BOUND FROM {self.imports}{_delayed(self.imported_delay)}"
        unit = f" RESOLUTION {self.resolution}S" if self.resolution else ""
        beyond = "" if self.beyond is None else f" EARLY BEYOND {timedelta(microseconds=self.beyond)}"
        return f"{self.kind} {self.by + ' ' if self.by else ''}({named}){unit}{late}{every}{beyond}"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are times or kinds, and no payload."""
        return tuple(name for name in (self.by, self.start, self.stop) if name is not None)

    @property
    def edges(self) -> bool:
        """True if an event may be ended by a row of its own."""
        return self.kind in ("EDGE", "BY")

    @property
    def generates(self) -> bool:
        """True if rows cause bounds."""
        return self.rows is not None or self.every is not None

    @property
    def imported_delay(self) -> int:
        """How far (µs) the bounds of the other stream lie lower here."""
        return self.import_delay if self.generates else self.delay

    def as_json(self) -> dict[str, Any]:
        """Plain values, as the home directory keeps them."""
        # Older versions, which do not know these, read what does not need them.
        later: dict[str, Any] = {"resolution": None, "beyond": None, "import_delay": 0}
        return {name: value for name, value in asdict(self).items() if name not in later or value != later[name]}

    @classmethod
    def stored(cls, found: Mapping[str, Any] | None) -> EventShape | None:
        """The shape from its plain values."""
        return None if found is None else cls(**found)


def _delayed(delay: int) -> str:
    """How far a bound lies behind what makes it, as a statement says it."""
    if delay == STRICT:
        return " STRICT"
    return f" DELAY {timedelta(microseconds=delay)}" if delay else ""
