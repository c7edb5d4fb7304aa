"""Event shapes: how the rows of a stream give the start and end of their events (semantics 9.1 to 9.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any, Literal

from rowtime.core.fields import LATER, Micros

STRICT = -1
"""The delay (µs) that stands for strict order: each start is greater than those before."""

Kind = Literal["POINT", "INTERVAL", "EDGE", "BY"]


@dataclass(frozen=True)
class EventShape:
    """``EVENT SHAPE kind (start, stop)`` with its rules for late events and bounds; durations in µs.

    ``by``: the column that names the shape of each row (``point``, ``interval``, ``start``, ``end``). ``adjusts``: late
    events that extend beyond the bound are moved to it. A bound comes after every ``rows`` rows, or whenever the
    greatest start passes a multiple of ``every``; it is ``delay`` behind the greatest start, or just above it
    (`STRICT`). ``imports`` names the stream whose bounds are used in place of its own, or together with generated ones;
    they are lowered by ``import_delay``, or by ``delay`` if none are generated. ``resolution``: the unit of whole
    numbers (SECOND, …); without it, times are timestamps. A start that is more than ``beyond`` above the greatest of
    its writer is refused.
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
        """Return the SQL text after EVENT SHAPE; durations as Python shows them."""
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
        """Return the columns that are times or kinds, not payload."""
        return tuple(name for name in (self.by, self.start, self.stop) if name is not None)

    @property
    def edges(self) -> bool:
        """Return True if an event may be ended by a row of its own."""
        return self.kind in ("EDGE", "BY")

    @property
    def generates(self) -> bool:
        """Return True if rows generate bounds."""
        return self.rows is not None or self.every is not None

    @property
    def imported_delay(self) -> int:
        """Return by how much (µs) the bounds of the other stream are lowered."""
        return self.import_delay if self.generates else self.delay

    def as_json(self) -> dict[str, Any]:
        """Return plain values, as the home directory stores them."""
        # Older versions do not know these keys, but can read shapes that do not use them.
        later: dict[str, Any] = {"resolution": None, "beyond": None, "import_delay": 0}
        return {name: value for name, value in asdict(self).items() if name not in later or value != later[name]}

    @classmethod
    def stored(cls, fields: Mapping[str, Any] | None) -> EventShape | None:
        """Return the shape from its stored values."""
        return None if fields is None else cls(**fields)


def _delayed(delay: int) -> str:
    """Return the SQL text of a bound's delay."""
    if delay == STRICT:
        return " STRICT"
    return f" DELAY {timedelta(microseconds=delay)}" if delay else ""
