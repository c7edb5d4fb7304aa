"""A tick whose first operators step in several tasks: what these and the later tasks do instead of `RunningTick`.

A task of level 0 has a part of the rows, and the facts that the tick has about all of them. It writes refused rows, and
notes the items of its gates. The later tasks let the same operators step again, over no rows: their gates judge by the
items of all tasks, so clocks, counts and scalars are those of one task. After that, the rows that level 0 gave take
the place of none (`FoldingTick.received`). A task of keys (`KeysTick`) gets those of its keys, and goes on with the
operators that need no others; the last task gets what these gave, and goes on from there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import chain
from typing import Final

import pyarrow as pa

from rowtime.core.clock import strongest
from rowtime.core.columns import BOUND, WRITER
from rowtime.core.time import END
from rowtime.frames.frame import Frame
from rowtime.kernels.identity import only_value
from rowtime.operators.contract import Delta, DiffersError, Distribution, Gathered, Operator
from rowtime.operators.contract.gates import Gate, Verdict
from rowtime.operators.contract.intake import Intake
from rowtime.operators.contract.state import Segment
from rowtime.operators.sinks.sink import Sink
from rowtime.plan.levels import Levels
from rowtime.runtime.clock_pass.gate_items import items_of
from rowtime.runtime.clock_pass.pieces import Judged, Marks, folded, judged_apart, starts_of
from rowtime.runtime.executors.exchanged import Exchanged, united
from rowtime.runtime.executors.parts import Call, KeysPart, Part, UndividedError
from rowtime.runtime.meter import Meter
from rowtime.runtime.sinks.failures import naming
from rowtime.runtime.sinks.staging import Written
from rowtime.runtime.stored_schemas import fields_of
from rowtime.runtime.tick import RunningTick
from rowtime.runtime.tick_segments import TickSegments
from rowtime.state.costs import SINKS
from rowtime.state.segments import SegmentLog
from rowtime.state.shards import ShardLog, Shards, together


class PartTick(RunningTick):
    """The tick in a task of level 0."""

    def begin(self, number: int, starts: Mapping[Call, Marks]) -> None:
        """Begin with the marks that the rows of the tasks before have raised, as far as they are known."""
        self._number, self._staged, self._apart = number, dict[str, Written](), set[str]()
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
            writers = intake.rows.column(WRITER)
            only = only_value(writers)
            self._writers[node.name] = {*writers.unique().to_pylist()} if only is None else {only}
        return intake

    def decided(self, node: Operator, rows: Frame, gate: Gate, times: pa.Table | None) -> Verdict:
        """Judge the rows of this task, and note their items."""
        call = _call(self._calls, node)
        gate = replace(gate, marks=strongest(gate.marks, self._starts.get(call, {})))
        verdict, self._decided[call] = judged_apart(items_of(rows, gate, times), gate)
        return verdict

    def refuse(self, node: Operator, rows: Frame, broken: str) -> Frame:
        """Refuse rows by themselves; other tasks know nothing of them."""
        self._apart.add(node.name)
        return super().refuse(node, rows, broken)

    def deliver(self, node: Sink, delta: Delta) -> None:
        """Write the rows of this task for a sink; the last task stages the files."""
        with naming(node), self.meter.part(SINKS):
            self._staged[node.name] = self._deliver[node.name].write(self, node, delta, self._number)

    def part(self, levels: Levels, exchanged: Mapping[str, Delta]) -> Part:
        """Return what the task gives."""
        part = Part(self._number, needs=self._needs, writers=self._writers, judged=self._decided, refused=self._refused)
        part.ledger = {name: self.ledger[name] for name in self._apart}
        part.written, part.staged, part.measured = self._written, self._staged, self.meter.measured()
        part.schemas = {key: self.schemas[key] for of in self._refused.values() for key, _ in of}
        readers = {reader.name for _, reader in levels.combining()}
        part.controls = {name: control for name, control in self.controls.items() if name in readers}
        for name, delta in exchanged.items():
            if delta.rows is not None:
                part.exchanged[name] = _passed_on(name, levels, delta)
        return part


class FoldingTick(RunningTick):
    """The tick in a task after those of level 0."""

    def fold(self, levels: Levels, parts: Sequence[Part]) -> None:
        """Take over what the tasks of level 0 have written.

        Raises ``UndividedError`` if they needed to have all rows of their writers, and do not.
        """
        needs = next((part.needs for part in parts if part.needs), "")
        writers = Counter((name, writer) for part in parts for name, of in part.writers.items() for writer in of)
        if needs and writers.most_common(1)[0][1] > 1:
            raise UndividedError(needs)
        self._first, self._parts = [node.name for node in levels.first], parts
        self._alone = levels.alone
        self._calls, self._received = Counter[str](), dict[str, Delta]()
        for part in parts:
            self.schemas.update(part.schemas)
            self.controls.update(part.controls)
            self._written += part.written
            for gate, counts in part.ledger.items():
                self.ledger.setdefault(gate, Counter()).update(counts)
            for gate, files in part.refused.items():
                self._refused.setdefault(gate, []).extend(files)
            self.meter.add(part.measured)

    def decided(self, node: Operator, rows: Frame, gate: Gate, times: pa.Table | None) -> Verdict:
        """Judge at a gate of level 0 by the items of all tasks; raises ``MisjudgedError``."""
        if node.name not in self._first:
            return super().decided(node, rows, gate, times)
        call = _call(self._calls, node)
        return folded(gate, [part.judged.get(call, _NOTHING) for part in self._parts])

    def stepped(self, node: Operator) -> Delta | None:
        """Return that a table ends, if nobody reads its rows here; ``None`` for others."""
        unread = self._alone and node.distribution() is Distribution.WHOLE
        return Delta(None, {"": END}) if unread else None

    def starts(self) -> dict[Call, dict[int, Marks]]:
        """Return the marks from which the tasks have to judge, by their numbers."""
        calls = {call for part in self._parts for call in part.judged}
        numbers = [part.number for part in self._parts]
        marks = {call: starts_of([part.judged.get(call, _NOTHING) for part in self._parts]) for call in calls}
        return {call: dict(zip(numbers, of_parts, strict=True)) for call, of_parts in marks.items()}

    def account(self, node: Operator, rows: Frame, verdict: Verdict, time: str, clock: str | None = None) -> Frame:
        """Count the rows in the ledger; the tasks of level 0 have written those that they refuse."""
        if node.name not in self._first:
            return super().account(node, rows, verdict, time, clock)
        self.ledger.setdefault(node.name, Counter()).update(verdict.counts)
        return rows.where(f"{BOUND} IS NULL") if BOUND in rows.columns else rows

    def deliver(self, node: Sink, delta: Delta) -> None:
        """Stage what the tasks of level 0 have written for a sink; raises ``UndividedError`` if it is out of order."""
        if node.name not in self._first:
            super().deliver(node, delta)
        elif not self.of_keys:
            written = [part.staged[node.name] for part in self._parts]
            edges = [edge for one in written for edge in one.edges]
            if edges != sorted(edges):
                raise UndividedError(f"rows for {node.name} that come before those of the task before")
            self.stage(node, replace(delta, rows=None), written)

    def received(self, node: Operator, reader: Operator, delta: Delta) -> Delta:
        """Return what an operator gives to another one: to those of later levels, what it has given in all tasks."""
        if self.below(reader):
            return delta
        if node.name not in self._received:
            self._received[node.name] = self.in_all_tasks(node, delta)
        return self._received[node.name]

    def below(self, node: Operator) -> bool:
        """Return True if an operator has stepped in tasks before this one."""
        return node.name in self._first

    def in_all_tasks(self, node: Operator, delta: Delta) -> Delta:
        """Return what an operator of level 0 has given in all tasks; other results are returned as they are."""
        given = [part.exchanged[node.name] for part in self._parts if node.name in part.exchanged]
        return _all_of(self, delta, given) if given else delta

    def given_below(self) -> dict[str, int]:
        """Return how many rows the operators of level 0 gave, where each task knows it."""
        return _summed([part.given for part in self._parts])


class KeysTick(FoldingTick):
    """The tick in a task that has some keys."""

    of_keys = True

    def begin(self, shards: Shards, levels: Levels) -> None:
        """Begin with the state of these shards."""
        self._shards, self._keyed = shards, levels.keyed
        self._left: dict[str, list[Frame]] = {}
        self._before = len(self._written)
        self.meter = Meter()  # what level 0 has written is counted elsewhere

    def leave(self, node: Operator, rows: Frame) -> None:
        """Keep rows for the last task."""
        self._left.setdefault(node.name, []).append(rows)

    def segments(self, node: Operator, what: str = "state") -> TickSegments:
        """Return the operator's kept rows of these shards."""
        by, key = self._keyed.get(node.name), f"{node.name}/{what}"
        if by is not None and what in by.kept and not isinstance(self.logs.get(key), ShardLog):
            self.logs[key] = ShardLog(self.logs.get(key, SegmentLog()), self._shards, by.kept[what])
        return super().segments(node, what)

    def rows_of(self, key: str, segment: Segment) -> pa.Table:
        """Return the rows of a segment that are in these shards."""
        table, log = super().rows_of(key, segment), self.logs.get(key)
        if not isinstance(log, ShardLog) or not log.keys or log.has_all(segment) or segment.path in self._written:
            return table
        kinds = dict(fields_of(self.schemas[key]))
        return log.shards.rows(table, [kinds[name] for name in log.keys], log.keys)

    def part(self, number: int, levels: Levels, deltas: Mapping[str, Delta], received: int) -> KeysPart:
        """Return what the task gives; raises ``UndividedError`` if it would refuse rows."""
        names = {node.name for node in levels.shared}
        if names & {*self.ledger, *self._refused}:
            raise UndividedError("rows that are refused in a task of keys")
        parts = () if number else [replace(part, exchanged={}) for part in self._parts]
        part = KeysPart(number, parts, received=received)
        for name, delta in deltas.items():
            if name in names:
                part.deltas[name] = replace(delta, rows=None)
            if name in levels.handed and delta.rows is not None:
                part.exchanged[name] = _passed_on(name, levels, delta)
        for name in levels.keyed:
            left = self._left.get(name)
            rows = None if left is None else Exchanged.of(reduce(lambda one, other: one.unionByName(other), left))
            part.gathered[name] = self.controls[name], rows
        part.logs = {key: log for key, log in self.logs.items() if isinstance(log, ShardLog)}
        readers = {reader.name for _, reader in levels.combining_handed()}
        part.controls = {name: control for name, control in self.controls.items() if name in readers}
        part.schemas = {key: of for key, of in self.schemas.items() if key.rpartition("/")[0] in names}
        part.written, part.measured = self._written[self._before :], self.meter.measured()
        return part


class LastTick(FoldingTick):
    """The tick in the last task, after those of keys, if any."""

    def gather(self, levels: Levels, of_keys: Sequence[KeysPart]) -> None:
        """Take over what the tasks of keys have written."""
        self._of_keys = of_keys
        self._readers = dict(levels.combining_handed())
        for part in of_keys:
            self.controls.update(part.controls)
            self.schemas.update(part.schemas)
            self._written += part.written
            self.meter.add(part.measured)
        for key in dict.fromkeys(key for part in of_keys for key in part.logs):
            logs = [part.logs[key] for part in of_keys if key in part.logs]
            self.logs[key] = together(self.logs.get(key, SegmentLog()), logs)

    def stepped(self, node: Operator) -> Delta | None:
        """Return what an operator of keys has left to this task; ``None`` for others."""
        if not self._of_keys or node.name not in self._of_keys[0].gathered:
            return super().stepped(node)
        deltas = [part.deltas[node.name] for part in self._of_keys]
        if any(delta.clocks != deltas[0].clocks for delta in deltas):
            raise DiffersError(f"the clocks of {node.name}")
        lowest, highest = min(delta.lowest for delta in deltas), max(delta.highest for delta in deltas)
        gathered: list[Gathered] = []
        for part in self._of_keys:
            control, left = part.gathered[node.name]
            gathered.append(Gathered(control, None if left is None else united(self, [left])))
        return node.gathered(self, replace(deltas[0], lowest=lowest, highest=highest, files=None), gathered)

    def below(self, node: Operator) -> bool:
        """Return True if an operator has stepped in tasks before; it may also step here, over what was left."""
        return super().below(node) or bool(self._of_keys and node.name in self._of_keys[0].deltas)

    def in_all_tasks(self, node: Operator, delta: Delta) -> Delta:
        """Return what an operator has given in all tasks of level 0 or of keys, and here."""
        if not self._of_keys or node.name not in self._of_keys[0].deltas:
            return super().in_all_tasks(node, delta)
        files = [of for part in self._of_keys if (of := part.deltas[node.name].files) is not None]
        if files:
            delta = replace(delta, files=tuple(chain(delta.files or (), *files)))
        given = [part.exchanged[node.name] for part in self._of_keys if node.name in part.exchanged]
        if not given:
            return delta
        if delta.rows is not None:
            own = self._readers[node.name].combined(self, delta) if given[0].partial else delta
            assert own.rows is not None
            given.append(Exchanged.of(own.rows, partial=given[0].partial))
        return _all_of(self, delta, given)

    def given_below(self) -> dict[str, int]:
        """Return how many rows operators gave in the tasks before, where each task knows it."""
        return {**super().given_below(), **_summed([part.given for part in self._of_keys])}


def _all_of(tick: RunningTick, delta: Delta, given: Sequence[Exchanged]) -> Delta:
    return replace(delta, rows=united(tick, given), partial=given[0].partial)


def _passed_on(name: str, levels: Levels, delta: Delta) -> Exchanged:
    """Return the rows of an operator with the columns that others read."""
    assert delta.rows is not None
    if delta.partial:
        return Exchanged.of(delta.rows, partial=True)
    unread = levels.unread(name)
    return Exchanged.of(delta.rows, [column for column in delta.rows.columns if column not in unread])


def _summed(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    every = set.intersection(*({*of} for of in counts)) if counts else ()
    return {name: sum(of[name] for of in counts) for name in every}


_NOTHING: Final = Judged((), None)


def _call(calls: Counter[str], node: Operator) -> Call:
    calls[node.name] += 1
    return node.name, calls[node.name] - 1
