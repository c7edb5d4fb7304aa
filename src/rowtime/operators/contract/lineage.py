"""Lineage: which rows of an operator's inputs may have contributed to one of its rows.

Values that an operator passes on are equal on both sides; rows of events overlap in time. So each rule is about values
alone, and a run need not record anything for it. It must find every row that contributed; where a rule is coarse, it
finds more: for a group, all rows of its keys; for an operator without a rule, all earlier rows.
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
    """The fires of an operator: the bound of its event time (``event``) releases rows.

    ``micros``: the event time of an input's row (Spark SQL, µs). ``age``: how far (µs) behind the bound rows are
    accepted.
    """

    event: str
    micros: str
    age: int


@dataclass(frozen=True)
class Link:
    """Which rows of one input may have contributed to a row of an operator; everything is Spark SQL.

    ``same``: equal values, over the row and over the input's row (NULLs are equal). ``where``: over the input's row
    alone. ``meets``: over the input's row and the time asked of the row (``ASKED_…``). ``span`` and ``version``: that
    time and version, over the row. Below, the span is unchanged (``narrows`` = "no"), the part of it in which the
    input's row lives ("meet"), or the whole life of that row ("own"). ``fired``: only the rows that came up to the fire
    of the row.
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
class Derivation:
    """The columns of an input from which a column is made, and how: passed on, or computed from one row or several."""

    columns: Collection[str]
    how: str = IDENTITY

    @classmethod
    def by(cls, value: exp.Expr) -> Derivation:
        """Return one for an expression over a row."""
        inner = value.unnest()
        return cls(columns_in([inner]), IDENTITY if isinstance(inner, exp.Column) else TRANSFORMATION)


NOTHING: Final = Link(meets="false")
"""For an input that gives an operator bounds and no rows."""


def named(names: Sequence[tuple[str, str]]) -> Pairs:
    """Return pairs of equal columns, by their names above and below."""
    return tuple((quoted(above), quoted(below)) for above, below in names)
