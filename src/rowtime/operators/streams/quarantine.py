"""Quarantine: the last rows of a writer, kept while later rows decide about a jump (semantics 7.2).

A gate with re-sync cannot decide about a first row, or one too far above the mark, before more rows have come. That row
and everything after it waits here: fewer than 2n rows per writer, judged again with the next rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rowtime.core.columns import DUE, POSITION, WRITER
from rowtime.core.time import BEGINNING, END
from rowtime.frames.frame import Frame
from rowtime.operators.contract import Control, Operator, Tick
from rowtime.operators.contract.gates import Verdict
from rowtime.operators.contract.state import Kept, Segments, StateNote
from rowtime.sql.generate import literal

HELD, BEHIND = "held", "behind"

Item = tuple[str, int, int]  # writer, position, µs


@dataclass(frozen=True)
class Waiting(Control):
    """The state of a gate about rows that later rows decide about.

    ``held``: writer -> first position, number of items. ``behind``: bounds after them (writer, position, µs).
    """

    held: Mapping[str, Sequence[int]] = field(default_factory=dict)
    behind: Sequence[Sequence[Any]] = field(default_factory=list)


def undecided(resync: int, columns: Iterable[str], sometimes: tuple[str, ...] = ()) -> StateNote:
    """Return the state of a gate with RESYNC AFTER ``resync`` rows, with these columns."""
    what, until = f"fewer than {2 * resync} rows per writer", "the rows after them decide about a jump"
    return StateNote(what, until, "rows", (Kept(DUE, tuple(columns), HELD, sometimes),), ("held", "behind"))


@dataclass(frozen=True)
class Quarantine:
    """The quarantine of a gate: undecided rows, and what follows them."""

    gate: Operator
    tick: Tick
    control: Waiting
    segments: Segments

    @classmethod
    def of(cls, gate: Operator, tick: Tick, control: Waiting) -> Quarantine:
        """Return the quarantine of a gate in this tick."""
        return cls(gate, tick, control, tick.segments(gate, HELD))

    @property
    def bounds(self) -> list[Item]:
        """Return the bounds that follow undecided rows."""
        return [(writer, position, at) for writer, position, at in self.control.behind]

    def decided(self, present: Collection[str]) -> bool:
        """Return True if a writer has left whose rows are kept."""
        return any(writer not in present for writer in self.control.held)

    @property
    def is_open(self) -> bool:
        """Return True if rows are kept."""
        return bool(self.control.held)

    def before(self, rows: Frame | None) -> Frame:
        """Return the kept rows before the new ones."""
        kept = self.segments.overlapping(BEGINNING, END)
        if not kept:
            assert rows is not None
            return rows
        held = self.segments.read(kept)
        if rows is None:
            return held
        return held.unionByName(rows)

    def released(self, bounds: Sequence[Item], verdict: Verdict, bound: int) -> list[Item]:
        """Keep the bounds that are still after an undecided row; return the others.

        ``bound``: one for every writer, after all of its items.
        """
        held = {writer: (places[0], places[-1]) for writer, places in verdict.held.items()}
        kept = [item for item in bounds if item[0] in held and item[1] >= held[item[0]][0]]
        everyone = [(writer, last, bound) for writer, (_, last) in held.items() if bound > BEGINNING]
        self.tick.remember(self.gate, behind=[list(item) for item in [*kept, *everyone]])
        return [item for item in bounds if item not in kept]

    def after(self, rows: Frame, verdict: Verdict) -> Frame:
        """Keep undecided rows; return the rows that are judged."""
        self.segments.forget(END)
        counted = {writer: [places[0], len(places)] for writer, places in verdict.held.items()}
        self.tick.remember(self.gate, held=counted)
        if not verdict.held:
            return rows
        cases = " ".join(
            f"WHEN {literal(w)} THEN {POSITION} >= {places[0]}" for w, places in sorted(verdict.held.items())
        )
        is_open = f"coalesce(CASE {WRITER} {cases} END, false)"
        kept = Kept(DUE, tuple(rows.columns), HELD)
        self.tick.describe(self.gate, "keep rows on which others decide")
        held = rows.where(is_open).selectExpr("*", f"{POSITION} AS {DUE}")
        self.segments.add(kept.write(self.tick, self.gate, held))
        return rows.where(f"NOT {is_open}")
