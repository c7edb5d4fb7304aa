"""Join conditions that may fail: which of their parts cannot fail, and whether the others hold for a pair.

A pair matches if every part is true. If no part is false and one cannot be computed, the pair is refused, and counts as
no match. So the result depends on the pair alone, whatever Spark tests first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from sqlglot import exp

from rowtime.expr.conditions import conjuncts
from rowtime.operators.contract import functions as F
from rowtime.operators.rows.attempt import NamedSql, attempted
from rowtime.sql.generate import to_rowtime, to_spark

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession


def sorted_out(on: exp.Expr | None, types: Mapping[str, str]) -> tuple[list[str], list[NamedSql]]:
    """Return the equalities of two columns of one of ``types``, which cannot fail, and the other parts."""
    equal: list[exp.Expr] = []
    others: list[exp.Expr] = []
    for part in conjuncts(on):
        (equal if _compares(part, types) else others).append(part)
    return [f"({to_spark(part)})" for part in equal], [(to_spark(part), to_rowtime(part)) for part in others]


def _compares(part: exp.Expr, types: Mapping[str, str]) -> bool:
    if not isinstance(part, exp.EQ) or not isinstance(part.this, exp.Column):
        return False
    if not isinstance(part.expression, exp.Column):
        return False
    kinds = [types.get(side.name, "").lower() for side in (part.this, part.expression)]
    return bool(kinds[0]) and kinds[0] == kinds[1]


def holds(spark: SparkSession, parts: Sequence[NamedSql]) -> Column:
    """Return whether all parts can be computed and are true."""
    tried = (F.coalesce(attempted(spark, [text])["c0"], F.lit(False)) for text, _ in parts)  # noqa: FBT003
    return reduce(lambda one, other: one & other, tried, F.lit(True))  # noqa: FBT003
