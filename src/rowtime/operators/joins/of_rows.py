"""What joins of rows have in common: two sides with columns of their own, and a condition over both."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from sqlglot import exp

from rowtime.core.fields import Micros
from rowtime.expr.conditions import columns_in, never_fails
from rowtime.expr.facts import Kind
from rowtime.frames.frame import Frame
from rowtime.frames.kinds import is_plain, named
from rowtime.operators.contract import Derivation, Operator, Tick
from rowtime.operators.joins.join_rows import beside
from rowtime.operators.rows.conditions import equal_columns, met


@dataclass(frozen=True)
class Side:
    """One side: its columns as (column of the input, name in the join), and names for its rowtime.

    ``stamp``: how long after its rowtime (µs) a row without a match is emitted; ``None``: never.
    """

    columns: tuple[tuple[str, str], ...]
    rowtimes: tuple[str, ...] = ()
    stamp: Micros | None = None


class OfRows(Operator):
    """A join of rows: its condition ``on`` is over the columns that its ``sides`` pass on, under their new names."""

    sides: tuple[Side, Side]
    on: exp.Expr | None

    def required_columns(self, n: int, wanted: Collection[str]) -> Iterable[str]:
        """Return the columns of its condition, and the sources of the required ones."""
        own = {*columns_in([self.on]), *wanted}
        return (old for old, new in self.sides[n].columns if new in own)

    decides: ClassVar[str] = "JOIN"

    def made_from(self, n: int, column: str) -> Derivation | None:
        """Return the column of that name of its side."""
        olds = [old for old, new in self.sides[n].columns if new == column]
        others = (new for number, side in enumerate(self.sides) if number != n for _, new in side.columns)
        return Derivation(olds) if olds or column in others else super().made_from(n, column)

    def _equal_keys(self) -> list[tuple[str, ...]]:
        """Return the columns of each side that have to be equal, in pairs whose equal values have the same bytes."""
        types = [{column.name: named(column.type) for column in child.emits().columns} for child in self.inputs]
        types = [{new: of.get(old, "") for old, new in s.columns} for of, s in zip(types, self.sides, strict=True)]
        pairs = [(one, other) for one, other in equal_columns(self.on, *types) if is_plain(types[0][one])]
        return [*zip(*pairs, strict=True)]

    @cached_property
    def _on_parts(self) -> list[str]:
        """Return the parts of its condition, as Spark SQL."""
        return met(self.on, self._left, self._kinds)

    @cached_property
    def _may_fail(self) -> bool:
        """Return True if there may be a pair for which the condition cannot be computed."""
        return self.on is not None and not never_fails(self.on, self._kinds)

    def _compute(self, tick: Tick, pairs: Frame) -> None:
        """Compute the condition for pairs, in a job: a semi-join itself stops at a match."""
        tick.describe(self, "compute the condition for every pair")
        pairs.count()

    @cached_property
    def _kinds(self) -> dict[str, Kind]:
        columns = ({c.name: c for c in child.emits().columns} for child in self.inputs)
        sides = zip(columns, self.sides, strict=True)
        return {new: of[old].known.kind for of, side in sides for old, new in side.columns if old in of}

    @cached_property
    def _left(self) -> frozenset[str]:
        """Return the names of the left side's columns."""
        return frozenset((*(name for _, name in self.sides[0].columns), *self.sides[0].rowtimes))

    def typed(self, rows: Callable[[Operator], Frame]) -> Frame:
        """Return the columns of each input, under their new names, side by side."""
        return beside(rows, [(child, side.columns) for child, side in zip(self.inputs, self.sides, strict=True)])

    def between(self, rows: Callable[[Operator], Frame]) -> list[Frame]:
        """Return the joined columns: the condition is over both sides."""
        return [self.typed(rows)]
