"""Intake: what a stream operator gets from its source in one tick."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rowtime.core.time import BEGINNING, END

if TYPE_CHECKING:
    from rowtime.frames.frame import Frame


@dataclass(frozen=True)
class Intake:
    """What one tick takes from a source (see `runtime.sources.contract` for the words).

    ``gated``: the rows go through the clock pass, unless all are known to be in order. ``shown``: the clocks that
    ordered rows show without it; ``arrived``: those of arrival times. ``bound``: a bound for each present writer after
    them; ``columns``: bounds of columns. ``present``: the writers that hold the stream after the tick; ``left``: those
    that held it and left after their items; ``joined``: those that are new or came back. ``modes``: by writer, whether
    it gives rowtimes (`StreamClocks`), if known. ``all_columns``: the rows with those columns, too, that only a row
    that is refused needs, if they have not been read. ``raises``: arrival times may go back, so each is raised to the
    running maximum. ``given``: writers may give rowtimes, ``stamped``: and arrival times. Times are µs UTC; known ones
    are in [``lowest``, ``highest``]. ``sent``: when the bound of a writer at a position arrived, if recorded.
    """

    rows: Frame | None
    count: int | None = None
    all_columns: Callable[[], Frame] | None = None
    gated: bool = False
    raises: bool = False
    in_band: bool = False
    decodes: bool = False
    given: bool = True
    stamped: bool = False
    bounds: Sequence[tuple[str, int, int]] = ()
    bound: int = BEGINNING
    sent: Mapping[tuple[str, int], int] = field(default_factory=dict)
    columns: Sequence[tuple[str, int, str]] = ()
    shown: Mapping[str, int] = field(default_factory=dict)
    arrived: Mapping[str, int] = field(default_factory=dict)
    present: Sequence[str] = ()
    left: Sequence[str] = ()
    joined: Sequence[str] = ()
    modes: Mapping[str, str] = field(default_factory=dict)
    lowest: int = BEGINNING
    highest: int = END

    @property
    def span(self) -> tuple[int, int] | None:
        """Return the least and the greatest rowtime, if both are known (µs UTC)."""
        return (self.lowest, self.highest) if BEGINNING < self.lowest <= self.highest < END else None
