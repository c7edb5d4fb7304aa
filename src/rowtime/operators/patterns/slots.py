"""The inputs of conditions and measures: columns, each picked from one row of the match or folded over several.

An expression over several rows is one over such columns. Its parts over a single row are computed with that row, before
matches are searched.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from rowtime.kernels.window_functions import Function
from rowtime.operators.contract import Column
from rowtime.sql.generate import to_rowtime

ROW, FIRST, LAST = "row", "first", "last"
CLASSIFIER, NUMBER, TAKEN = "classifier", "number", "taken"


@dataclass(frozen=True)
class Pick:
    """``value`` of one row: the current one (``which`` = `ROW`), or the first or last of the rows of ``variables``.

    ``offset``: so many of these rows forward, or back. ``move``: then so many rows of the partition, back if negative.
    ``final``: over the whole match, not only the rows up to the current one.
    """

    column: Column
    value: exp.Expr
    which: str
    variables: tuple[str, ...] = ()
    offset: int = 0
    move: int = 0
    final: bool = False

    @property
    def place(self) -> tuple[str, int]:
        """`FIRST` or `LAST` of the rows of its variables, and so many of these further on or back."""
        return self.which, self.offset

    @property
    def of_row(self) -> bool:
        """Return True if it depends only on the row."""
        return self.which == ROW

    @property
    def typed(self) -> exp.Expr:
        """Return an aggregate that has its type."""
        return exp.First(this=self.value.copy())

    @property
    def shown(self) -> exp.Expr:
        """Return it without its variables."""
        of = self.value.copy()
        return of if self.of_row else exp.First(this=of) if self.which == FIRST else exp.Last(this=of)

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

    @property
    def shown(self) -> exp.Expr:
        """Return it without its variables."""
        return self.typed

    def __str__(self) -> str:
        of = f"{to_rowtime(self.typed)} of {' '.join(self.variables)}"
        return f"{self.column.name} = {'FINAL ' if self.final else ''}{of}"


@dataclass(frozen=True)
class MatchFunction:
    """A function of the match: ``CLASSIFIER(variables)``, ``MATCH_NUMBER()``, or the list of its rows (`TAKEN`)."""

    column: Column
    what: str
    variables: tuple[str, ...] = ()
    final: bool = False

    @property
    def place(self) -> tuple[str, int]:
        """`FIRST` or `LAST` of the rows of its variables, and so many of these further on or back."""
        return LAST, 0

    @property
    def of_row(self) -> bool:
        """False: the match decides it."""
        return False

    def __str__(self) -> str:
        return f"{self.column.name} = {self.what} {' '.join(self.variables)}".rstrip()


@dataclass(frozen=True)
class Named(MatchFunction):
    """``CLASSIFIER(variables)`` of another row than the last one: see `place`."""

    which: str = LAST
    offset: int = 0

    @property
    def place(self) -> tuple[str, int]:
        """Of which row."""
        return self.which, self.offset

    def __str__(self) -> str:
        return f"{super().__str__()} {self.which} {self.offset}"


Slot = Pick | Fold | MatchFunction


@dataclass(frozen=True)
class Condition:
    """A condition for a row to be taken as ``variable``, besides others; ``test`` is over ``slots``."""

    variable: str
    test: exp.Expr
    slots: tuple[Slot, ...]

    @property
    def of_row(self) -> bool:
        """Return True if it depends only on the row."""
        return all(isinstance(slot, Pick) and slot.of_row for slot in self.slots)

    @property
    def shown(self) -> str:
        """Return it with the values in place of the slots."""
        values = {slot.column.name: slot.shown for slot in self.slots if not isinstance(slot, MatchFunction)}

        def value(part: exp.Expr) -> exp.Expr:
            return values[part.name].copy() if isinstance(part, exp.Column) and part.name in values else part

        return to_rowtime(self.test.copy().transform(value))

    def __str__(self) -> str:
        return f"{self.variable}: {to_rowtime(self.test)}"
