"""Examines a tick row by row: finds the rows with an expression that fails, so that the others pass.

In ANSI mode one row whose expression cannot be computed (`10 / 0`, a text that is not a number) ends a whole query.
So a tick runs normally first, and only if it fails for a value is it run again like this. Then WHERE and the select
list of each row are tried (`operators.rows.attempt`), and a row for which one fails is refused as MALFORMED at the gate
of its query. Exactly the expressions are tried that a normal tick computes: a chain of views is tried as one query,
condition after condition, and for a view below groups only the columns that the groups need. So the refused rows depend
on the input, and not on what else a tick contains.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import MappingProxyType

from pyspark.errors import PySparkException
from sqlglot import exp

from rowtime.core.columns import BROKEN, POSITION, ROWTIME, WRITER
from rowtime.core.errors import causes
from rowtime.core.log import LOG
from rowtime.expr.conditions import col, columns_in, never_fails
from rowtime.frames.answers import ANSWERS
from rowtime.frames.catalyst import answered, part_of
from rowtime.frames.failures import of_a_value
from rowtime.frames.frame import Frame
from rowtime.frames.queries import Left, Uncomputed
from rowtime.frames.words import LEFT, Untranslated
from rowtime.kernels.exact import Overflow
from rowtime.operators.contract import Delta, Operator
from rowtime.operators.events.failing_events import refuse_events
from rowtime.operators.groups.finished import in_words
from rowtime.operators.rows.attempt import judged
from rowtime.operators.rows.conditions import kinds_of
from rowtime.operators.rows.lifetimes import is_lifetimes
from rowtime.plan.program import Program
from rowtime.plan.required_columns import columns_required
from rowtime.runtime.analysis import words_of
from rowtime.runtime.faults import innermost
from rowtime.runtime.tick import RunningTick
from rowtime.sql.generate import to_spark

EMPTY: Mapping[str, exp.Expr] = MappingProxyType({})


@dataclass(frozen=True)
class Chain:
    """The combined expressions of a chain of Selects over the rows of ``base``: conditions in order, columns by name.

    The parts that AND joins of the condition of one Select are together.

    ``columns`` is ``None`` if they are those of the base.
    """

    base: Delta
    conditions: tuple[tuple[exp.Expr, ...], ...] = ()
    columns: Mapping[str, exp.Expr] | None = None

    def over(self, node: exp.Expr) -> exp.Expr:
        """Return an expression over the columns as one over those of the base."""
        columns = self.columns
        if columns is None:
            return node
        return node.copy().transform(
            lambda part: (
                exp.paren(columns[part.name].copy()) if isinstance(part, exp.Column) and part.name in columns else part
            )
        )


class CloseLook:
    """The steps of one tick that refuse rows whose expressions fail; ``defers``: a Select below others only adds.

    With ON ERROR STOP the first such row ends the run.
    """

    def __init__(self, program: Program, *, defers: bool) -> None:
        self._stops = program.stops
        self._readers = _readers_of(program.operators)
        self._required = columns_required(program.operators)
        self._queries = {*program.catalog.views, *program.catalog.pumps}
        self._queries |= {sink.name.removesuffix(".result") for sink in program.sinks}
        self._defers = defers
        self._chains: dict[str, Chain] = {}

    def step(self, tick: RunningTick, node: Operator, deltas: Sequence[Delta]) -> Delta:
        """Return the results of an operator without the rows that cannot be computed."""
        tick.gate_of, tick.stops = self.query_of, self._stops
        if not deltas or deltas[0].rows is None:
            return node.step(tick, deltas)
        projection = node.projection()
        if projection is not None:
            return self._projected(tick, node, projection, deltas[0])
        demands = list(node.row_expressions())
        if not demands:
            return node.step(tick, deltas)
        below = node.inputs[0]
        chain = self._chains.get(below.name, Chain(deltas[0]))
        chain = replace(chain, conditions=(*chain.conditions, tuple(map(chain.over, node.filters()))))
        values = {name: chain.over(value) for name, value in node.row_values().items()}
        rows = self._tried(tick, node, chain, below, [chain.over(demand) for demand in demands], values)
        return node.step(tick, [deltas[0] if rows is None else rows, *deltas[1:]])

    def query_of(self, node: Operator) -> str:
        """Return the view, pump or query that an operator is a part of."""
        queries = [name for name in self._queries if node.name == name or node.name.startswith(f"{name}.")]
        return max(queries, key=len, default=node.name)

    def _projected(self, tick: RunningTick, node: Operator, projection: Mapping[str, exp.Expr], delta: Delta) -> Delta:
        below = self._chains.get(node.inputs[0].name, Chain(delta))
        columns = {name: below.over(value) for name, value in projection.items()}
        chain = Chain(below.base, (*below.conditions, tuple(map(below.over, node.filters()))), columns)
        readers = self._readers[node.name]
        if self._defers and readers and all(reader.fuses for reader in readers):
            self._chains[node.name] = chain
            return node.step(tick, [_without_rows(delta)])  # its readers read the rows of the base
        wanted = self._required[node.name]
        result = self._tried(tick, node, chain, node, [value for name, value in columns.items() if name in wanted])
        return node.step(tick, [delta]) if result is None else result

    def _tried(  # noqa: PLR0913 - the rows of a chain, and what is computed
        self,
        tick: RunningTick,
        node: Operator,
        chain: Chain,
        shape: Operator,
        demands: Collection[exp.Expr],
        more: Mapping[str, exp.Expr] = EMPTY,
    ) -> Delta | None:
        """Return the rows of a chain with the columns of ``shape``, if the conditions and ``demands`` can be computed.

        They have ``more`` columns.

        ``None`` if nothing is computed, so that nothing can fail, not even what nobody reads of a view below.
        """
        rows, emitted = chain.base.rows, shape.emits()
        assert rows is not None
        values = {**(chain.columns or {name: col(name) for name in emitted.names}), **more}
        expressions = (*(test for tests in chain.conditions for test in tests), *values.values(), *demands)
        plain = all(isinstance(expression.unnest(), exp.Column) for expression in expressions)
        if plain and node.inputs[0].name not in self._chains:
            return None
        attempts = judged(
            rows,
            [[*map(_texts, tests)] for tests in chain.conditions],
            {name: to_spark(expression) for name, expression in values.items()},
            [_texts(expression) for expression in demands],
            [name for name in emitted.internals if name not in values],
        )
        if self._stops:
            tick.why = _reason(rows, attempts, [to_spark(expression) for expression in expressions])
        if plain:
            accepted = attempts.drop(BROKEN)
        elif is_lifetimes(shape):
            accepted = refuse_events(tick, node, attempts)
        else:
            accepted = tick.refuse_failing(self.query_of(node), node, attempts, BROKEN)
        return replace(chain.base, rows=accepted, files=None, timeline=None)


def _reason(rows: Frame, attempts: Frame, texts: Sequence[str]) -> str:
    """Return what Spark says of the first row of some ``attempts`` that fails; a task leaves that to the driver."""
    place = [ROWTIME, WRITER, POSITION]
    if ANSWERS.get() is not None or not {*place} <= {*attempts.columns} & {*rows.columns}:
        return ""
    first = attempts.kept(f"{BROKEN} IS NOT NULL").in_order(place).limit(1)
    first = first.valued([f"{WRITER} AS __stopping_writer", f"{POSITION} AS __stopping_position"])
    rows = rows.joined(first, f"{WRITER} = __stopping_writer AND {POSITION} = __stopping_position", "left_semi")
    for text in texts:
        with suppress(Untranslated):
            part = part_of(rows.sparkSession, f"{text} AS `v`", rows.fields)[1]
            try:
                answered(rows.sparkSession, {part: rows})
            except Uncomputed as wrong:
                cause = wrong.__cause__ or wrong
                return words_of(cause) if isinstance(cause, PySparkException) else innermost(cause)
    return ""


def _without_rows(delta: Delta) -> Delta:
    """Return no rows."""
    return replace(delta, rows=None if delta.rows is None else delta.rows.limit(0))


def _texts(node: exp.Expr) -> tuple[str, str]:
    return to_spark(node), in_words(node)


def closer(error: Exception, program: Program, tap: object, before: CloseLook | None) -> CloseLook | None:
    """Return how to run a tick again after the value of a row failed, or ``None``.

    ``before``: how it was run. The ``tap`` of a trace ignores it.
    """
    if before is not None or not fails_for_a_value(error):
        return None
    traced = getattr(tap, "forget", None)
    if traced is not None:
        traced()
    return CloseLook(program, defers=traced is None)


def fails_for_a_value(error: Exception) -> bool:
    """Return True if an error may say that something cannot be computed for a value."""
    return any(isinstance(cause, Overflow | Uncomputed) or of_a_value(cause) for cause in causes(error))


def left_by(error: BaseException) -> str:
    """Return the mark of the expression that an error leaves to Spark; empty for none, or if it is left already."""
    mark = next((cause.mark for cause in causes(error) if isinstance(cause, Left)), "")
    return "" if mark in LEFT.get() else mark


def note_left(why: object) -> None:
    """Log that an expression is left to Spark."""
    LOG.info("Catalyst computes an expression from now on: %s", why, extra={"event": "left"})


def _readers_of(operators: Sequence[Operator]) -> dict[str, list[Operator]]:
    """Return, by operator, those that read its rows."""
    readers = defaultdict[str, list[Operator]](list)
    for node in operators:
        for child in node.inputs:
            readers[child.name].append(node)
    return readers


def computed_at_once(operators: Sequence[Operator]) -> dict[str, tuple[str, ...]]:
    """Return, by operator, the columns that may fail and that nobody may leave uncomputed, because somebody needs them.

    A gate above refuses rows, and a condition drops some, before their columns are read. Then a row would fail in a
    tick that examines rows one by one, and not in others. These are the columns that a `CloseLook` tries there.
    """
    required, readers = columns_required(operators), _readers_of(operators)
    late: dict[str, frozenset[str]] = {}
    listed: dict[str, tuple[str, ...]] = {}
    for node in operators:
        below = frozenset[str]().union(*(late[child.name] for child in node.inputs))
        late[node.name] = frozenset() if node.holds_results else below
        projection = node.projection()
        if projection is None:
            continue
        kinds = kinds_of(node.inputs[0].emits().columns)
        names = {
            n for n, of in projection.items() if not below.isdisjoint(columns_in([of])) or not never_fails(of, kinds)
        }
        late[node.name] = frozenset(names)
        reading = readers[node.name]
        if reading and not all(reader.fuses or reader.holds_results for reader in reading):
            listed[node.name] = tuple(sorted(names & required[node.name]))
            late[node.name] -= {*listed[node.name]}
    return {name: names for name, names in listed.items() if names}
