"""Aggregates that fail for the rows of a group: these groups are found, so that the others get their values.

Spark computes an aggregate for all groups in one job and ends it with the first group that fails. No expression around
an aggregate prevents that. So in a tick in which a value has failed, CORR is computed in a way that cannot fail, and
the other aggregates are tried: if they fail, for half of the groups, and so on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from rowtime.expr.aggregates import ORDERED, ordered_text, split
from rowtime.frames.attempted import TRIED_VALUE
from rowtime.frames.spark_groups import tried_groups
from rowtime.operators.rows.collations import grouped, with_one_zero
from rowtime.sql.generate import quoted, to_spark

if TYPE_CHECKING:
    from rowtime.frames.frame import Frame

_NEVER_FAIL = (exp.Count, exp.Min, exp.Max, *ORDERED)


def computed_groups(rows: Frame, by: Sequence[str], calls: Mapping[str, exp.Expr], more: Sequence[str]) -> Frame:
    """Return the groups ``by`` of rows, with ``calls`` by name, and ``more`` aggregates, which cannot fail.

    A call that fails for a group is NULL. If it can fail, a column with ``x`` behind the name says whether it does.
    """
    texts = {name: ordered_text(call) for name, call in calls.items()}
    tried = [name for name, call in calls.items() if not isinstance(split(call)[1], _NEVER_FAIL)]
    listed = [*(f"{text} AS {name}" for name, text in texts.items()), *more]
    if not tried:
        return grouped(rows, by, listed)
    groups = tried_groups(rows, by, listed, tried)
    values = {name: f"{name}.{TRIED_VALUE} AS {name}" for name in tried}
    flags = (f"{is_failing(name)} AS {name}x" for name in tried)
    valued = groups.selectExpr(*(values.get(name, quoted(name)) for name in groups.columns), *flags)
    return with_one_zero(valued, listed)


def is_failing(name: str) -> str:
    """Return Spark SQL for whether an aggregate that is tried, in a column of this name, fails."""
    return f"{name} IS NULL"


@dataclass(frozen=True)
class Correlation:
    """CORR of two values, in columns of the name ``name``, like `ExactSum`.

    It fails for more than one pair if one of the values is the same in all of them. Pairs with a NULL do not count.
    """

    name: str
    values: tuple[str, str]

    @classmethod
    def of(cls, name: str, call: exp.Expr) -> Correlation | None:
        """Return the correlation that a call computes; ``None`` for another call."""
        condition, inner = split(call)
        if not isinstance(inner, exp.Corr) and not (isinstance(inner, exp.Anonymous) and inner.name.upper() == "CORR"):
            return None
        values = inner.expressions if isinstance(inner, exp.Anonymous) else [inner.this, inner.expression]
        texts = [to_spark(value) for value in values]
        one, other = (f"CASE WHEN {condition} THEN {text} END" if condition else text for text in texts)
        return cls(name, (one, other))

    @property
    def aggregates(self) -> list[str]:
        """Return the aggregates, as select items."""
        given = " AND ".join(f"({value}) IS NOT NULL" for value in self.values)
        x, y = (f"CASE WHEN {given} THEN try_cast({value} AS DOUBLE) END" for value in self.values)
        parts = {
            "g": f"count(CASE WHEN {given} THEN 1 END)",
            "n": f"regr_count({y}, {x})",
            "c": f"covar_pop({x}, {y})",
            "v": f"covar_pop({x}, {x})",  # as CORR adds them, so that the digits are those of other ticks
            "w": f"covar_pop({y}, {y})",
        }
        return [f"{text} AS {self.name}{part}" for part, text in parts.items()]

    @property
    def total(self) -> str:
        """Return the covariance of all pairs; in a column named ``s`` after the name."""
        return f"{self.name}c * {self.name}n"

    @property
    def value_text(self) -> str:
        """Return the correlation; NULL if it fails."""
        n, v, w = (f"{self.name}{part}" for part in "nvw")
        return f"CASE WHEN {n} > 1 THEN try_divide({self.name}s, sqrt({v} * {n} * ({w} * {n}))) END"

    @property
    def fails(self) -> str:
        """Return whether it fails, or a value is not a number."""
        n, given = f"{self.name}n", f"{self.name}g"
        return f"({given} > {n} OR ({n} > 1 AND {self.name} IS NULL))"
