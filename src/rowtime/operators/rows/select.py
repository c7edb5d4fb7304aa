"""Projection and filter: the same rows, the same rowtimes, the same writers.

A row that the filter drops still moves the clock: bounds are passed beside the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from sqlglot import exp

from rowtime.core.columns import ROWTIME, TRIED
from rowtime.expr.conditions import col, columns_in, conjuncts, never_fails
from rowtime.expr.facts import Kind
from rowtime.expr.many_rows import GENERATORS, generator
from rowtime.expr.monotonicity import is_constant
from rowtime.expr.store_assignment import same_type
from rowtime.frames.frame import Frame
from rowtime.operators.contract import (
    Column,
    Delta,
    Derivation,
    Distribution,
    FireColumns,
    Link,
    Operator,
    Origin,
    Shape,
    Tick,
    Unary,
    named,
)
from rowtime.operators.rows.conditions import kinds_of, passing
from rowtime.operators.rows.first_rows import unknown_at_first
from rowtime.sql.generate import quoted, to_spark


@dataclass(frozen=True)
class Item:
    """One item of a select list: the output column and its bound expression."""

    column: Column
    expression: exp.Expr

    @cached_property
    def text(self) -> str:
        """Return the expression as Spark SQL text."""
        return to_spark(self.expression)

    @cached_property
    def sql(self) -> str:
        """Return the item as Spark SQL text."""
        return f"{self.text} AS {quoted(self.column.name)}"


@dataclass(frozen=True)
class Select(Unary):
    """``SELECT items FROM input WHERE condition``; ``hidden`` items are for the operator above."""

    items: tuple[Item, ...]
    where: exp.Expr | None = None
    hidden: tuple[Item, ...] = ()

    kind: ClassVar[str] = "select"
    begins_anywhere: ClassVar[bool] = True
    keeps_places: ClassVar[bool] = True
    computes: ClassVar[bool] = True
    fuses: ClassVar[bool] = True

    @classmethod
    def passes_each(cls, fields: Mapping[str, Any]) -> bool:
        """Return True without a WHERE and without a function that turns one row into several."""
        texts = " ".join(str(item) for item in fields.get("items", ())).upper()
        return fields.get("where") is None and not any(f"{name}(" in texts for name in GENERATORS)

    @classmethod
    def drops_rows(cls, fields: Mapping[str, Any]) -> bool:
        """Return True with a WHERE."""
        return fields.get("where") is not None

    def emits(self) -> Shape:
        """Return the select list, placed as the input was; the event time as long as its column is passed on."""
        below = self.input.emits()
        plain = {i.column.name: i.expression.name for i in self.items if isinstance(i.expression, exp.Column)}
        event = below.event
        if event and plain.get(event.column) == (event.here or event.column):
            event = replace(event, here="")
        elif event and plain.get(event.here) != event.here:
            event = None
        return replace(below, columns=tuple(item.column for item in self.items), event=event)

    def fires(self) -> FireColumns | None:
        """Return those of its input that satisfy WHERE, unless it turns one row into several."""
        fires = None if self._makes_rows else self.input.fires()
        passed = {i.column.name: i.expression.name for i in self.items if isinstance(i.expression, exp.Column)}
        return None if fires is None else fires.where(self.where).renamed(passed)

    def renames_for(self, types: Mapping[str, str]) -> dict[str, str] | None:
        """Return each column and the input column that it is; ``None`` if anything is computed or omitted.

        A column that is cast to its own type is not computed.
        """
        passed = [_passed_on(item.expression, types) for item in self.items]
        if self.where is not None or self.hidden or None in passed:
            return None
        return {item.column.name: name for item, name in zip(self.items, passed, strict=True) if name is not None}

    def asks_changes(self, *, above: bool) -> bool:
        """Return whether its consumers need changes, unless a failing value could be refused with one of them."""
        plain = all(isinstance(item.expression, exp.Column) for item in (*self.items, *self.hidden))
        return above or not plain or self.where is not None

    def link(self, n: int) -> Link:  # noqa: ARG002 - one input
        """Return the row that passes WHERE and has these values."""
        computed = [
            (quoted(i.column.name), to_spark(i.expression)) for i in self.items if generator(i.expression) is None
        ]
        ours = named([(name, name) for name in self.emits().internals])
        return Link((*computed, *ours), to_spark(self.where) if self.where is not None else "true")

    @property
    def _makes_rows(self) -> bool:
        """Return True if it turns one row into several."""
        return any(generator(item.expression) is not None for item in self.items)

    def readable(self) -> frozenset[str]:
        """Return the select list, and the hidden items."""
        return frozenset(item.column.name for item in (*self.items, *self.hidden))

    def required_columns(self, n: int, wanted: Collection[str]) -> Iterable[str]:  # noqa: ARG002 - one input
        """Return the columns of WHERE, and of the required items; of all items if these make rows."""
        items = (i for i in (*self.items, *self.hidden) if self._makes_rows or i.column.name in wanted)
        return columns_in([self.where, *(item.expression for item in items)])

    def made_from(self, n: int, column: str) -> Derivation | None:
        """Return the source of a column: its item, or a passed column."""
        item = next((item for item in (*self.items, *self.hidden) if item.column.name == column), None)
        return super().made_from(n, column) if item is None else Derivation.by(item.expression)

    def filters(self) -> Sequence[exp.Expr]:
        """Return the conditions of WHERE."""
        return conjuncts(self.where)

    def projection(self) -> Mapping[str, exp.Expr] | None:
        """Return the select list and the hidden items."""
        return None if self._makes_rows else {i.column.name: i.expression for i in (*self.items, *self.hidden)}

    def row_expressions(self) -> Iterable[exp.Expr]:
        """Return the select list; for a generator its arguments."""
        calls = ((item.expression, generator(item.expression)) for item in self.items)
        return [part for value, call in calls for part in ([value] if call is None else call.expressions)]

    def row_values(self) -> Mapping[str, exp.Expr]:
        """Return what is computed for the rows of a generator: no columns, and no constants, which stay as they are."""
        values = self.row_expressions() if self._makes_rows else ()
        computed = (of for of in values if not isinstance(of.unnest(), exp.Column) and not is_constant(of))
        return {f"{TRIED}{n}": of for n, of in enumerate(computed)}

    @property
    def _may_fail(self) -> bool:
        """Return True if it, or a Select that it is computed with, computes anything that may fail."""
        expressions = (*self.filters(), *(item.expression for item in (*self.items, *self.hidden)))
        return not all(never_fails(part, self._kinds) for part in expressions) or self._is_over_failing

    @property
    def _is_over_failing(self) -> bool:
        return isinstance(self.input, Select) and self.input._may_fail  # noqa: SLF001 - one of ours

    @cached_property
    def _kinds(self) -> Mapping[str, Kind]:
        return kinds_of(self.input.emits().columns)

    def null_at_first(self, name: str) -> bool:
        """Return True if a column in the item of this one may be."""
        item = next((item for item in self.items if item.column.name == name), None)
        return item is not None and unknown_at_first(item.expression, self.input) is not None

    def origin(self, column: str) -> Origin | None:
        """Return that of the column that it passes on."""
        value = self.value_of(column)
        if not isinstance(value, exp.Column):
            return None
        return Origin(ROWTIME) if value.name == ROWTIME else self.input.origin(value.name)

    def value_of(self, column: str) -> exp.Expr | None:
        """Return one of its columns as an expression over its input."""
        return next((item.expression.unnest() for item in self.items if item.column.name == column), None)

    def listed(self) -> Sequence[Item]:
        """Return its items."""
        return self.items

    def typed(self, rows: Callable[[Operator], Frame]) -> Frame:
        """Return the select list over an empty input."""
        return rows(self.input).selectExpr(*(item.sql for item in self.items))

    def on_versions(self, below: Sequence[Operator]) -> Operator:
        """Return the same operator: it maps each row by itself."""
        return replace(self, input=below[0])

    def reads_once(self) -> bool:
        """Return True."""
        return True

    def distribution(self) -> Distribution:
        """Return any task."""
        return Distribution.ANY

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Return the new rows, filtered and projected; lazily."""
        delta = deltas[0]
        rows = delta.rows
        if rows is None:
            return delta
        if tick.trying and self._makes_rows:
            rows = self._of_values(rows)
        else:
            rows = passing(rows, self.where, self._kinds, later=self._is_over_failing)
            rows = rows.selectExpr(*(item.sql for item in (*self.items, *self.hidden)), *self.emits().internals)
        if self._makes_rows:
            return replace(delta, rows=rows, files=None, timeline=None)
        return replace(delta, rows=rows, files=None, timeline=None)

    def _of_values(self, rows: Frame) -> Frame:
        """Return the new rows of rows that have `row_values` as columns, and satisfy a WHERE that may fail."""
        names = {to_spark(value): name for name, value in self.row_values().items()}

        def listed(item: Item) -> str:
            call = generator(item.expression)
            if call is None:
                return f"{names.get(item.text, item.text)} AS {quoted(item.column.name)}"
            given = (names.get(text, text) for text in map(to_spark, call.expressions))
            return f"{call.name}({', '.join(given)}) AS {quoted(item.column.name)}"

        if self.where is not None and isinstance(self.where.unnest(), exp.Column):
            rows = rows.where(to_spark(self.where))
        return rows.selectExpr(*map(listed, (*self.items, *self.hidden)), *self.emits().internals)

    @property
    def _passed(self) -> dict[str, str]:
        """Return columns that are only passed on, and hidden ones: they can be read at their source."""
        items = (item for item in (*self.items, *self.hidden) if isinstance(item.expression, exp.Column))
        ours = {name: name for name in self.emits().internals}
        return ours | {item.column.name: item.expression.name for item in items}


def unchanged(columns: Iterable[Column]) -> tuple[Item, ...]:
    """Return columns that are passed on."""
    return tuple(Item(column, col(column.name)) for column in columns)


def extended(name: str, node: Operator, *more: Item) -> Select:
    """Return the rows of an operator with further columns."""
    return Select(name, node, (*unchanged(node.emits().columns), *more))


def _passed_on(node: exp.Expr, types: Mapping[str, str]) -> str | None:
    """Return the column that an expression is, even if it is cast to its own type."""
    if type(node) is exp.Cast and isinstance(node.this, exp.Column):
        given = types.get(node.this.name, "")
        return node.this.name if given and same_type(given, node.to.sql("spark")) else None
    return node.name if isinstance(node, exp.Column) else None
