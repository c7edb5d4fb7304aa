"""Judging: builds the verdict of a gate writer by writer and piece by piece.

A writer's undecided rows, whose later rows decide about a jump, come before its next piece. Besides the verdict it
keeps the last row that raised a mark too far (`Raise`).
"""

from __future__ import annotations

import pyarrow as pa

from rowtime.core.columns import POSITION
from rowtime.core.time import BEGINNING, END
from rowtime.kernels.blame import Raise, watched
from rowtime.operators.contract.gates import Gate, Verdict
from rowtime.runtime.clock_pass.gate_items import behind
from rowtime.runtime.clock_pass.judged_runs import Tally, judge_run

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
        self,
        writer: str,
        count: int,
        mark: int,
        span: tuple[int, int],
        first: tuple[int, int | None],
        *,
        second: int = BEGINNING,
        started: bool,
    ) -> None:
        """Skip rows that were not fetched: all are accepted; ``first``: position and time of the first one.

        ``second``: the time of the next one, if it is known.
        """
        self.tally.counts.update({"in": count, "accepted": count})
        before = self.mark(writer)
        self.marks[writer] = max(before, mark)
        self._watch(writer, count, first, second, before, span[1])
        if started:
            self.tally.started.add(writer)
        self._span = (min(self._span[0], span[0]), max(self._span[1], span[1]))

    def _watch(  # noqa: PLR0913 - facts about rows
        self, writer: str, count: int, first: tuple[int, int | None], second: int, before: int, highest: int
    ) -> None:
        """Watch the row that raised the mark last by far, after rows that are all accepted.

        They are within the tolerance of one another, so at most the first raises the mark too far, and others confirm
        it.
        """
        raised, within, (position, time) = self.raised.get(writer), self.gate.within, first
        if self.gate.reason != "LATE":
            return
        if time is not None and time > before + within and not (raised is not None and raised.poisons):
            other = max(time, highest) if count > 1 else before
            self.raised[writer] = Raise(position, before, time, count - 1, other=other, next=second)
        elif raised is not None:
            top = max(highest, raised.after) if highest >= raised.after - within else highest
            after = raised.next if time is None or raised.next > BEGINNING else time
            self.raised[writer] = Raise(*raised[:3], raised.rows + count, raised.late, max(raised.other, top), after)

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
        return Verdict(
            refused, counts, self.marks, *self._span, last, self.raised, self.tally.lateness, started, held, mean
        )

    def _part(self, writer: str, part: pa.Table, mark: int, *, ended: bool) -> None:
        verdict = judge_run(self.tally, writer, part, mark, ended=ended)
        if verdict.judged < part.num_rows:
            self.open[writer] = part.slice(verdict.judged)
            part = part.slice(0, verdict.judged)
        before = self.mark(writer)
        self.marks[writer] = max(before, verdict.mark)
        if verdict.past is None:
            first = (part[POSITION][0].as_py(), part["t"][0].as_py()) if part.num_rows else (0, None)
            second = part["t"][1].as_py() if part.num_rows > 1 else BEGINNING
            self._watch(writer, part.num_rows, first, second, before, verdict.span[1])
        elif self.gate.reason == "LATE" and part.num_rows:
            raised = watched(self.raised.get(writer), verdict.past, self.gate.within)
            self.raised |= {} if raised is None else {writer: raised}
        self._span = (min(self._span[0], verdict.span[0]), max(self._span[1], verdict.span[1]))
        self._refused.append(verdict.refused)
        self.weigh(verdict.accepted, verdict.mean)
