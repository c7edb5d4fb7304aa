"""The state of a stream's writers from tick to tick: their clocks, and the least of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rowtime.core.time import BEGINNING
from rowtime.operators.streams.quarantine import Waiting


@dataclass(frozen=True)
class StreamClocks(Waiting):
    """The state of a stream's writers and of its output; instants in µs UTC.

    ``clocks``: by writer that is present, what is promised. ``own``: by writer that is present, what it has shown
    itself, if that is below its clock. ``floors``: by writer that is present, the stream's clock when it came; rows
    below it are late. ``away``: by writer that has left, what it had shown, until it is back. ``starts``: by writer
    that comes in this tick, where it starts. ``started``: the writers whose clock the guard knows. ``modes``: by
    writer, forever, whether it gives rowtimes: ``given``, ``arrival`` or ``mixed``. ``clock``: the least clock of
    present writers, which never goes back; ``None`` before the first writer. ``shown``: the greatest that any writer
    has shown. ``given``: the greatest bound of the event time that was given to the stream as a whole; ``None`` before
    one was. ``said``: how many bounds of columns have been emitted. ``early``, ``ahead`` (µs): the distances of the
    guard, for the re-admission of rows; ``None`` without it. ``lateness``: how far the rows that were out of order were
    below their writer's clock (`Lateness`), as long as the query lives.
    """

    clocks: Mapping[str, int] = field(default_factory=dict)
    own: Mapping[str, int] = field(default_factory=dict)
    floors: Mapping[str, int] = field(default_factory=dict)
    away: Mapping[str, int] = field(default_factory=dict)
    starts: Mapping[str, int] = field(default_factory=dict)
    started: Sequence[str] = field(default_factory=list)
    modes: Mapping[str, str] = field(default_factory=dict)
    clock: int | None = None
    shown: int = BEGINNING
    given: int | None = None
    said: int = 0
    early: int | None = None
    ahead: int | None = None
    lateness: Mapping[str, Any] = field(default_factory=dict)

    @property
    def reached(self) -> int:
        """Return the clock, or the value for no clock yet."""
        return BEGINNING if self.clock is None else self.clock
