"""The trace of an output row: its causes, operator by operator, from the sink down to the streams.

Semantics 9.5. Nothing is recorded for it: the recorded input of the checkpoint is run again, tick by tick, in a scratch
checkpoint, where a tap keeps the data on each edge. Then the rows that may have contributed to the chosen one are
looked up from edge to edge, by the links of operators (`Operator.link`).
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException

from rowtime.audit.replay import Part, recorded, replay
from rowtime.audit.taps import Taps, at_places, first_in_order, in_order, where, with_spans
from rowtime.audit.trace_edges import with_edges
from rowtime.audit.traced import MOST, Trace, Traced, Values
from rowtime.core.columns import (
    ABOVE_TICK,
    ASKED_AT,
    ASKED_FROM,
    ASKED_UPTO,
    ASKED_VERSION,
    CHANGED,
    CHANGED_BY,
    FIRE,
    FIRE_CHANGE,
    PANE,
    POSITION,
    ROWTIME,
    STOP,
    TRACE_NUMBER,
    TRACE_ROW,
    TRACE_TICK,
    WEIGHT,
)
from rowtime.core.errors import refuse
from rowtime.core.stores import ObjectPlace, place_of
from rowtime.core.time import to_micros
from rowtime.frames.frame import Frame
from rowtime.frames.kinds import arrow_of
from rowtime.operators.contract import Link, Operator, quoted, walk
from rowtime.operators.rows.lifetimes import BEGINS, is_lifetimes
from rowtime.operators.sinks.sink import Sink
from rowtime.plan.program import Program
from rowtime.runtime.analysis import words_of
from rowtime.runtime.plain_rows import plain_rows
from rowtime.state.checkpoint import Checkpoint

if TYPE_CHECKING:
    from rowtime.api.pipeline import Pipeline
    from rowtime.operators.contract import Fired


def trace(
    pipeline: Pipeline,
    checkpoint: str | Path | ObjectPlace,
    row: Values | str | None = None,
    *,
    number: int | None = None,
    sink: str | None = None,
) -> Trace:
    """What made a row of an output: the one with a sequence ``number``, or the first that fits ``row``.

    That is a condition over the columns of the output, or values of some of them. ``sink`` may be left out where
    there is one. Raises ``Refused``: R409 for a row that is not there, and what `replay` raises.
    """
    program = pipeline.compile(checkpoint, imports=True)
    output = _sink(program, sink)
    if number is not None and not output.ordered:
        what = f"the rows of {output.name} have no order, so a number does not identify a row"
        raise refuse("R409", what, "Give a condition on its columns instead of a number.")
    (alone,) = detailed([replace(output, format="memory", options=(), ordered=True)])
    place = Checkpoint(place_of(checkpoint))
    parts = recorded_by_tick(place)
    with tempfile.TemporaryDirectory(prefix="rowtime-trace-") as folder:
        engine = replay(pipeline, place, Path(folder), lambda program: replace(program, sinks=(alone,)))
        taps = engine.tap = Taps(engine.spark, Path(folder) / "taps")
        wanted = Sought(alone, number, row)
        try:
            for number_of, part in enumerate(engine.run(parts), 1):
                taps.ticks.append(part.until["tick"])
                after = engine.entry["control"][alone.name]["sequence"]
                last = number_of == len(parts)
                chosen = wanted.among(taps, after) if last or wanted.is_due(taps, after) else None
                if chosen is not None:
                    tracing = Tracing(engine.program, alone, taps)
                    return with_edges(tracing.trace(chosen), engine.program, tracing)
        finally:
            engine.stop()
    raise refuse("R409", f"{output.name} has no row {wanted}", f"It has the rows 0 to {wanted.rows - 1}.")


def recorded_by_tick(place: Checkpoint) -> Sequence[Part]:
    """Return the recorded input of a checkpoint, tick by tick; raises ``Refused`` (R407) if its script has changed."""
    parts = recorded(place, by_tick=True)
    if place.plan is not None and place.plan.since is not None:
        what = "the SQL of this checkpoint has changed, and a trace cannot cross the change"
        raise refuse("R407", what, "Trace it with a checkpoint that has read the same input with one script.")
    return parts


def _sink(program: Program, name: str | None) -> Sink:
    """Return the sink of a name, of a query's or a pump's name; or the only one."""
    sinks = [s for s in program.sinks if name is None or name.lower() in (s.name, s.name.rsplit(".", 1)[0])]
    if len(sinks) != 1:
        names = ", ".join(sink.name for sink in program.sinks)
        which = "the output is not specified" if name is None else f"there is no output {name}"
        raise refuse("R409", which, f"There are {names}.")
    return sinks[0]


class Sought:
    """The wanted row; ``rows`` and ``ticks``: how many there were at the last search."""

    def __init__(self, sink: Sink, number: int | None, row: Values | str | None) -> None:
        self._sink, self._number, self._row = sink, number, row
        self.rows = self.ticks = 0

    def __str__(self) -> str:
        if self._number is not None:
            return str(self._number)
        return f"where {self._row}" if isinstance(self._row, str) else f"with {dict(self._row or {})}"

    def is_due(self, taps: Taps, after: int) -> bool:
        """Return True if a search after this tick is worthwhile; ``after``: rows so far.

        A row with a number is in the tick that reaches it. Others are searched in ever larger groups of ticks.
        """
        ticks = len(taps.ticks)
        if self._number is None:
            return ticks & (ticks - 1) == 0
        if after > self._number:
            return True
        self.rows, self.ticks = after, ticks
        return False

    def among(self, taps: Taps, after: int) -> Frame | None:
        """Return the first match, with its number, in the ticks since the last search; ``after``: rows so far."""
        (first, self.rows), (since, self.ticks) = (self.rows, after), (self.ticks, len(taps.ticks))
        if first == after or (self._number is not None and not first <= self._number < after):
            return None
        rows = taps.rows(self._sink.input.name, since)
        assert rows is not None
        rows = in_order(rows, [TRACE_TICK, *self._sink.input.emits().order], TRACE_NUMBER, first)
        rows = rows.selectExpr("*", f"{BEGINS} AS {ASKED_FROM}", f"{BEGINS} + 1 AS {ASKED_UPTO}")
        time = [f"{ROWTIME} AS {quoted(self._sink.rowtime)}"] if self._sink.rowtime else []
        try:
            ordered = first_in_order(self._fitting(rows.selectExpr("*", *time)), [TRACE_NUMBER])
        except AnalysisException as wrong:
            message = words_of(wrong).split(" Did you mean", 1)[0]  # of hidden columns
            hint = f"The output has {', '.join(self._sink.columns)}."
            raise refuse("R409", f"no row can be found with this condition: {message}", hint) from None
        row = ordered.select(*map(quoted, rows.columns))
        row.share()
        return row if row.count() else None

    def _fitting(self, rows: Frame) -> Frame:
        """Return the rows that are wanted."""
        if self._number is not None:
            return rows.kept(f"{TRACE_NUMBER} = {self._number}L")
        if isinstance(self._row, str):
            return where(rows, self._row)
        kinds = {name.lower(): kind for name, kind in rows.fields}
        wanted = dict(self._row or {})
        if unknown := next((name for name in wanted if name.lower() not in kinds), None):
            raise refuse("R409", f"the output has no column {unknown}", f"It has {', '.join(self._sink.columns)}.")
        fields = [(f"__wanted{n}", kinds[name.lower()]) for n, name in enumerate(wanted)]
        try:
            arrays = [
                pa.array([value], arrow_of(kind)) for value, (_, kind) in zip(wanted.values(), fields, strict=True)
            ]
        except (pa.ArrowInvalid, pa.ArrowTypeError):  # no row has a value of another type
            return rows.limit(0)
        one = Frame.of(rows.sparkSession, pa.table(arrays, [name for name, _ in fields]), fields)
        same = (f"{quoted(name)} <=> __wanted{n}" for n, name in enumerate(wanted))
        return rows.joined(one, " AND ".join(same), "left_semi") if wanted else rows


class Tracing:
    """Follows a row of ``sink`` down the edges of ``taps``."""

    def __init__(self, program: Program, sink: Sink, taps: Taps) -> None:
        self._program, self._sink, self._taps = program, sink, taps
        self.rows_at: Callable[[Sequence[tuple[int, int]]], Frame] = taps.places
        self.reached: dict[str, pa.Table] = {}
        """The traced rows of each operator, with the spans asked for."""

    def trace(self, chosen: Frame) -> Trace:
        """Return the rows that may have contributed to the chosen one, operator by operator."""
        row = plain_rows(chosen.toArrow())[0]
        places: dict[str, list[Frame]] = defaultdict(list)
        places[self._sink.input.name].append(chosen.select(TRACE_TICK, TRACE_ROW, ASKED_FROM, ASKED_UPTO))
        items = [*self.items(self._sink, [row]), *self.bound(self._sink, row[TRACE_TICK])]
        cut: list[str] = []
        for node in reversed(self._program.operators[:-1]):
            if node.name not in places:
                continue
            table = self.rows_of(node, places[node.name])
            if table is None:
                items += self.bound(node, row[TRACE_TICK])
                continue
            cut += [node.name] if table.num_rows > MOST else []
            rows = self.reached[node.name] = table.slice(0, MOST)
            items += [*self.items(node, plain_rows(rows)), *self.bound(node, row[TRACE_TICK])]
            for n, below in enumerate(node.inputs):
                match = self._match(node, n, rows) if rows.num_rows else None
                places[below.name] += [] if match is None else [match]
        kinds = {node.name: node.kind for node in self._program.operators}
        return Trace(self._sink.name, row[TRACE_NUMBER], tuple(items), kinds, tuple(cut))

    def _match(self, node: Operator, n: int, rows: pa.Table) -> Frame | None:
        """Return the places (`TICK`, `ROW`) of the n-th input's rows that may have made ``rows``, with their spans."""
        link, pairs = link_of(node, n), self.pairs(node, n, rows)
        if pairs is None:
            return None
        low, high = (ASKED_FROM, ASKED_UPTO) if STOP not in pairs.columns or link.narrows == "no" else (BEGINS, STOP)
        if STOP in pairs.columns and link.narrows == "meet":
            met = f"greatest({ASKED_FROM}, {BEGINS}) < least({ASKED_UPTO}, {STOP})"
            low = f"IF({met}, greatest({ASKED_FROM}, {BEGINS}), {BEGINS})"
            high = f"IF({met}, least({ASKED_UPTO}, {STOP}), {STOP})"
        return pairs.selectExpr(TRACE_TICK, TRACE_ROW, f"{low} AS {ASKED_FROM}", f"{high} AS {ASKED_UPTO}")

    def pairs(
        self, node: Operator, n: int, rows: pa.Table | Frame, *above_too: str, only: Frame | None = None
    ) -> Frame | None:
        """Return the n-th input's rows that may have made ``rows``, each with the spans of one row above.

        ``rows`` have the spans asked for; if a table, they are few; so are ``only`` these places below.
        ``above_too``: further columns of the row above, as Spark SQL with a name.
        """
        below, link = self._taps.rows(node.inputs[n].name), link_of(node, n)
        if below is None or link.meets == "false":
            return None
        fired = self._fired(link.fired, rows) if link.fired else []
        given = self._taps.frame(node.name, rows) if isinstance(rows, pa.Table) else rows
        above = given.selectExpr(
            *(f"{text} AS __above{k}" for k, (text, _) in enumerate(link.same)), f"{TRACE_TICK} AS {ABOVE_TICK}",
            f"{link.span[0]} AS {ASKED_FROM}", f"{link.span[1]} AS {ASKED_UPTO}",
            f"{BEGINS} AS {ASKED_AT}", f"{link.version} AS {ASKED_VERSION}",
            *fired, *above_too,
        )  # fmt: skip
        if only is not None:
            below = at_places(below, only)
        below = below.where(link.where).selectExpr(
            "*", *(f"{text} AS __below{k}" for k, (_, text) in enumerate(link.same))
        )
        like = [
            k for k in range(len(link.same)) if _comparable(above, f"__above{k}") and _comparable(below, f"__below{k}")
        ]
        above = above.drop(*(f"__above{k}" for k in range(len(link.same)) if k not in like)).distinct()
        on = [f"{TRACE_TICK} <= {ABOVE_TICK}", f"({link.meets})", *(f"__above{k} <=> __below{k}" for k in like)]
        on += [f"({TRACE_TICK} < __cut_tick OR {TRACE_TICK} = __cut_tick AND {POSITION} <= __cut)"] if fired else []
        test = " AND ".join(on)
        pairs = below.joined(above, test, "inner")
        return self._taken(link.fired, pairs) if link.fired else pairs

    def _fired(self, by: Fired, rows: pa.Table | Frame) -> list[str]:
        """Return up to which item each fire has rows, as columns: the tick and the position."""
        table = rows if isinstance(rows, pa.Table) else rows.select(FIRE).distinct().toArrow()
        fires = pc.unique(table[FIRE]).to_pylist()
        cuts = [self._taps.fires.cut(by.event, fire) for fire in fires]
        texts = (
            f"CASE {FIRE} {' '.join(f'WHEN {fire}L THEN {cut[n]}L' for fire, cut in zip(fires, cuts, strict=True))} END"
            for n in (0, 1)
        )
        return [f"{text} AS {name}" for text, name in zip(texts, ("__cut_tick", "__cut"), strict=True)]

    def _taken(self, by: Fired, pairs: Frame) -> Frame:
        """Return the rows of panes without those that these have refused."""
        rows = pairs.selectExpr(TRACE_TICK, POSITION, TRACE_ROW, f"{by.micros} AS t")
        seen = rows.distinct().limit(2 * MOST).toArrow()
        places = list(zip(seen[TRACE_TICK].to_pylist(), seen[POSITION].to_pylist(), strict=True))
        lost = self._taps.fires.refused(by.event, by.age, places, seen["t"].to_pylist())
        if not any(lost):
            return pairs
        rows = seen.filter(pa.array(lost))
        gone = list(zip(rows[TRACE_TICK].to_pylist(), rows[TRACE_ROW].to_pylist(), strict=True))
        return at_places(pairs, self._taps.places(gone), "left_anti")

    def rows_of(self, node: Operator, spans: Sequence[Frame]) -> pa.Table | None:
        """Return the rows at these places, and the spans asked for."""
        rows = self._taps.rows(node.name)
        if rows is None or not spans:
            return None
        places = reduce(lambda one, other: one.unionByName(other), spans)
        return with_spans(rows, places).limit(MOST + 1).toArrow()

    def items(self, node: Operator, rows: Sequence[Values]) -> Iterator[Traced]:
        """Yield rows of an operator for display, in their order."""
        events = is_lifetimes(node)
        shown = {name: name.removeprefix("__") for name in node.emits().names if name[:2] != "__" or name in CHANGED}
        ours = [name for name in (FIRE, PANE, FIRE_CHANGE) if name in node.emits().extra]  # panes fire in this order
        order = (
            (lambda r: (r[TRACE_TICK], r[ROWTIME], r[CHANGED_BY], r[WEIGHT] > 0, r[STOP]))
            if events
            else (lambda r: (r[TRACE_TICK], r[ROWTIME], r[POSITION], *(r[name] for name in ours)))
        )
        for row in sorted(rows, key=order):
            columns = {to: row[name] for name, to in shown.items()}
            kind = ("insert" if row[WEIGHT] > 0 else "retract") if events else "row"
            tick, at, until = self._taps.ticks[row[TRACE_TICK]], to_micros(row[ROWTIME]), row[STOP] if events else None
            item = Traced(node.name, tick, kind, at, until, columns, (row[TRACE_TICK], row[TRACE_ROW]))
            yield from [item] * (abs(row[WEIGHT]) if events else 1)

    def bound(self, node: Operator, tick: int) -> Iterator[Traced]:
        """Yield the bound after the row's tick, with the tick that reached it."""
        reached = [(at, bound) for at, bound in self._taps.bounds[node.name] if at <= tick]
        if reached:
            yield Traced(node.name, self._taps.ticks[reached[-1][0]], "bound", reached[-1][1])


def link_of(node: Operator, n: int) -> Link:
    """Return an operator's rule for its n-th input; for numbered changes of events, up to the change in question."""
    link = node.link(n)
    if is_lifetimes(node) and any(below.numbers_changes for below in walk(node.inputs[n])):
        return replace(link, version=CHANGED_BY, meets=f"({link.meets}) AND {CHANGED_BY} <= {ASKED_VERSION}")
    return link


def _comparable(rows: Frame, name: str) -> bool:
    """Return False for columns that Spark cannot compare."""
    kind = next(kind for column, kind in rows.fields if column == name).lower()
    return "map<" not in kind and "variant" not in kind


def detailed(sinks: Iterable[Sink]) -> tuple[Sink, ...]:
    """Return the outputs over operators that give these columns too; the others are the same objects."""
    copies: dict[str, Operator] = {}

    def below(value: Any) -> Any:
        if isinstance(value, tuple):
            parts = tuple(map(below, value))
            return parts if any(one is not other for one, other in zip(parts, value, strict=True)) else value
        return of(value) if isinstance(value, Operator) else value

    def of(node: Operator) -> Operator:
        if node.name not in copies:
            given = {field.name: getattr(node, field.name) for field in fields(cast("Any", node))}
            changed = {
                name: changed_value for name, value in given.items() if (changed_value := below(value)) is not value
            }
            copies[node.name] = (replace(cast("Any", node), **changed) if changed else node).with_details()
        return copies[node.name]

    return tuple(cast("Sink", of(sink)) for sink in sinks)
