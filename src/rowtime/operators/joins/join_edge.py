"""How far the pairs of a join have been emitted, and the order of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rowtime.core.columns import ARRIVED, PLACES
from rowtime.core.time import BEGINNING
from rowtime.operators.contract import UpTo, passed
from rowtime.sql.generate import literal

_LATER = f"greatest({', '.join(f'unix_micros({side[0]})' for side in PLACES)})"


@dataclass(frozen=True)
class Joined(UpTo):
    """``edge``: which pairs at ``bound`` itself have been emitted (`Edge.entry`); ``None`` before the first tick.

    ``met`` (µs UTC), by side: which rows of the other side match its rows up to this time has been recorded.
    """

    edge: Sequence[Any] | None = None
    met: Sequence[int] = (BEGINNING, BEGINNING)


@dataclass(frozen=True)
class Edge:
    """How far pairs have been emitted: all below ``at`` (µs), and some at it.

    Those at it are the pairs of rows of ``side`` that came up to ``tick`` and belong to writers up to ``writer``; for
    the right side, only with the left row whose place is ``first``.
    """

    at: int
    side: int | None = None
    writer: str = ""
    tick: int = 0
    first: tuple[int, str, int] | None = None

    @classmethod
    def of(cls, control: Joined) -> Edge:
        """Return the edge after the last tick."""
        side, writer, tick, first = control.edge or (None, "", 0, None)
        return cls(control.bound, side, writer, tick, first and tuple(first))

    @property
    def entry(self) -> list[Any]:
        """Return the edge for the journal, which has the bound separately."""
        return [self.side, self.writer, self.tick, self.first and list(self.first)]

    @property
    def frontier(self) -> tuple[int, int | None, str]:
        """Return what moves it, besides new rows."""
        return (self.at, self.side, self.writer)

    @property
    def covers(self) -> str:
        """Return the pairs at the bound that have been emitted, as Spark SQL."""
        return "false" if self.side is None else f"{self._here} AND {self._inside(self.side)}"

    @property
    def allows(self) -> str:
        """Return the pairs at the bound that may be emitted."""
        return "true" if self.side is None else f"NOT ({self._here}) OR {self._inside(self.side)}"

    @property
    def _here(self) -> str:
        return f"{_LATER} = {passed(self.at, _LATER)}"

    def _inside(self, side: int) -> str:
        time, writer, _ = PLACES[side]
        micros_text = f"unix_micros({time})"
        tests = [
            f"({micros_text} < {passed(self.at, micros_text)} OR {writer} <= {literal(self.writer)})",
            f"{ARRIVED[side]} <= {passed(self.tick, ARRIVED[side])}",
        ]
        if self.first is not None:
            time, writer, position = (f"unix_micros({PLACES[0][0]})", *PLACES[0][1:])
            at, who, place = self.first
            tests += [
                f"{time} = {passed(at, time)}",
                f"{position} = {passed(place, position)}",
                f"{writer} = {literal(who)}",
            ]
        return f"({' AND '.join(tests)})"
