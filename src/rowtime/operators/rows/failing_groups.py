"""Aggregates that fail for the rows of a group: these groups are found, so that the others get their values.

Spark computes an aggregate for all groups in one job and ends it with the first group that fails. No expression around
an aggregate prevents that. So in a tick in which a value has failed, CORR is computed in a way that cannot fail, and
the other aggregates are tried: if they fail, for half of the groups, and so on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from rowtime.core.columns import FAILING_GROUP, GROUP_NUMBER
from rowtime.core.errors import causes
from rowtime.expr.aggregates import ORDERED, ordered_text, split
from rowtime.frames.attempted import TRIED_VALUE
from rowtime.frames.failures import of_a_value
from rowtime.frames.local import is_local
from rowtime.frames.spark_groups import tried_groups
from rowtime.operators.rows.collations import grouped, with_one_zero
from rowtime.sql.generate import quoted, to_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NEVER_FAIL = (exp.Count, exp.Min, exp.Max, *ORDERED)


def computed_groups(
    rows: DataFrame, by: Sequence[str], calls: Mapping[str, exp.Expr], more: Sequence[str]
) -> DataFrame:
    """Return the groups ``by`` of rows, with ``calls`` by name, and ``more`` aggregates, which cannot fail.

    A call that fails for a group is NULL. If it can fail, a column with ``x`` behind the name says whether it does.
    """
    texts = {name: ordered_text(call) for name, call in calls.items()}
    tried = [name for name, call in calls.items() if not isinstance(split(call)[1], _NEVER_FAIL)]
    if not is_local(rows):
        return _by_spark(rows, by, calls, texts, tried, more)
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


def _by_spark(  # noqa: PLR0913 - the groups and what is computed for them
    rows: DataFrame,
    by: Sequence[str],
    calls: Mapping[str, exp.Expr],
    texts: dict[str, str],
    tried: Sequence[str],
    more: Sequence[str],
) -> DataFrame:
    fails = dict.fromkeys(tried, "false")
    if tried and not _computes(rows, by, [texts[name] for name in tried]):
        number = f"dense_rank() OVER (ORDER BY {', '.join(by)})" if by else "1"
        rows = rows.selectExpr("*", f"{number} AS {GROUP_NUMBER}")
        last = grouped(rows, [], [f"max({GROUP_NUMBER}) AS {GROUP_NUMBER}"]).collect()[0][0]
        for name in tried:
            failing = [*_failing(rows, by, texts[name], 1, last + 1)]
            if failing:
                bad = f"{FAILING_GROUP}{name}"
                rows = rows.selectExpr("*", f"{GROUP_NUMBER} IN ({', '.join(map(str, failing))}) AS {bad}")
                texts[name], fails[name] = ordered_text(_filtered(calls[name], bad)), f"max({bad})"
    flags = (f"{text} AS {name}x" for name, text in fails.items())
    return grouped(rows, by, [*(f"{text} AS {name}" for name, text in texts.items()), *flags, *more])


def _failing(rows: DataFrame, by: Sequence[str], text: str, first: int, end: int) -> Iterator[int]:
    """Yield the numbers in [first, end) of the groups for which an aggregate fails."""
    some = rows.where(f"{GROUP_NUMBER} >= {first} AND {GROUP_NUMBER} < {end}")
    if _computes(some, by, [text]):
        return
    if end - first == 1:
        yield first
        return
    middle = (first + end) // 2
    yield from _failing(rows, by, text, first, middle)
    yield from _failing(rows, by, text, middle, end)


def _computes(rows: DataFrame, by: Sequence[str], texts: Sequence[str]) -> bool:
    groups = grouped(rows, by, [f"{text} AS __t{n}" for n, text in enumerate(texts)])
    try:
        groups._jdf.queryExecution().toRdd().count()  # noqa: SLF001 - a writer would report the failure in Spark's log
    except Exception as error:
        if not any(map(of_a_value, causes(error))):
            raise
        return False
    return True


def _filtered(call: exp.Expr, bad: str) -> exp.Expr:
    condition, inner = split(call)
    keeps = f"NOT {bad}" + (f" AND ({condition})" if condition else "")
    return exp.Filter(this=inner.copy(), expression=exp.Where(this=exp.maybe_parse(keeps, dialect="spark")))


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
            "v": f"var_pop({x})",
            "w": f"var_pop({y})",
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
