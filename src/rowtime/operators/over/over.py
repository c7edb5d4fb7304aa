"""OVER: for each row, functions over the rows before it and the row itself.

Semantics 5. For each row that comes in, one row is emitted with the same rowtime, as soon as it is next in stream
order. The frame contains the row and rows before it in stream order, so a row sees only those of its ties that arrived
before it (semantics 12). Windows over the same keys whose rows are kept in the same way are computed together
(`kernels.windowed`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from sqlglot import exp

from rowtime.core.clock import least
from rowtime.core.columns import ASKED_AT, AT, BROKEN, DUE, KEY_HASH, POSITION, RANGE_VALUE, ROWTIME, SEEN, WRITER
from rowtime.core.counts import counted
from rowtime.core.errors import Failure, Problem, refuse
from rowtime.core.fields import Micros
from rowtime.core.time import BEGINNING, END
from rowtime.expr.conditions import columns_in
from rowtime.expr.facts import Fact
from rowtime.frames.kinds import type_text
from rowtime.frames.typed import beside, schema_of
from rowtime.kernels.exact import Overflow
from rowtime.kernels.hashes import hashes
from rowtime.kernels.window_functions import Count, Distinct, Extreme, Nth
from rowtime.kernels.windowed import Answer, Wanted, Windows, takes, whole
from rowtime.operators.contract import AGGREGATION, Delta, Derivation, Link, Operator, Shape, Tick, Unary, quoted
from rowtime.operators.contract.requirement import NUMBERED
from rowtime.operators.contract.state import Kept, Route, Segment, StateNote
from rowtime.operators.over.over_calls import Call, OverControl, RunningMark
from rowtime.operators.over.over_memory import HEADS, ROWS, Memory
from rowtime.operators.over.over_rows import in_stream_order
from rowtime.operators.over.slices import compute, slices_of
from rowtime.operators.rows.attempt import selected
from rowtime.operators.rows.collations import has_collation, keyed, paired
from rowtime.operators.rows.ends import Ends
from rowtime.operators.rows.exact_sums import average
from rowtime.operators.rows.lifetimes import BEGINS
from rowtime.operators.rows.select import Item
from rowtime.operators.rows.values import remembered
from rowtime.sql.generate import to_rowtime, to_spark

if TYPE_CHECKING:
    from rowtime.frames.frame import Frame

ONE = "1"  # the argument of COUNT(*)


@dataclass(frozen=True)
class Over(Unary):
    """``calls`` over the rows of each value of ``keys``; ``passed`` columns are passed through.

    ``order``: what RANGE measures, an ascending function of the rowtime. ``closers``: the keys that are such functions;
    a value that time has left never comes back. ``expires`` (µs): a key starts anew after this time without a row.
    """

    keys: tuple[Item, ...]
    calls: tuple[Call, ...]
    passed: tuple[str, ...]
    order: exp.Expr | None = None
    closers: tuple[int, ...] = ()
    expires: Micros | None = None

    control: ClassVar = OverControl
    kind: ClassVar[str] = "over"
    decides: ClassVar[str] = "WINDOW"
    needs: ClassVar = (NUMBERED,)  # frames are about rows in order

    def keeps(self) -> tuple[StateNote, ...]:
        """Return rows by time or by number, and accumulators per key."""
        windows, until = self.windows, "the stream ends"
        if self.closers:
            until = "time leaves the period of the key"
        elif self.expires is not None:
            until = f"the key has had no row for {timedelta(microseconds=self.expires)}"
        each = " per key" if self.keys else ""
        by = "keys" if self.keys and until == "the stream ends" else "time" if self.keys else ""
        back, kept = timedelta(microseconds=windows.span or 0), []
        if windows.timed:
            kept.append(self._rows.noted("rows", f"the bound is {back} past them"))
        elif windows.span is not None:
            kept.append(self._rows.noted(f"the last rows{each}, back to {back}", until, by or "time"))
        if windows.rows_kept:
            kept.append(self._rows.noted(f"{counted(windows.rows_kept, 'rows')}{each}", until, by or "rows"))
        if running := [call.function for call in windows.calls if call.running]:
            last = all(isinstance(function, Nth) for function in running)
            calls = f"one accumulator per call{' and key' if self.keys else ''}"
            what = f"{counted(len(running), 'rows')}{each}" if last else calls
            kept.append(self._heads.noted(what, until, by or "one"))
        return tuple(kept)

    def emits(self) -> Shape:
        """Return the passed columns, and those of the calls; still in stream order."""
        below = self.input.emits()
        columns_below = {column.name: column for column in below.columns}
        columns = (*(columns_below[name] for name in self.passed), *(c.column for c in self.calls))
        return replace(below.without_origin(), columns=columns, event=None)

    def link(self, n: int) -> Link:  # noqa: ARG002 - one input
        """Return the rows of the same keys up to the row, as far back as the frames go."""
        keys_above = [
            k for k in self.keys if {c.name for c in k.expression.find_all(exp.Column)} <= {*self.passed, ROWTIME}
        ]
        same = tuple((to_spark(key.expression), to_spark(key.expression)) for key in keys_above)
        spans = [call.frame.lower if call.frame.by_range else None for call in self.calls]
        far = self.order is None and all(spans)
        lowest = f" AND {BEGINS} >= {ASKED_AT} - {max(filter(None, spans), default=0)}L" if far else ""
        return Link(same, meets=f"{BEGINS} <= {ASKED_AT}{lowest}")

    def made_from(self, n: int, column: str) -> Derivation | None:
        """Return the source of a column: the argument of a call, or a passed column."""
        call = next((call for call in self.calls if call.column.name == column), None)
        return super().made_from(n, column) if call is None else Derivation(columns_in([call.argument]), AGGREGATION)

    def decided_by(self, n: int) -> Iterable[str]:  # noqa: ARG002 - one input
        """Return the keys, and the order of the rows."""
        return columns_in([self.order, *(key.expression for key in self.keys)])

    def row_expressions(self) -> Iterable[exp.Expr]:
        """Return the keys, and the arguments of the calls."""
        arguments = (call.argument for call in self.calls if not isinstance(call.argument, exp.Star))
        return (*(key.expression for key in self.keys), *arguments)

    def files_are_results(self, *, ordered: bool, at_once: bool) -> bool:  # noqa: ARG002 - in any case
        """Return True: the rows are in stream order."""
        return True

    def null_at_first(self, name: str) -> bool:
        """Return True for a call whose frame may be empty."""
        call = next((call for call in self.calls if call.column.name == name), None)
        return call.may_be_empty() if call is not None else self.input.null_at_first(name)

    def typed(self, rows: Callable[[Operator], Frame]) -> Frame:
        """Return an empty Frame with the calls."""
        return beside(rows(self.input), {call.column.name: to_spark(call.typed) for call in self.calls})

    def marks(self) -> Mapping[str, tuple[RunningMark, Fact]]:
        """Return the marks of its calls."""
        return {call.mark: (RunningMark(call.mark), call.column.fact) for call in self.calls if call.mark}

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Compute the calls over new and kept rows; keep the rows that later rows need."""
        delta = deltas[0]
        memory = Memory(tick, self, self._clock(tick, least(delta.clocks.values())))
        rows: Frame | None = None
        files: Sequence[Segment] = ()
        if delta.rows is not None:
            control = type_calls(tick, self, delta.rows)
            collated = frozenset(control.collated)
            taken = tick.adopted_as(self) if control.straight and not tick.trying else None
            given = self._rows_of(
                tick, delta, self.emits().internals if taken is None else (ROWTIME, POSITION), collated
            )
            fresh, answer = self._answer(memory, given, control) if given.num_rows else (given, None)
            if answer is not None and taken is not None:
                files = to_files(tick, self, fresh, answer, taken)
            elif answer is not None:
                rows = to_spark_rows(tick, self, fresh, answer, control.types)
        memory.finish()
        return Delta(rows, delta.clocks, delta.lowest, delta.highest, files=tuple(files) or None)

    def _rows_of(self, tick: Tick, delta: Delta, internals: Sequence[str], collated: frozenset[str]) -> pa.Table:
        """Return the rows in stream order, with the values of keys and arguments."""
        arguments = self._computed_values(collated)
        assert delta.rows is not None
        rows = self._wanted(tick, delta.rows, internals, arguments)
        if collated:
            keys = {key.column.name for key in self.keys}
            rows = paired(keyed(rows, collated & keys), collated - keys)
        tick.describe(self, "rows in stream order")
        return self._completed(in_stream_order(rows.toArrow()), arguments)

    @cached_property
    def windows(self) -> Windows:
        """Return the calls in the form in which they are computed."""
        names: dict[str, str] = {}
        calls = []
        for call in self.calls:
            argument = names.setdefault(to_spark(call.argument), f"__a{len(names)}")
            calls.append(Wanted(call.column.name, argument, call.function, call.frame))
        return Windows(tuple(key.column.name for key in self.keys), tuple(calls), self.expires)

    # -- rows of the tick ---------------------------------------------------------------

    @cached_property
    def values(self) -> dict[str, exp.Expr]:
        """Return keys and arguments by their names in the computation."""
        arguments = {to_spark(call.argument): call.argument for call in self.calls}
        keys = {key.column.name: key.expression for key in self.keys}
        return keys | {f"__a{number}": value for number, value in enumerate(arguments.values())}

    @cached_property
    def _given(self) -> dict[str, str]:
        """Return the values that are passed columns already: name in the computation -> column."""
        known = {} if self.closers else {quoted(name): name for name in self.passed}
        return {name: known[text] for name, text in self._texts.items() if text in known}

    @cached_property
    def _texts(self) -> dict[str, str]:
        return {name: to_spark(value) for name, value in self.values.items()}

    def _computed_values(self, collated: frozenset[str]) -> dict[str, exp.Expr]:
        """Return the values to compute besides the passed columns."""
        left = (n for n in self.values if n in collated or n not in self._given)
        return {n: self.values[n] for n in left if self._texts[n] != ONE}

    def _wanted(self, tick: Tick, rows: Frame, internals: Sequence[str], arguments: Mapping[str, exp.Expr]) -> Frame:
        """Return the columns to compute: passed columns, keys, arguments and times, each once."""
        texts = [f"{self._texts[name]} AS {name}" for name in arguments]
        if self._measured is not None:
            texts.append(f"{self._measured} AS {RANGE_VALUE}")
        rows = selected(tick, rows, [*map(quoted, self.passed), *internals, *texts, f"{ROWTIME} AS {SEEN}"])
        if self.closers:
            rows = rows.selectExpr("*", f"{self._period_end} AS {DUE}")
        return rows.drop(SEEN)

    def _completed(self, rows: pa.Table, arguments: Mapping[str, exp.Expr]) -> pa.Table:
        """Return the rows with columns that exist under other names, and values that are computed here."""
        for name in self.values:
            if name in arguments:
                continue
            if name in self._given:
                rows = rows.append_column(name, rows[self._given[name]])
            else:
                rows = rows.append_column(name, pa.array(np.ones(rows.num_rows, np.int32)))
        if self.keys:
            hashed = hashes([whole(rows[key.column.name]) for key in self.keys])
            rows = rows.append_column(KEY_HASH, pa.array(hashed))
        rows = rows.append_column(AT, rows[ROWTIME].cast(pa.int64()))
        if self.closers:
            return rows
        dead = np.full(rows.num_rows, END)
        if self.windows.timed:
            dead = np.asarray(rows[RANGE_VALUE if self.order is not None else AT]) + (self.windows.span or 0) + 1
        return rows.append_column(DUE, pa.array(dead))

    @property
    def _measured(self) -> str | None:
        return None if self.order is None else f"unix_micros(CAST({to_spark(self.order)} AS TIMESTAMP))"

    @property
    def _period_end(self) -> str:
        """Return the clock from which a row is not needed any more, if the key is a period, over `_wanted`."""
        ends = [Ends(tuple(self.keys[number] for number in self.closers)).end_text]
        if self.windows.timed:
            measured = f"unix_micros({ROWTIME})" if self.order is None else RANGE_VALUE
            ends.append(f"{measured} + {(self.windows.span or 0) + 1}L")
        return ends[0] if len(ends) == 1 else f"least({', '.join(ends)})"

    def _answer(self, memory: Memory, piece: pa.Table, control: OverControl) -> tuple[pa.Table, Answer | None]:
        tick = memory.tick
        fresh, answer = answered(tick, self, piece, lambda what: memory.read(what, piece))
        if answer is None:
            return fresh, None
        memory.keep(answer, min(memory.clock, self._reached(fresh)))
        for call in self.calls:
            if call.mark:
                kind = control.types[call.column.name]
                last = remembered(answer.values[call.column.name][-1], kind)
                tick.remember(RunningMark(call.mark), mark=last, type=kind)
        return fresh, answer

    @staticmethod
    def _reached(fresh: pa.Table) -> int:
        """Return the clock after these rows, if more rows of the tick follow."""
        last = (fresh[name][-1].as_py() for name in (AT, RANGE_VALUE) if name in fresh.column_names)
        return int(min(last))

    # -- kept rows ----------------------------------------------------------------------

    @property
    def _rows(self) -> Kept:
        measured = () if self.order is None else (RANGE_VALUE,)
        counted = "" if self.windows.timed else "held_rows"
        return Kept(DUE, (*self._places, *measured, *self.windows.arguments), ROWS, counted=counted)

    @property
    def _heads(self) -> Kept:
        parts = [call.parts for call in self.windows.calls if call.running]
        every, some = (sorted(set().union(*names)) for names in zip(*parts, strict=True))
        return Kept(DUE, (*self._places, *every), HEADS, tuple(some), counted="held_heads")

    @property
    def _places(self) -> tuple[str, ...]:
        return (POSITION, AT, DUE, *self.windows.keys, *([KEY_HASH] if self.keys else []))

    def _clock(self, tick: Tick, bound: int) -> int:
        """Return the clock up to which no row is needed any more: the bound, or its value if RANGE measures another."""
        control = tick.control(self)
        if self._measured is None or not BEGINNING < bound < END:
            return bound
        if control.bound != bound:
            # Our own names and numbers, and an expression that was parsed and bound.
            query = f"SELECT {self._measured} FROM (SELECT timestamp_micros({bound}L) AS {ROWTIME})"  # noqa: S608
            control = tick.remember(self, bound=bound, clock=min(bound, tick.scalar(query)))
        return control.clock


# Sums and averages of an OVER that overflow their type: such a row is refused, and the others continue without it.
#
# A refused row is in no frame of a later one, as if it had not come. So no kept sum overflows, and which rows are
# refused follows from the order of the rows, one key at a time.

ReadState = Callable[[str], pa.Table | None]


def answered(tick: Tick, node: Over, fresh: pa.Table, read: ReadState) -> tuple[pa.Table, Answer | None]:
    """Return the new rows to emit, and their values; ``None`` if all are refused."""
    heads, kept, refused = read("heads"), read("rows"), list[pa.Table]()
    answer = None
    while fresh.num_rows:
        try:
            slices = 1 if tick.trying else slices_of(fresh.num_rows)
            answer = compute(node.windows, heads, kept, fresh, slices)
            break
        except Overflow as wrong:
            if not tick.trying or tick.stops:
                hint = "Cast the argument to a wider type, for example DECIMAL(38, 0)."
                raise Failure(Problem("R507", f"{node.name}: {wrong}", hint=hint)) from wrong
            refused.append(_refused_rows(node, fresh.filter(pa.array(wrong.beyond)), wrong.name))
            fresh = fresh.filter(pa.array(~np.asarray(wrong.beyond)))
    if refused:
        gone = tick.frame(node, pa.concat_tables(refused))
        tick.refuse_computed(node, gone, BROKEN)
    return fresh, answer


def _refused_rows(node: Over, rows: pa.Table, name: str) -> pa.Table:
    call = next(call for call in node.calls if call.column.name == name)
    names = pa.array([f"{to_rowtime(call.typed)} OVER (…)"] * rows.num_rows, pa.string())
    return rows.select([*node.passed, ROWTIME, WRITER, POSITION]).append_column(BROKEN, names)


# The output of an OVER: the types that Spark gives its calls, and the rows with their values.
#
# Rows go to Spark, which casts the values; or directly to the files of a sink that takes them over, if every value has
# its type already.


def type_calls(tick: Tick, node: Over, rows: Frame) -> OverControl:
    """Let Spark type the calls once, and keep the types; a type that Spark refuses is refused here."""
    control = tick.control(node)
    if control.types:
        return control
    typed = schema_of(rows, {call.column.name: to_spark(call.typed) for call in node.calls})
    given = schema_of(rows, {call.column.name: to_spark(call.argument) for call in node.calls})
    kinds = [field.dataType.simpleString() for field in given]
    for call, kind in zip(node.calls, kinds, strict=True):
        if not takes(call.function, kind):
            what = f"{node.name}: {to_rowtime(call.typed)} over a window does not take {kind.upper()}"
            raise refuse("R107", what, "Cast the argument, for example to DOUBLE or DECIMAL(18, 2).")
    schema = schema_of(rows, {name: to_spark(value) for name, value in node.values.items()})
    collated = [field.name for field in schema if has_collation(field.dataType)]
    for name in collated:
        if schema[name].dataType.typeName() != "string":
            what = f"{node.name}: {to_rowtime(node.values[name])} holds text with a collation inside of another value"
            raise refuse("R107", what, "Use the text itself, or give it the collation UTF8_BINARY.")
    plain = (isinstance(call.function, Count | Distinct | Extreme | Nth) for call in node.calls)
    # The kernel gives the same type as Spark.
    straight = all(p or not kind.startswith(("decimal", "void")) for p, kind in zip(plain, kinds, strict=True))
    types = {field.name: type_text(field.dataType) for field in typed}
    return tick.remember(node, collated=collated, types=types, straight=straight)


def to_files(tick: Tick, node: Over, rows: pa.Table, answer: Answer, columns: Mapping[str, str]) -> Sequence[Segment]:
    """Write the rows to files of a sink, whose ``columns`` are columns of the result with other names."""
    for name, column in answer.values.items():
        rows = rows.append_column(name, column)
    return tick.write(node, rows, {"complete": Route(0, columns, AT)})["complete"]


def to_spark_rows(tick: Tick, node: Over, rows: pa.Table, answer: Answer, types: Mapping[str, str]) -> Frame:
    """Return the rows with their values as a Frame."""
    shape = node.emits()
    table = rows.select([*node.passed, *shape.internals])
    for name, column in answer.values.items():
        table = table.append_column(name, column)
    typed = [_typed(call.column.name, types, answer.values) for call in node.calls]
    return tick.frame(node, table).selectExpr(*map(quoted, node.passed), *typed, *shape.internals)


def _typed(name: str, types: Mapping[str, str], values: Mapping[str, Any]) -> str:
    value = quoted(name)
    if f"{name}:n" in values:
        value = average(value, quoted(f"{name}:n"), f"decimal(38,{values[name].type.scale})", types[name])
    return f"CAST({value} AS {types[name]}) AS {quoted(name)}"
