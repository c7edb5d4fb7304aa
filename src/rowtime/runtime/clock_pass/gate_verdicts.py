"""Judging: builds the verdict of a gate writer by writer and piece by piece.

A writer's undecided rows, whose later rows decide about a jump, come before its next piece. Besides the verdict it
keeps the last row that raised a mark too far (`Raise`).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowtime.core.columns import POSITION
from rowtime.core.time import BEGINNING, END
from rowtime.operators.contract.gates import Gate, Raise, Verdict
from rowtime.runtime.clock_pass.gate_items import behind
from rowtime.runtime.clock_pass.judged_runs import Judged, Tally, judge_run, numbers

PIECE = 65_536  # rows judged at once, so that the kernel's results stay in the cache


class Judging:
    """The judgement on the rows of a tick."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.tally = Tally(gate, recent=dict(gate.recent), started=set(gate.started or ()))
        self.marks, self.raised = dict(gate.marks), dict(gate.raised)
        self.open: dict[str, pa.Table] = {}
        self._refused: list[pa.Table | None] = []
        self._span = (END, BEGINNING)
        self._weighed, self._mean = 0, 0.0

    def mark(self, writer: str) -> int:
        """Return the mark of a writer after all judged rows."""
        return self.marks.get(writer, BEGINNING)

    def has_started(self, writer: str) -> bool:
        """Return True if the writer's next row may be early."""
        return self.tally.has_started(writer, self.mark(writer))

    def run(self, writer: str, items: pa.Table) -> None:
        """Judge the next items of a writer, in order."""
        first = self.mark(writer)
        for start in range(0, items.num_rows, PIECE):
            part = items.slice(start, PIECE)
            if writer in self.open:
                part = behind(self.open.pop(writer), part)
            # A set without order is compared with the mark before it as a whole.
            self._part(writer, part, first if self.gate.batched else self.mark(writer), ended=False)

    def skip(  # noqa: PLR0913 - facts about rows
        self, writer: str, count: int, mark: int, span: tuple[int, int], raised: Raise | None, *, started: bool
    ) -> None:
        """Skip rows that were not fetched: all are accepted, and at most the first raises the mark too far."""
        self.tally.counts.update({"in": count, "accepted": count})
        self.marks[writer] = max(self.mark(writer), mark)
        if started:
            self.tally.started.add(writer)
        before = self.raised.get(writer)
        if raised is not None and not (before is not None and before.poisons):
            self.raised[writer] = raised
        elif before is not None:
            self.raised[writer] = before._replace(rows=before.rows + count)
        self._span = (min(self._span[0], span[0]), max(self._span[1], span[1]))

    def weigh(self, accepted: int, mean: float) -> None:
        """Include so many accepted rows in the mean time."""
        self._weighed += accepted
        self._mean += (mean - self._mean) * accepted / max(self._weighed, 1)

    def verdict(self) -> Verdict:
        """Return the verdict on everything; undecided rows of writers that have left are decided."""
        present = set(self.gate.present)
        for writer in [writer for writer in self.open if writer not in present]:
            self._part(writer, self.open.pop(writer), self.mark(writer), ended=True)
        last = {writer: list(many) for writer, many in self.tally.recent.items()}
        held = {writer: items[POSITION].to_pylist() for writer, items in self.open.items()}
        parts = [part for part in self._refused if part is not None and part.num_rows]
        refused, counts = pa.concat_tables(parts) if parts else None, self.tally.counts
        started, mean = self.tally.started, self._mean if self._weighed else None
        return Verdict(refused, counts, self.marks, *self._span, last, self.raised, started, held, mean)

    def _part(self, writer: str, part: pa.Table, mark: int, *, ended: bool) -> None:
        verdict = judge_run(self.tally, writer, part, mark, ended=ended)
        if verdict.judged < part.num_rows:
            self.open[writer] = part.slice(verdict.judged)
            part = part.slice(0, verdict.judged)
        before = self.mark(writer)
        self.marks[writer] = after = max(before, verdict.mark)
        if self.gate.reason == "LATE" and part.num_rows:
            raised = _raised(self.raised.get(writer), part, self.gate, (before, after), verdict)
            self.raised |= {} if raised is None else {writer: raised}
        self._span = (min(self._span[0], verdict.span[0]), max(self._span[1], verdict.span[1]))
        self._refused.append(verdict.refused)
        self.weigh(verdict.accepted, verdict.mean)


def _raised(raised: Raise | None, part: pa.Table, gate: Gate, marks: tuple[int, int], judged: Judged) -> Raise | None:
    """Return the last row that raised the mark by more than the tolerance, with what happened to later rows.

    A late row counts if it would not be late without that raise. If most of the rows since are late because of a row,
    it stays, whatever raises the mark again.
    """
    mark, after = marks
    if raised is None and after <= mark + gate.within:
        return None
    times, known = numbers(part["t"])
    known = known & ~part["bad"].to_numpy()
    late = np.zeros(part.num_rows, bool)
    if judged.refused is not None:
        late[judged.places] = pc.equal(judged.refused["reason"], "LATE")
        known[judged.places] = False
    lost = raised is not None and raised.poisons
    steps = after > mark + gate.within and (np.diff(times, prepend=max(mark, BEGINNING)) > gate.within).any()
    if mark < END and steps and not lost:
        running = np.maximum.accumulate(np.concatenate(([mark], np.where(known, times, BEGINNING))))
        jumps = np.flatnonzero(np.diff(running) > gate.within)
        if len(jumps):
            last = int(jumps[-1])
            before, since = int(running[last]), slice(last + 1, None)
            blamed = late[since] & (times[since] + gate.within >= before)
            place = part[POSITION][last].as_py()
            return Raise(place, before, int(running[last + 1]), part["b"][last + 1 :].null_count, int(blamed.sum()))
    if raised is None:
        return None
    blamed = late & (times + gate.within >= raised.before)
    return raised._replace(rows=raised.rows + part["b"].null_count, late=raised.late + int(blamed.sum()))
