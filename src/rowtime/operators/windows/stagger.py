"""STAGGER: a window opens with the first row of its key, and contains the rows within its length.

Semantics 5, as in Kinesis: ``[first, first + length)``; a row at exactly that moment opens the next one. The rows come
in stream order and pass at once, with the end of their window as a column; a GROUP BY above groups by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa

from rowtime.core.clock import least
from rowtime.core.columns import DUE, OPENED, ROWTIME
from rowtime.core.fields import Micros
from rowtime.core.time import END
from rowtime.frames.frame import Frame
from rowtime.kernels.frames import Ints
from rowtime.kernels.identity import numbered, together
from rowtime.operators.contract import Closed, Column, Delta, Shape, Tick, Unary, passed, quoted
from rowtime.operators.contract.requirement import SEQUENCE
from rowtime.operators.contract.state import Kept, StateNote
from rowtime.operators.rows.attempt import selected
from rowtime.operators.rows.select import Item


@dataclass(frozen=True)
class Stagger(Unary):
    """Adds ``column``, the end of the row's window (TIMESTAMP); ``keys`` are ``PARTITION BY``, ``length`` in µs."""

    keys: tuple[Item, ...]
    length: Micros
    column: str

    control: ClassVar = Closed
    kind: ClassVar[str] = "stagger"
    same_below: ClassVar = ()
    needs: ClassVar = (SEQUENCE,)  # it decides which row is the first of its key
    keeps_places: ClassVar[bool] = True

    def keeps(self) -> tuple[StateNote, ...]:
        """Return when each window opened."""
        return (self._state.noted("the first rowtime of each open window", "the bound reaches its end"),)

    def emits(self) -> Shape:
        """Return the input's columns and the window's end."""
        below = self.input.emits()
        return replace(below, columns=(*below.columns, Column(self.column, "TIMESTAMP")), event=None)

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Open windows for the new rows that no open one contains; give each row its window."""
        delta, control = deltas[0], tick.control(self)
        before = control.closed
        bound = max(least(delta.clocks.values()), before)
        tick.remember(self, closed=bound)
        rows = None if delta.rows is None else self._windowed(tick, delta, before)
        tick.segments(self).forget(bound)
        self._state.compact(tick, self, "open windows", lambda kept: kept.where(f"{DUE} > {bound}L"))
        return Delta(rows, delta.clocks, delta.lowest, delta.highest)

    def _windowed(self, tick: Tick, delta: Delta, before: int) -> Frame:
        assert delta.rows is not None
        rows = selected(tick, delta.rows, ["*", *(key.sql for key in self.keys), f"unix_micros({ROWTIME}) AS __u"])
        opened = self._opened(tick, rows, before)
        tick.describe(self, "open windows")
        self._state.keep(tick, self, opened)
        windows = self._open(tick, before)
        assert windows is not None
        windows = windows.selectExpr(*(f"{name} AS __w{n}" for n, name in enumerate(self._names)), OPENED, DUE)
        same = [f"{name} <=> __w{n}" for n, name in enumerate(self._names)]
        pairs = rows.joined(windows, " AND ".join([*same, f"__u >= {OPENED}", f"__u < {DUE}"]), "inner")
        shape = self.emits()
        end = f"timestamp_micros({DUE}) AS {quoted(self.column)}"
        return pairs.selectExpr(*map(quoted, self.input.emits().names), end, *shape.internals)

    def _opened(self, tick: Tick, rows: Frame, before: int) -> Frame:
        """Return the windows that the rows open, one after the other from the open one on."""
        open_windows = self._open(tick, before)
        fresh = rows.selectExpr(*self._names, f"__u AS {OPENED}")
        tables = [fresh.toArrow()]
        if open_windows is not None:
            tables.insert(0, open_windows.select(*self._names, OPENED).toArrow())
        kept = sum(table.num_rows for table in tables[:-1])
        whole = pa.concat_tables(tables).combine_chunks()
        keys = [numbered(whole.column(n).combine_chunks()) for n in range(len(self._names))]
        code = together(keys or [np.zeros(whole.num_rows, np.int64)])
        places = opening(code, whole.column(OPENED).to_numpy(), kept, self.length)
        return fresh.taken(np.sort(places) - kept).selectExpr("*", f"{OPENED} + {self.length}L AS {DUE}")

    def _open(self, tick: Tick, before: int) -> Frame | None:
        """Return the windows that may contain a row from ``before`` on."""
        segments = tick.segments(self)
        kept = segments.overlapping(before, END)
        return segments.read(kept).where(f"{DUE} > {passed(before, DUE)}") if kept else None

    @property
    def _state(self) -> Kept:
        return Kept(DUE, (*self._names, OPENED, DUE))

    @property
    def _names(self) -> list[str]:
        return [key.column.name for key in self.keys]


def opening(code: Ints, at: Ints, kept: int, length: int) -> Ints:
    """Return the places of the rows that open a window of their key ``code``, in no order.

    The first ``kept`` elements are windows that are open, each at the time of its first row; the others are rows. A row
    opens one if no open window of its key contains it: ``[first, first + length)``. ``at`` and ``length`` are in µs.
    """
    order = np.lexsort((at, code))
    code, at, is_row = code[order], at[order], order >= kept
    times = np.unique(at)
    place = code * (len(times) + 1) + np.searchsorted(times, at)  # ascends; one more for times beyond all others
    after = np.searchsorted(place, code * (len(times) + 1) + np.searchsorted(times, at + length))
    following = np.where((after < len(code)) & (code[np.minimum(after, len(code) - 1)] == code), after, len(code))
    first = np.flatnonzero(np.concatenate(([True], code[1:] != code[:-1]))) if len(code) else np.zeros(0, np.int64)
    opens = np.zeros(len(code) + 1, bool)
    reached = first
    while len(reached):  # one round for each window of the key with the most of them
        opens[reached] = True
        reached = following[reached]
        reached = reached[reached < len(code)]
    return order[opens[:-1] & is_row]
