"""MATCH_RECOGNIZE: matches of a pattern in the rows of each partition, once they are certain (semantics 13).

A tick examines again the rows from the oldest undecided start on, for keys with new rows or with a start whose time has
run out. Certain matches are emitted at once; the merge above puts them in stream order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from sqlglot import exp

from rowtime.core.clock import Clocks, least
from rowtime.core.columns import (
    ASKED_AT,
    AT,
    DUE,
    KEY_HASH,
    MATCH_AT,
    MATCH_ROW,
    PARTITION,
    POSITION,
    ROWTIME,
    SORTED_KEY,
)
from rowtime.core.errors import refuse
from rowtime.core.fields import Micros
from rowtime.core.time import BEGINNING, END, to_text
from rowtime.expr.conditions import columns_in
from rowtime.frames.kinds import type_text
from rowtime.frames.typed import beside, schema_of
from rowtime.kernels.hashes import hashes
from rowtime.kernels.matching.automaton import Automaton, automaton
from rowtime.kernels.matching.matcher import Clause, To
from rowtime.kernels.matching.pattern import Anchor, parse, variables
from rowtime.kernels.windowed import takes, whole
from rowtime.operators.contract import (
    AGGREGATION,
    Column,
    Control,
    Delta,
    Derivation,
    Link,
    Operator,
    Shape,
    Tick,
    Unary,
    quoted,
)
from rowtime.operators.contract.requirement import NUMBERED
from rowtime.operators.contract.state import Kept, StateNote
from rowtime.operators.over.over_rows import in_stream_order
from rowtime.operators.patterns.conditions import Tester
from rowtime.operators.patterns.match_tick import MatchTick
from rowtime.operators.patterns.remembered import Memory, Span
from rowtime.operators.patterns.slots import CLASSIFIER, NUMBER, TAKEN, Condition, Fold, MatchFunction, Pick, Slot
from rowtime.operators.rows.attempt import selected
from rowtime.operators.rows.collations import has_collation
from rowtime.operators.rows.lifetimes import BEGINS
from rowtime.operators.rows.select import Item
from rowtime.sql.generate import to_rowtime, to_spark
from rowtime.sql.nodes import ONE_ROW

if TYPE_CHECKING:
    from rowtime.frames.frame import Frame

ROWS, PARTITIONS = "rows", "partitions"
TAKEN_AS = "taken as"  # with a space, so that it is the name of no column


@dataclass(frozen=True)
class MatchControl(Control):
    """The state of the matches.

    ``types``: the Spark types of the slots of conditions and measures, set with the first rows. ``bound`` (µs UTC): up
    to where starts have been decided. ``least`` (µs UTC): no row below it may still be emitted. ``turn``: how often
    partitions have been written. ``open``: the oldest match that is not certain: its ``key`` as text, its first row
    (``since``) and the bound that decides it (``until``, both µs UTC), set anew in each tick; empty for none.
    ``waiting``: the number of rows that can still match.
    """

    types: Mapping[str, str] = field(default_factory=dict)
    bound: int = BEGINNING
    least: int = END
    turn: int = 0
    open: Mapping[str, Any] = field(default_factory=dict)
    waiting: int = 0


@dataclass(frozen=True)
class Match(Unary):
    """The matches of ``pattern`` in the rows of each value of ``keys``, with ``slots`` and ``passed`` columns.

    ``conditions``: those of DEFINE, each as its parts between AND. ``rows``: the output per match (`sql.nodes`).
    ``skip`` and ``to``: where the next match may begin. ``within`` (µs): how far the last row may be above the first
    one, exclusive. ``expires`` (µs): how long a key may have no row before its partition ends.
    """

    keys: tuple[Item, ...]
    pattern: str
    conditions: tuple[Condition, ...]
    slots: tuple[Slot, ...]
    passed: tuple[str, ...] = ()
    rows: str = ONE_ROW
    skip: str = "past"
    to: tuple[str, ...] = ()
    within: Micros | None = None
    expires: Micros | None = None

    control: ClassVar = MatchControl
    kind: ClassVar[str] = "match"
    decides: ClassVar[str] = "WINDOW"
    needs: ClassVar = (NUMBERED,)
    promise: ClassVar[str] = "the bound of its input, or the first row here that a match still possible may send out"
    reason: ClassVar[str] = "a later match ends with a later row, or with one that is here, and these are known"

    def keeps(self) -> tuple[StateNote, ...]:
        """Return rows from the oldest undecided start on, and the state of each partition."""
        until = "its start is decided"
        if self.reach:
            until += f" and PREV, which reaches {self.reach} back, asks for no row of it"
        by = "time" if self.span.row < END else "keys" if self.expires is None and self.within is not None else "rows"
        rows = self._rows.noted("the rows from the oldest undecided start on", until, by)
        last = "the key has had no row for " + str(timedelta(microseconds=self.expires or 0))
        within = f"the bound is {timedelta(microseconds=self.within or 0)} past the last row of the key"
        ends = "the stream ends" if self.span.partition >= END else last if self.expires is not None else within
        by = "time" if self.span.partition < END else "keys" if self.keys else "one"
        each = " per key" if self.keys else ""
        return (rows, self._partitions.noted(f"one place and one match number{each}", ends, by))

    def emits(self) -> Shape:
        """Return the keys, the slots and the passed columns; in stream order by key, match and row, not yet merged."""
        columns_below = {column.name: column for column in self.input.emits().columns}
        passed = (replace(columns_below[name], fact=type(columns_below[name].fact)()) for name in self.passed)
        columns = (*(key.column for key in self.keys), *(slot.column for slot in self.slots), *passed)
        order = (ROWTIME, *self.sorting, MATCH_AT, MATCH_ROW)
        extra = (*self.sorting, MATCH_AT, MATCH_ROW)
        # Starts are decided in their order, but those of several keys are not.
        settled = () if self.keys else order
        return Shape(columns, order=order, extra=extra, placed=False, single=True, settled=settled)

    def promises(self, clocks: Sequence[Clocks], control: MatchControl) -> Clocks:
        """Return the bound, or the least row below it that may still be emitted."""
        return {"": min(least(clocks[0].values()), control.least)}

    def link(self, n: int) -> Link:  # noqa: ARG002 - one input
        """Return the rows of the same keys that a match with the row may contain, or read beside its rows."""
        same = tuple((quoted(key.column.name), to_spark(key.expression)) for key in self.keys)
        meets = []
        if self.within is not None and not self.reach:
            meets.append(f"{BEGINS} > {ASKED_AT} - {self.within}L")
        if not self.clause.behind and not self.ahead:
            later = f" + {self.within or 0}L" if self.rows != ONE_ROW else ""
            meets += [f"{BEGINS} <= {ASKED_AT}{later}"] if self.rows == ONE_ROW or self.within is not None else []
        return Link(same, meets=" AND ".join(meets) or "true")

    def made_from(self, n: int, column: str) -> Derivation | None:
        """Return the source of a column: the values of its slot, or a passed column."""
        slot = next((slot for slot in self.slots if slot.column.name == column), None)
        key = next((key for key in self.keys if key.column.name == column), None)
        if key is not None:
            return Derivation.by(key.expression)
        if slot is None:
            return super().made_from(n, column)
        return Derivation(columns_in([slot.value] if not isinstance(slot, MatchFunction) else []), AGGREGATION)

    def decided_by(self, n: int) -> Iterable[str]:  # noqa: ARG002 - one input
        """Return the keys, and the columns of the conditions."""
        slots = (slot for condition in self.conditions for slot in condition.slots)
        values = (slot.value for slot in slots if not isinstance(slot, MatchFunction))
        return columns_in([*(key.expression for key in self.keys), *values])

    def required_columns(self, n: int, wanted: Collection[str]) -> Iterable[str]:  # noqa: ARG002 - one input
        """Return the passed columns, and those of keys, conditions and measures."""
        return {*self.passed, *columns_in(self.row_expressions())}

    def row_expressions(self) -> Iterable[exp.Expr]:
        """Return the keys, and the values of conditions and measures."""
        return (*(key.expression for key in self.keys), *self.values.values())

    def with_details(self) -> Match:
        """Return it with the variables of the rows, which a trace shows."""
        what = TAKEN if self.rows == ONE_ROW else CLASSIFIER
        return replace(self, slots=(*self.slots, MatchFunction(Column(TAKEN_AS, "STRING"), what, tuple(self.numbers))))

    @classmethod
    def holding(cls, fields: Mapping[str, Any], control: Mapping[str, Any]) -> str:
        """Return the oldest match that is not certain, and what decides it."""
        oldest = control.get("open")
        if not oldest:
            return ""
        key = f" of {oldest['key']}" if oldest["key"] else ""
        what = (
            f"the match of PATTERN ({fields['pattern']}) that may begin with the row{key} at {to_text(oldest['since'])}"
        )
        decides = f", a bound of {to_text(oldest['until'])}" if oldest["until"] < END else ""
        return f"{what} is open: a further row{key}{decides} or the end of the stream decides it"

    def null_at_first(self, name: str) -> bool:  # noqa: ARG002 - of any
        """Return False: nothing waits for a first row."""
        return False

    def typed(self, rows: Callable[[Operator], Frame]) -> Frame:
        """Return an empty Frame with the slots."""
        given = rows(self.input)
        read = {slot.column.name: to_spark(slot.typed) for slot in self.slots if not isinstance(slot, MatchFunction)}
        functions = [slot.column for slot in self.slots if isinstance(slot, MatchFunction)]
        nulls = [f"CAST(NULL AS {column.type}) AS {quoted(column.name)}" for column in functions]
        keys = [f"{to_spark(key.expression)} AS {quoted(key.column.name)}" for key in self.keys]
        return beside(given, read, given.selectExpr("*", *keys, *nulls))

    # -- the pattern ---------------------------------------------------------------------

    @cached_property
    def machine(self) -> Automaton:
        """Return its automaton."""
        return automaton(parse(self.pattern))

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Return its variables by name, in upper case."""
        return {name: n for n, name in enumerate(variables(parse(self.pattern)))}

    @cached_property
    def clause(self) -> Clause:
        """Return the clause that the matcher runs."""
        to = frozenset(self.numbers[name] for name in self.to)
        skip: To = self.skip  # type: ignore[assignment] # one of these
        behind = max([0, *(slot.move for slot in self.slots if isinstance(slot, Pick))])
        return Clause(self.machine, self.within, skip, to, behind, self.rows != ONE_ROW)

    @cached_property
    def picks(self) -> tuple[Pick, ...]:
        """Return the picks of conditions and measures."""
        slots = (*(slot for condition in self.conditions for slot in condition.slots), *self.slots)
        return tuple(slot for slot in slots if isinstance(slot, Pick))

    @cached_property
    def reach(self) -> int:
        """Return how many rows before a start may be read."""
        return max([0, *(-pick.move for pick in self.picks)])

    @cached_property
    def ahead(self) -> int:
        """Return how many rows after a row its conditions read."""
        slots = (slot for condition in self.conditions for slot in condition.slots)
        return max([0, *(slot.move for slot in slots if isinstance(slot, Pick))])

    @cached_property
    def span(self) -> Span:
        """Return how long rows and partitions are kept."""
        anchors = {part.first for part in parse(self.pattern).walk() if isinstance(part, Anchor)}
        waits = max(self.ahead, self.clause.behind, int(False in anchors))
        if self.expires is not None:
            gap = self.expires + 1
            rows = self.within if self.within is not None else None
            if rows is None and self.machine.endless() is None:
                rows = self.machine.longest() * gap
            more = (self.reach + waits) * gap
            return Span(END if rows is None else rows + more, gap)
        counts = any(isinstance(slot, MatchFunction) and slot.what == NUMBER for slot in self.slots)
        if self.within is None or self.reach or waits:
            return Span(END, END)
        return Span(self.within, END if counts or True in anchors else self.within)

    # -- rows -----------------------------------------------------------------------------

    @cached_property
    def values(self) -> dict[str, exp.Expr]:
        """Return the values computed for each row, by their text."""
        slots = (*(slot for condition in self.conditions for slot in condition.slots), *self.slots)
        return {to_spark(slot.value): slot.value for slot in slots if not isinstance(slot, MatchFunction)}

    @cached_property
    def arguments(self) -> dict[str, str]:
        """Return the columns of these values in kept rows, by text."""
        return {text: f"__a{number}" for number, text in enumerate(self.values)}

    @property
    def names(self) -> tuple[str, ...]:
        """Return the columns of its keys."""
        return tuple(key.column.name for key in self.keys)

    @property
    def sorting(self) -> tuple[str, ...]:
        """Return the columns that order the keys, even if these columns change above."""
        return tuple(f"{SORTED_KEY}{number}" for number in range(len(self.keys)))

    @property
    def _places(self) -> tuple[str, ...]:
        return (*self.names, KEY_HASH, AT, DUE)

    @property
    def _rows(self) -> Kept:
        return Kept(DUE, (*self._places, POSITION, *self.arguments.values(), *self.passed), ROWS, counted="waiting")

    @property
    def _partitions(self) -> Kept:
        return Kept(DUE, (*self._places, *PARTITION), PARTITIONS, waits=False)

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Find matches in new and kept rows; keep rows that are not decided."""
        delta = deltas[0]
        clock = least(delta.clocks.values())
        gap = None if self.expires is None else self.expires + 1
        memory = Memory(tick, self, self.names, self._rows, self._partitions, self.span, self.reach, gap)
        match_tick = MatchTick(tick, self, memory, Tester(tick.spark))
        if delta.rows is not None:
            type_slots(tick, self, delta.rows)
        match_tick.at(self._fresh(tick, delta), clock)
        memory.forget(clock)
        lowest, oldest, waiting = memory.standing(clock)
        control = tick.remember(self, bound=clock, least=lowest, open=oldest, waiting=waiting)
        rows = match_tick.rows()
        return Delta(rows, self.promises([delta.clocks], control))

    def _fresh(self, tick: Tick, delta: Delta) -> pa.Table | None:
        """Return the new rows in stream order; ``None`` if there are none."""
        if delta.rows is None:
            return None
        texts = [f"{to_spark(value)} AS {self.arguments[text]}" for text, value in self.values.items()]
        keys = [f"{to_spark(key.expression)} AS {key.column.name}" for key in self.keys]
        at = f"unix_micros({ROWTIME}) AS {AT}"
        tick.describe(self, "rows in stream order")
        rows = selected(tick, delta.rows, [*map(quoted, self.passed), POSITION, at, *keys, *texts])
        table = in_stream_order(rows.toArrow())
        if not table.num_rows:
            return None
        hashed = hashes([whole(table[name]) for name in self.names]) if self.keys else np.zeros(len(table), np.int64)
        return table.append_column(KEY_HASH, pa.array(hashed))


def type_slots(tick: Tick, node: Match, rows: Frame) -> None:
    """Store the types; a type that Spark refuses is refused here."""
    if tick.control(node).types:
        return
    tests = [slot for condition in node.conditions for slot in condition.slots]
    slots: list[Slot] = [*node.slots, *tests]
    read = [slot for slot in slots if not isinstance(slot, MatchFunction)]
    given = schema_of(rows, {slot.column.name: to_spark(slot.value) for slot in read})
    typed = schema_of(rows, {slot.column.name: to_spark(slot.typed) for slot in read})
    kinds = {field.name: field.dataType.simpleString() for field in given}
    for slot in read:
        if not isinstance(slot, Fold):
            continue
        kind = kinds[slot.column.name]
        if not takes(slot.function, kind):
            what = f"{node.name}: {to_rowtime(slot.typed)} over the rows of a match does not take {kind.upper()}"
            raise refuse("R107", what, "Cast the argument, for example to DOUBLE or DECIMAL(18, 2).")
    columns = [*schema_of(rows, {key.column.name: to_spark(key.expression) for key in node.keys}), *given]
    if any(has_collation(column.dataType) for column in columns):
        what = f"{node.name}: MATCH_RECOGNIZE does not support text with a collation yet"
        raise refuse("R190", what, "Give the text the collation UTF8_BINARY.")
    types = {field.name: type_text(field.dataType) for field in typed}
    types |= {slot.column.name: slot.column.type for slot in slots if isinstance(slot, MatchFunction)}
    tick.remember(node, types=types or {"": ""})
