"""Sessions from pieces: rows of one key that follow each other within a gap.

A piece is a row, or several rows of one session already merged: ``__e`` is its first rowtime, ``__l`` its last (BIGINT
µs). Two pieces belong together if one begins before the other's last rowtime + gap; at exactly that time a new session
begins (`[first, last + gap)`, semantics 5).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowtime.core.columns import DUE, FIRST, IS_DUE, LAST, SESSION
from rowtime.core.time import END
from rowtime.operators.contract import Tick, passed, quoted

if TYPE_CHECKING:
    from rowtime.frames.frame import Frame
    from rowtime.operators.contract import Operator


@dataclass(frozen=True)
class Chains:
    """Sessions of the columns ``keys`` with a ``gap`` (µs)."""

    keys: tuple[str, ...]
    gap: int

    def numbered(self, pieces: Frame) -> Frame:
        """Return the pieces with the numbers of their sessions; one sort."""
        part = f"PARTITION BY {', '.join(self.keys)} " if self.keys else ""
        order = f"{part}ORDER BY {FIRST}, {LAST} ROWS BETWEEN UNBOUNDED PRECEDING AND"
        begins = f"{FIRST} >= max({LAST}) OVER ({order} 1 PRECEDING) + {self.gap}L"
        marked = pieces.selectExpr("*", f"CASE WHEN {begins} THEN 1L ELSE 0L END AS __b")
        return marked.selectExpr("*", f"sum(__b) OVER ({order} CURRENT ROW) AS {SESSION}").drop("__b")

    def ended(self, pieces: Frame) -> Frame:
        """Return numbered pieces that are due at the end of their session."""
        session = f"OVER (PARTITION BY {', '.join((*self.keys, SESSION))})"
        columns = [quoted(name) for name in pieces.columns if name != DUE]
        return pieces.selectExpr(*columns, f"max({LAST}) {session} + {self.gap}L AS {DUE}")

    def due(self, tick: Tick, node: Operator, before: int, bound: int) -> Frame | None:
        """Return the pieces due in (before, bound]; and only the times of the others of their keys.

        A piece is due at the end of its session as it was known; a later row may have moved that.
        """
        segments = tick.segments(node)
        mine = segments.overlapping(before, bound)
        if not mine:
            return None
        low, high = (passed(at, DUE) for at in (before, bound))
        pieces = segments.read(mine).where(f"{DUE} > {low} AND {DUE} <= {high}")
        later = segments.overlapping(bound, END)
        due = pieces.selectExpr("*", f"true AS {IS_DUE}")
        if not later:
            return due
        others = segments.read(later).where(f"{DUE} > {high}").select(*self.keys, FIRST, LAST, DUE)
        if self.keys:
            wanted = pieces.selectExpr(*(f"{key} AS __w{n}" for n, key in enumerate(self.keys))).distinct()
            same = " AND ".join(f"{key} <=> __w{n}" for n, key in enumerate(self.keys))
            others = others.joined(wanted, same, "left_semi")
        others = others.selectExpr("*", f"false AS {IS_DUE}")
        return due.unionByName(others, allowMissingColumns=True)
