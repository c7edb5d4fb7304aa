"""A tick looked at row by row: which rows have an expression that fails, so that the others go on.

In ANSI mode one row whose expression cannot be computed (`10 / 0`, a text that is no number) ends Spark's whole job. So
a tick runs without a thought of that, and only one that fails for a value is run again like this. Then WHERE and the
select list of each row are tried (`operators.rows.attempt`), and a row for which one fails is refused as MALFORMED at
the gate of its query. What is tried is what is computed without this look: a chain of views is tried as one query,
condition after condition, and of a view below groups only what the groups ask for. So the refused rows follow from the
input, and not from what else a tick holds.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has no types
from pyspark.errors import PySparkException
from sqlglot import exp

from rowtime.core.columns import BROKEN
from rowtime.expr.conditions import col
from rowtime.kernels.exact import Overflow
from rowtime.operators.contract import Delta, Operator, walk
from rowtime.operators.events.failing_events import refuse_events
from rowtime.operators.rows.attempt import judged
from rowtime.operators.rows.lifetimes import is_lifetimes
from rowtime.runtime.asked_for import columns_asked_for
from rowtime.sql.generate import to_rowtime, to_spark

if TYPE_CHECKING:
    from rowtime.plan.program import Program
    from rowtime.runtime.tick import RunningTick

_OF_A_VALUE = re.compile(r"SQLSTATE: 22[0-9A-Z]{3}")


@dataclass(frozen=True)
class Chain:
    """What Selects upon each other compute, over the rows of ``base``: conditions in their order, columns by name.

    ``columns`` is ``None`` where they are those of the base.
    """

    base: Delta
    conditions: tuple[exp.Expr, ...] = ()
    columns: Mapping[str, exp.Expr] | None = None

    def over(self, node: exp.Expr) -> exp.Expr:
        """An expression over the columns as one over those of the base."""
        known = self.columns
        if known is None:
            return node
        return node.copy().transform(
            lambda part: (
                exp.paren(known[part.name].copy()) if isinstance(part, exp.Column) and part.name in known else part
            )
        )


class CloseLook:
    """The steps of one tick, with rows whose expressions fail refused; ``defers``: a Select below others only adds."""

    def __init__(self, program: Program, *, defers: bool = True) -> None:
        self._readers: dict[str, list[Operator]] = defaultdict(list)
        for node in program.operators:
            for child in node.inputs:
                self._readers[child.name].append(node)
        self._asked_for = columns_asked_for(program.operators)
        self._queries = {*program.catalog.views, *program.catalog.pumps}
        self._queries |= {sink.name.removesuffix(".result") for sink in program.sinks}
        self._defers = defers
        self._chains: dict[str, Chain] = {}

    def step(self, tick: RunningTick, node: Operator, deltas: Sequence[Delta]) -> Delta:
        """The results of an operator without the rows that cannot be computed."""
        tick.gate_of = self.query_of
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
        chain = replace(chain, conditions=(*chain.conditions, *map(chain.over, node.filters())))
        rows = self._tried(tick, node, chain, below, [chain.over(one) for one in demands])
        return node.step(tick, [rows, *deltas[1:]])

    def query_of(self, node: Operator) -> str:
        """The view, pump or query that an operator is a part of."""
        found = [name for name in self._queries if node.name == name or node.name.startswith(f"{name}.")]
        return max(found, key=len, default=node.name)

    def _projected(self, tick: RunningTick, node: Operator, projection: Mapping[str, exp.Expr], delta: Delta) -> Delta:
        below = self._chains.get(node.inputs[0].name, Chain(delta))
        columns = {name: below.over(value) for name, value in projection.items()}
        chain = Chain(below.base, (*below.conditions, *map(below.over, node.filters())), columns)
        if self._is_deferred(node):
            self._chains[node.name] = chain
            return node.step(tick, [delta])
        asked = self._asked_for[node.name]
        return self._tried(tick, node, chain, node, [value for name, value in columns.items() if name in asked])

    def _is_deferred(self, node: Operator) -> bool:
        readers = self._readers[node.name]
        return self._defers and bool(readers) and all(one.fuses for one in readers)

    def _tried(
        self, tick: RunningTick, node: Operator, chain: Chain, shape: Operator, demands: Collection[exp.Expr]
    ) -> Delta:
        """The rows of a chain with the columns of ``shape``, if the conditions and ``demands`` can be computed."""
        rows, emitted = chain.base.rows, shape.emits()
        assert rows is not None
        values = chain.columns or {name: col(name) for name in emitted.names}
        if all(isinstance(one.unnest(), exp.Column) for one in (*chain.conditions, *values.values(), *demands)):
            return shape.step(tick, [chain.base]) if chain.columns is not None else chain.base
        found = judged(
            rows,
            [_told(one) for one in chain.conditions],
            {name: to_spark(one) for name, one in values.items()},
            [_told(one) for one in demands],
            [name for name in emitted.internals if name not in values],
        )
        if is_lifetimes(shape):
            numbered = any(one.numbers_changes for one in walk(shape))
            accepted = refuse_events(tick, node, found, numbered=numbered)
        else:
            accepted = tick.refuse_failing(self.query_of(node), node, found, BROKEN, chain.base.count)
        return replace(chain.base, rows=accepted, peek=None, files=None, timeline=None)


def _told(node: exp.Expr) -> tuple[str, str]:
    return to_spark(node), to_rowtime(node)


def closer(error: Exception, program: Program, tap: object, before: CloseLook | None) -> CloseLook | None:
    """How a tick is run again that the value of a row has failed (SQLSTATE 22: data exception); ``None`` if it is not.

    ``before``: how it was run. What the ``tap`` of a trace has seen of it does not count.
    """
    if program.stops or before is not None or not _of_a_value(error):
        return None
    traced = getattr(tap, "forget", None)
    if traced is not None:
        traced()
    return CloseLook(program, defers=traced is None)


def _of_a_value(error: BaseException | None) -> bool:
    """True if a tick has failed because something cannot be computed of a value."""
    while error is not None:
        if isinstance(error, PySparkException | Py4JJavaError) and _OF_A_VALUE.search(str(error)):
            return True
        if isinstance(error, Overflow):
            return True
        error = error.__cause__
    return False
