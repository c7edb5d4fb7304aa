"""Lineage: which rows of an operator's inputs can have made one of its rows.

What an operator passes on is the same on both sides; rows of events meet in time. So each rule is about values
alone, and needs nothing that a run would have to record. It is to name every row that had a part, and where an operator
tells less, it names more: of a group all rows of its keys, of an operator without a rule all rows before.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from sqlglot import exp

from rowtime.core.columns import ASKED_FROM, ASKED_UPTO
from rowtime.expr.conditions import columns_in
from rowtime.sql.generate import quoted

SPAN = (ASKED_FROM, ASKED_UPTO)
Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Fired:
    """What lets rows out in fires: the bound of the event time of an operator (``event``).

    ``micros``: the event time of an input's row (Spark SQL, µs). ``age``: how far (µs) behind the bound rows are taken.
    """

    event: str
    micros: str
    age: int


@dataclass(frozen=True)
class Link:
    """Which rows of one input can have made a row of an operator; all in Spark SQL.

    ``same``: what is the same, over the row and over the input's row (NULLs are the same). ``where``: over the input's
    row alone. ``meets``: over the input's row and what is asked of the row (``ASKED_…``). ``span`` and ``version``:
    what these are, over the row. Below it is the same span (``narrows`` = "no"), what of it the input's row lives
    ("meet"), or the whole life of that ("own"). ``fired``: only the rows that came up to the fire of the row.
    """

    same: Pairs = ()
    where: str = "true"
    meets: str = "true"
    span: tuple[str, str] = SPAN
    version: str = "0L"
    narrows: Literal["no", "meet", "own"] = "no"
    fired: Fired | None = None


IDENTITY: Final = "IDENTITY"
TRANSFORMATION: Final = "TRANSFORMATION"
AGGREGATION: Final = "AGGREGATION"


@dataclass(frozen=True)
class Made:
    """From which columns of an input a column is made, and how: passed on, computed of a row, or of several rows."""

    columns: Collection[str]
    how: str = IDENTITY

    @classmethod
    def by(cls, value: exp.Expr) -> Made:
        """By an expression over a row."""
        inner = value.unnest()
        return cls(columns_in([inner]), IDENTITY if isinstance(inner, exp.Column) else TRANSFORMATION)


NOTHING: Final = Link(meets="false")
"""Of an input that gives an operator bounds and no rows."""


def named(names: Sequence[tuple[str, str]]) -> Pairs:
    """Columns that are the same, by their names above and below."""
    return tuple((quoted(above), quoted(below)) for above, below in names)
