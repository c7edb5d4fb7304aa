"""The gate of a pump: a row of which a value does not fit the target is refused, and the run goes on (semantics 10).

A pump is a typed edge. Its columns are assigned by position; each value is assigned to the declared type of the target
by Spark's ANSI store assignment. The gate refuses as ``MALFORMED`` a row with a value that does not fit, with NULL for
a NOT NULL column, or that breaks a CHECK. Rows pass it unchanged, so that ``pump.rejected`` has the columns of the
query; the casts are computed above. If the types show that everything fits, the gate costs nothing and counts nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from sqlglot import exp

from rowtime.core.columns import BROKEN, TRIED
from rowtime.core.fields import LATER, UNSTORED
from rowtime.expr.store_assignment import always_fits, as_read, is_nested, length_of
from rowtime.frames.frame import Frame
from rowtime.frames.kinds import type_text
from rowtime.operators.contract import Delta, Distribution, Link, Operator, Tick, Unary, quoted
from rowtime.operators.gates.column_limits import Limit
from rowtime.operators.rows.attempt import with_attempts
from rowtime.operators.rows.sized_texts import holds_lengths, in_length
from rowtime.sql.generate import literal, to_rowtime, to_spark


@dataclass(frozen=True)
class Assigned:
    """A column of the target and the column of the query assigned to it (empty: none, so NULL)."""

    source: str
    name: str
    type: str
    required: bool = False

    def __str__(self) -> str:
        return f"{self.name} {self.type}{' NOT NULL' if self.required else ''}"


@dataclass(frozen=True)
class PumpGate(Unary):
    """Passes rows that can be ``assigned`` and satisfy the ``checks``.

    ``checks`` are as they were written; ``over`` are the same over the columns of the query, cast as in the target.
    ``holds``: the limits of the server behind the target, in words and over the columns of the query. ``limited``: the
    target is a table that may exist with narrower limits than declared; the running tick knows these (`column_limits`).
    """

    assigned: tuple[Assigned, ...]
    checks: tuple[exp.Expr, ...] = ()
    over: tuple[exp.Expr, ...] = ()
    holds: tuple[tuple[str, exp.Expr], ...] = field(default=(), metadata=LATER)
    limited: bool = field(default=False, metadata=UNSTORED)

    kind: ClassVar[str] = "pump gate"
    at_edge: ClassVar[bool] = True
    begins_anywhere: ClassVar[bool] = True
    is_gate: ClassVar[bool] = True
    passes_all: ClassVar[bool] = True

    def link(self, n: int) -> Link:
        """Return the row itself, unchanged."""
        return self.unchanged(n)

    def renames_for(self, types: Mapping[str, str]) -> dict[str, str] | None:
        """Return an empty mapping if rows need no check."""
        return None if any(True for _ in self.tests(types)) else {}

    def checks_pump(self, pump: str) -> bool:
        """Return True for the gate of that pump."""
        return self.name in (pump, f"{pump}.gate")

    def distribution(self) -> Distribution:
        """Return any task."""
        return Distribution.ANY

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Refuse the rows that do not fit."""
        delta = deltas[0]
        if delta.rows is None:
            return delta
        narrower = [Limit(**fields) for fields in tick.limits(self)]
        tests = [*self.tests(self._types(tick, delta.rows)), *self._narrower(narrower)]
        if not tests:
            return delta
        rows = tick.refuse(self, self._tested(tick, delta.rows, tests), BROKEN)
        return replace(delta, rows=rows, files=None, timeline=None)

    def _tested(self, tick: Tick, rows: Frame, tests: Sequence[Demand]) -> Frame:
        """Return the rows with the name of the first test that each fails."""
        texts = [test.condition for test in tests]
        if not tick.trying and rows.can(*texts):  # one that fails ends the attempt
            rows = rows.computed([test.condition for test in tests if test.casts])
            tests = [replace(test, tried=False) for test in tests if not test.casts]
        tried = {f"{TRIED}{n}": test.condition for n, test in enumerate(tests) if test.tried}
        with_tried = with_attempts(rows, tried) if tried else rows
        cases = []
        for n, test in enumerate(tests):
            broken = f"NOT ({test.condition})"
            if test.tried:
                broken = f"{TRIED}{n} IS NULL" + ("" if test.casts else f" OR NOT {TRIED}{n}.c0")
            cases.append(f"WHEN {broken} THEN {literal(test.name)}")
        shape = self.emits()
        columns = (*map(quoted, shape.names), *shape.internals)
        first_failed = f"CASE {' '.join(cases)} END" if cases else "CAST(NULL AS STRING)"
        return with_tried.selectExpr(*columns, f"{first_failed} AS {BROKEN}")

    def _types(self, tick: Tick, rows: Frame) -> Mapping[str, str]:
        """Return the types of the query's columns, also those that only the rows tell."""
        types = dict(zip(self.input.emits().names, tick.types(self.input), strict=True))
        if all(types.values()):
            return types
        given = {field.name: type_text(field.dataType) for field in rows.schema.fields}
        return {name: kind or given.get(name, "") for name, kind in types.items()}

    def is_narrowed(self, limit: Limit) -> bool:
        """Return True if a column of the table is narrower than declared."""
        return any(True for _ in self._narrower([limit]))

    def _narrower(self, limits: Sequence[Limit]) -> Iterator[Demand]:
        for limit in limits:
            for column in self.assigned:
                if column.name == limit.name:
                    source = quoted(column.source) if column.source else ""
                    yield from (Demand(*condition) for condition in limit.conditions(source, column.type))

    def tests(self, types: Mapping[str, str]) -> Iterator[Demand]:
        """Yield the tests that each row needs if the columns of the query have these types."""
        for column in self.assigned:
            given = types.get(column.source, "")
            if column.source and not (given and always_fits(given, column.type)):
                yield from _of_type(column)
        for column in self.assigned:
            if column.required:
                yield Demand(str(column), f"{quoted(column.source)} IS NOT NULL" if column.source else "false")
        for check, over in zip(self.checks, self.over, strict=True):
            yield Demand(to_rowtime(check), to_spark(over), tried=True)
        for words, over in self.holds:
            yield Demand(words, to_spark(over))


def limited_gate(below: Operator) -> PumpGate | None:
    """Return the gate before a sink whose table may be narrower than declared."""
    while not (isinstance(below, PumpGate) and below.limited):
        if len(below.inputs) != 1:
            return None
        below = below.inputs[0]
    return below


@dataclass(frozen=True)
class Demand:
    """A condition on rows: its name, and Spark SQL that NULL satisfies.

    ``tried``: computing it may fail, and then the row breaks it. ``casts``: it is satisfied if it can be computed.
    """

    name: str
    condition: str
    tried: bool = False
    casts: bool = False


def _of_type(column: Assigned) -> Iterator[Demand]:
    value, length = quoted(column.source), length_of(column.type)
    if length is not None:  # trailing blanks beyond the length are cut off, as in Spark
        yield Demand(str(column), f"rtrim(substring(CAST({value} AS STRING), {length + 1})) = ''")
    elif is_nested(column.type):
        cast = f"CAST({value} AS {as_read(column.type)})"
        if holds_lengths(column.type):
            fits = f"coalesce({in_length(cast, column.type)}, true)"
            yield Demand(str(column), fits, tried=True)
        else:
            yield Demand(str(column), cast, tried=True, casts=True)
    else:
        yield Demand(str(column), f"{value} IS NULL OR try_cast({value} AS {column.type}) IS NOT NULL")
