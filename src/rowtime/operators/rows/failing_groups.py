"""Aggregates that fail for the rows of a group: these groups are found, so that the others get their values.

Spark computes an aggregate for all groups in one job and ends it with the first group that fails. No expression around
an aggregate prevents that. So in a tick in which a value has failed, CORR is computed in a way that cannot fail, and
the other aggregates are tried: if they fail, for half of the groups, and so on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from rowtime.core.columns import FAILING_GROUP, GROUP_NUMBER
from rowtime.core.errors import causes
from rowtime.expr.aggregates import ORDERED, ordered_text, split
from rowtime.frames.local import LocalFrame, is_local
from rowtime.frames.queries import Uncomputed
from rowtime.frames.spark_groups import grouped_by_spark
from rowtime.frames.words import Untranslated
from rowtime.operators.rows.collations import grouped
from rowtime.sql.generate import to_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OF_A_VALUE = re.compile(
    r"SQLSTATE: (?:22[0-9A-Z]{3}|23505|54000|P0001)"  # data, a key twice in a map, a list too long, `raise_error`
    r"|INVALID_FORMAT\.|UNSUPPORTED_FEATURE\.AES_MODE|DATETIME_PATTERN_RECOGNITION|of MapData must have the same length"
    r"|Illegal sequence boundaries|java\.util\.regex\.PatternSyntax|java\.util\.\w*Format\w*Exception"
    r"|java\.lang\.(?:Arithmetic|ClassCast|IllegalArgument|NegativeArraySize|NumberFormat|\w*IndexOutOfBounds)Exception"
    r"|java\.lang\.reflect\.InvocationTarget|UDFXPathUtil|com\.fasterxml\.jackson\."
)
"""What Spark says of a value, with a state of SQL or as Java does: a text that is no pattern, a step of 0."""
_NEVER_FAIL = (exp.Count, exp.Min, exp.Max, *ORDERED)


def of_a_value(error: BaseException) -> bool:
    """Return True for an error of Spark that says that something cannot be computed for a value."""
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # noqa: PLC0415 - no types; as below
    from pyspark import errors  # noqa: PLC0415 - `check` does without Spark

    javas = (errors.ArithmeticException, errors.ArrayIndexOutOfBoundsException, errors.DateTimeException)
    if isinstance(error, (*javas, errors.IllegalArgumentException, errors.NumberFormatException)):
        return True  # the message does not have Java's name
    return isinstance(error, errors.PySparkException | Py4JJavaError) and _OF_A_VALUE.search(str(error)) is not None


def computable(
    rows: DataFrame, by: Sequence[str], calls: Mapping[str, exp.Expr]
) -> tuple[DataFrame, dict[str, str], dict[str, str]]:
    """Return the rows, the aggregates ``calls`` as Spark SQL, and by name the conditions that one fails, if it can.

    An aggregate skips the rows of the groups ``by`` for which it fails; the condition is an aggregate too.
    """
    texts = {name: ordered_text(call) for name, call in calls.items()}
    tried = {name: texts[name] for name, call in calls.items() if not isinstance(split(call)[1], _NEVER_FAIL)}
    fails = dict.fromkeys(tried, "false")
    if not tried or _computes(rows, by, [*tried.values()]):
        return rows, texts, fails
    number = f"dense_rank() OVER (ORDER BY {', '.join(by)})" if by else "1"
    rows = rows.selectExpr("*", f"{number} AS {GROUP_NUMBER}")
    last = grouped(rows, [], [f"max({GROUP_NUMBER}) AS {GROUP_NUMBER}"]).collect()[0][0]
    for name, text in tried.items():
        failing = [*_failing(rows, by, text, 1, last + 1)]
        if failing:
            bad = f"{FAILING_GROUP}{name}"
            rows = rows.selectExpr("*", f"{GROUP_NUMBER} IN ({', '.join(map(str, failing))}) AS {bad}")
            texts[name], fails[name] = ordered_text(_filtered(calls[name], bad)), f"max({bad})"
    return rows, texts, fails


def _failing(rows: DataFrame, by: Sequence[str], text: str, first: int, end: int) -> Iterator[int]:
    """Yield the numbers in [first, end) of the groups for which an aggregate fails."""
    some = rows.where(f"{GROUP_NUMBER} >= {first} AND {GROUP_NUMBER} < {end}")
    if _computes(some, by, [text]):
        return
    if end - first == 1:
        if is_local(some) and _computed_by_spark(some, by, text):
            raise Uncomputed(text)  # only DuckDB fails
        yield first
        return
    middle = (first + end) // 2
    yield from _failing(rows, by, text, first, middle)
    yield from _failing(rows, by, text, middle, end)


def _computes(rows: DataFrame, by: Sequence[str], texts: Sequence[str]) -> bool:
    try:
        groups = grouped(rows, by, [f"{text} AS __t{n}" for n, text in enumerate(texts)])
        if is_local(groups):
            groups.count()
            return True
    except Uncomputed:
        return False
    try:
        groups._jdf.queryExecution().toRdd().count()  # noqa: SLF001 - a writer would report the failure in Spark's log
    except Exception as error:
        if not any(map(of_a_value, causes(error))):
            raise
        return False
    return True


def _computed_by_spark(rows: LocalFrame, by: Sequence[str], text: str) -> bool:
    try:
        grouped_by_spark(rows, by, [f"{text} AS __t0"], every=True)
    except (Uncomputed, Untranslated):
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
