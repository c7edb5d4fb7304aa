"""What conditions and measures read of a match: columns, each picked from one row of it or folded over some.

An expression over several rows is one over such columns. What it computes of a single row is computed with that row,
before any match is looked for.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from rowtime.kernels.window_functions import Function
from rowtime.operators.contract import Column
from rowtime.sql.generate import to_rowtime

ROW, FIRST, LAST = "row", "first", "last"
CLASSIFIER, NUMBER = "classifier", "number"


@dataclass(frozen=True)
class Pick:
    """``value`` of one row: the current one (``which`` = `ROW`), or the first or last of the rows of ``variables``.

    ``offset``: so many rows of these further on, or back. ``move``: and so many rows of the partition, back if
    negative. ``final``: of the whole match, not of the rows up to the current one.
    """

    column: Column
    value: exp.Expr
    which: str
    variables: tuple[str, ...] = ()
    offset: int = 0
    move: int = 0
    final: bool = False

    @property
    def of_row(self) -> bool:
        """True if the row alone decides it."""
        return self.which == ROW

    @property
    def typed(self) -> exp.Expr:
        """What has its type, as an aggregate."""
        return exp.First(this=self.value.copy())

    def __str__(self) -> str:
        of = to_rowtime(self.value)
        if self.which != ROW:
            more = f", {self.offset}" if self.offset else ""
            of = f"{self.which.upper()}({of} of {' '.join(self.variables)}{more})"
        if self.move:
            of = f"{'PREV' if self.move < 0 else 'NEXT'}({of}, {abs(self.move)})"
        return f"{self.column.name} = {'FINAL ' if self.final else ''}{of}"


@dataclass(frozen=True)
class Fold:
    """``function`` of ``value`` over the rows of ``variables``; Spark types it as ``typed``."""

    column: Column
    value: exp.Expr
    function: Function
    variables: tuple[str, ...]
    typed: exp.Expr
    final: bool = False

    def __str__(self) -> str:
        of = f"{to_rowtime(self.typed)} of {' '.join(self.variables)}"
        return f"{self.column.name} = {'FINAL ' if self.final else ''}{of}"


@dataclass(frozen=True)
class Told:
    """What the match says of itself: ``CLASSIFIER(variables)`` or ``MATCH_NUMBER()``."""

    column: Column
    what: str
    variables: tuple[str, ...] = ()
    final: bool = False

    def __str__(self) -> str:
        return f"{self.column.name} = {self.what} {' '.join(self.variables)}".rstrip()


Slot = Pick | Fold | Told


@dataclass(frozen=True)
class Condition:
    """What a row has to satisfy to be taken as ``variable``, beside other conditions; ``test`` is over ``slots``."""

    variable: str
    test: exp.Expr
    slots: tuple[Pick | Fold, ...]

    @property
    def of_row(self) -> bool:
        """True if the row alone decides it."""
        return all(isinstance(slot, Pick) and slot.of_row for slot in self.slots)

    def __str__(self) -> str:
        return f"{self.variable}: {to_rowtime(self.test)}"
