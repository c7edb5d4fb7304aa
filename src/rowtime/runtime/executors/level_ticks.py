"""A tick whose first operators step in several tasks: what they and the task of level 1 do instead of `RunningTick`.

A task of level 0 has a part of the rows, and the facts that the tick has about all of them. It writes refused rows, and
notes the items of its gates. The task of level 1 lets the same operators step again, over no rows: its gates judge by
the items of all tasks, so clocks, counts and scalars are those of one task. After that, the rows that level 0 gave take
the place of none (`FoldingTick.received`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa

from rowtime.core.clock import strongest
from rowtime.core.columns import BOUND, WRITER
from rowtime.frames.frame import Frame
from rowtime.frames.tables import Column, put_together
from rowtime.operators.contract import Control, Delta, Operator
from rowtime.operators.contract.gates import Gate, Verdict
from rowtime.operators.contract.intake import Intake
from rowtime.operators.contract.peek import Peek
from rowtime.runtime.clock_pass.gate_items import filled, items_of
from rowtime.runtime.clock_pass.pieces import Judged, Marks, folded, judged_apart, starts_of
from rowtime.runtime.meter import Measured
from rowtime.runtime.tick import RunningTick

Call = tuple[str, int]
"""A judgement of a tick: the operator, and how many it has had before."""


class UndividedError(Exception):
    """The rows of a tick cannot be divided: one task has to compute it."""


@dataclass(frozen=True)
class Exchanged:
    """What a task passes on of one operator: a table, the types of its columns, whether it has partial results."""

    fields: Sequence[Column]
    rows: pa.Table
    partial: bool


@dataclass
class Part:
    """What a task of level 0 gives.

    ``number``: of the task. ``exchanged``: its rows, by operator; ``judged``: the items of its gates. ``controls``: the
    scalars of operators that read its rows, if they follow from types. ``needs``: why its result is wrong if another
    task has rows of the same ``writers`` (by stream; only if there may be a reason). ``counts``: of the rows that were
    read, by stream; ``given``: by operator, where known. ``refused``, ``schemas``, ``written``: its files of refused
    rows, as in a tick.
    """

    number: int
    exchanged: dict[str, Exchanged] = field(default_factory=dict)
    needs: str = ""
    writers: dict[str, set[str]] = field(default_factory=dict)
    judged: dict[Call, Judged] = field(default_factory=dict)
    controls: dict[str, Control] = field(default_factory=dict)
    counts: dict[str, int | None] = field(default_factory=dict)
    given: dict[str, int] = field(default_factory=dict)
    refused: dict[str, list[Any]] = field(default_factory=dict)
    schemas: dict[str, Any] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)
    measured: Measured = field(default_factory=lambda: Measured(0, 0, {}))


class PartTick(RunningTick):
    """The tick in a task of level 0."""

    def begin(self, starts: Mapping[Call, Marks]) -> None:
        """Begin with the marks that the rows of the tasks before have raised, as far as they are known."""
        self._starts, self._decided = starts, dict[Call, Judged]()
        self._calls = Counter[str]()
        self._needs, self._writers = "", dict[str, set[str]]()

    def needs_all_rows(self, why: str) -> None:
        """Note it: it holds if no other task has rows of the same writers."""
        self._needs = why

    def intake(self, node: Operator) -> Intake:
        """Return the rows of this task, and the facts about those of all."""
        intake = super().intake(node)
        if intake.raises and intake.rows is not None:
            self._writers[node.name] = {*intake.rows.selectExpr(WRITER).toArrow()[WRITER].unique().to_pylist()}
        return intake

    def decided(
        self,
        node: Operator,
        rows: Frame,
        gate: Gate,
        peeked: Iterable[pa.Table] | None,
    ) -> Verdict:
        """Judge the rows of this task, and note their items."""
        call = _call(self._calls, node)
        gate = replace(gate, marks=strongest(gate.marks, self._starts.get(call, {})))
        tables = None if peeked is None else [filled(table) for table in peeked]
        items = pa.concat_tables(tables) if tables else items_of(rows, gate)
        verdict, self._decided[call] = judged_apart(items, gate)
        return verdict

    def part(self, number: int, exchanged: Mapping[str, Delta], readers: Iterable[Operator]) -> Part:
        """Return what the task gives."""
        part = Part(
            number, judged=self._decided, refused=self._refused, written=self._written, measured=self.meter.measured()
        )
        part.schemas = {key: self.schemas[key] for of in self._refused.values() for key, _ in of}
        part.controls = {node.name: self.controls[node.name] for node in readers if node.name in self.controls}
        for name, delta in exchanged.items():
            if delta.rows is not None:
                part.exchanged[name] = Exchanged(delta.rows.dtypes, delta.rows.toArrow(), delta.partial)
        return part


class FoldingTick(RunningTick):
    """The tick in the task of level 1."""

    def fold(self, first: Collection[str], parts: Sequence[Part]) -> None:
        """Take over what the tasks of level 0, which has the operators ``first``, have written.

        Raises ``UndividedError`` if they needed to have all rows of their writers, and do not.
        """
        needs = next((part.needs for part in parts if part.needs), "")
        writers = Counter((name, writer) for part in parts for name, of in part.writers.items() for writer in of)
        if needs and writers.most_common(1)[0][1] > 1:
            raise UndividedError(needs)
        self._first, self._parts = first, parts
        self._calls = Counter[str]()
        for part in parts:
            self.schemas.update(part.schemas)
            self.controls.update(part.controls)
            self._written += part.written
            for gate, files in part.refused.items():
                self._refused.setdefault(gate, []).extend(files)
            self.meter.add(part.measured)

    def decided(self, node: Operator, rows: Frame, gate: Gate, peeked: Iterable[pa.Table] | None) -> Verdict:
        """Judge at a gate of level 0 by the items of all tasks; raises ``MisjudgedError``."""
        if node.name not in self._first:
            return super().decided(node, rows, gate, peeked)
        call = _call(self._calls, node)
        return folded(gate, [part.judged.get(call, _NOTHING) for part in self._parts])

    def starts(self) -> dict[Call, dict[int, Marks]]:
        """Return the marks from which the tasks have to judge, by their numbers."""
        calls = {call for part in self._parts for call in part.judged}
        numbers = [part.number for part in self._parts]
        marks = {call: starts_of([part.judged.get(call, _NOTHING) for part in self._parts]) for call in calls}
        return {call: dict(zip(numbers, of_parts, strict=True)) for call, of_parts in marks.items()}

    def account(  # noqa: PLR0913 - as in the contract
        self,
        node: Operator,
        rows: Frame,
        verdict: Verdict,
        time: str,
        clock: str | None = None,
        peek: Peek | None = None,
    ) -> Frame:
        """Count the rows in the ledger; the tasks of level 0 have written those that they refuse."""
        if node.name not in self._first:
            return super().account(node, rows, verdict, time, clock, peek)
        self.ledger.setdefault(node.name, Counter()).update(verdict.counts)
        return rows.where(f"{BOUND} IS NULL") if BOUND in rows.columns else rows

    def received(self, node: Operator, delta: Delta) -> Delta:
        """Return what an operator of level 0 has given in all tasks; other results are returned as they are."""
        given = [part.exchanged[node.name] for part in self._parts if node.name in part.exchanged]
        if not given:
            return delta
        fields, tables = given[0].fields, [one.rows for one in given]
        rows = Frame.of(self.spark, put_together(fields, tables), fields)
        return replace(delta, rows=rows, peek=None, partial=given[0].partial)

    def given_below(self) -> dict[str, int]:
        """Return how many rows the operators of level 0 gave, where each task knows it."""
        every = set.intersection(*({*part.given} for part in self._parts))
        return {name: sum(part.given[name] for part in self._parts) for name in every}


_NOTHING: Final = Judged((), None)


def _call(calls: Counter[str], node: Operator) -> Call:
    calls[node.name] += 1
    return node.name, calls[node.name] - 1
