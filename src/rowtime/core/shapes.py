"""Event shapes: how the rows of a stream say when their event begins and ends (SPEC 9.1 to 9.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

Kind = Literal["POINT", "INTERVAL", "EDGE", "BY"]


@dataclass(frozen=True)
class EventShape:
    """``EVENT SHAPE kind (start, stop)`` with what is late and where bounds come from; durations in µs.

    ``by``: the column that names the shape of each row (``point``, ``interval``, ``start``,
    ``end``). ``adjusts``: late events that reach over the bound are moved to it. A bound comes
    after every ``rows`` rows, or whenever the greatest start passes a multiple of ``every``;
    it lies ``delay`` behind the greatest start. ``imports`` names the stream whose bounds count
    in place of its own, ``delay`` less.
    """

    kind: Kind
    start: str
    stop: str | None = None
    by: str | None = None
    adjusts: bool = False
    rows: int | None = None
    every: int | None = None
    delay: int = 0
    imports: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are times or kinds, and no payload."""
        return tuple(name for name in (self.by, self.start, self.stop) if name is not None)

    @property
    def edges(self) -> bool:
        """True if an event may be ended by a row of its own."""
        return self.kind in ("EDGE", "BY")

    def as_json(self) -> dict[str, Any]:
        """Plain values, as the home directory keeps them."""
        return asdict(self)

    @classmethod
    def stored(cls, found: Mapping[str, Any] | None) -> EventShape | None:
        """The shape from its plain values."""
        return None if found is None else cls(**found)
