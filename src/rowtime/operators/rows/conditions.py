"""Conditions that may fail: their parts stop from left to right, whatever an optimizer would test first.

Spark and DuckDB split a condition at AND: they test a part where its columns are, filter by what must not be NULL, and
drop a row before a part on the left is computed. So a condition that may fail is one expression, which they do not
split. NULL does not stop AND: what stands behind it may be false, and it may fail.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from rowtime.core.columns import PAIR_MATCH, PAIR_ROW, TRIED
from rowtime.expr.conditions import columns_in, conjuncts, never_fails
from rowtime.expr.facts import Kind
from rowtime.frames.called import calls_user
from rowtime.operators.contract import Column as Named
from rowtime.operators.contract import quoted
from rowtime.operators.rows.attempt import NamedSql, with_attempts
from rowtime.sql.generate import to_rowtime, to_spark

if TYPE_CHECKING:
    from rowtime.frames.frame import Frame


def whole(text: str) -> str:
    """Return a condition, in Spark SQL, that no optimizer splits; it is never NULL."""
    return f"CASE WHEN {text} THEN true ELSE false END"


def kinds_of(columns: Iterable[Named]) -> dict[str, Kind]:
    """Return the kinds of columns by name."""
    return {column.name: column.known.kind for column in columns}


def passing(rows: Frame, condition: exp.Expr | None, kinds: Mapping[str, Kind], *, later: bool = False) -> Frame:
    """Return the rows that satisfy a condition; ``later``: Spark may compute it before values below that may fail."""
    if condition is None:
        return rows
    text = to_spark(condition)
    if not later and never_fails(condition, kinds):
        return rows.where(text)
    if rows.translates(whole(text)):
        return rows.where(whole(text))
    stages: list[list[str]] = [[]]
    for part in conjuncts(condition):
        if stages[-1] and calls_user(rows.sparkSession, part):  # it is called for no other rows
            stages.append([])
        stages[-1].append(f"({to_spark(part)})")
    for stage in stages:
        rows = rows.where(whole(text if len(stages) == 1 else " AND ".join(stage)))
    return rows


def met(on: exp.Expr | None, left: Collection[str], kinds: Mapping[str, Kind]) -> list[str]:
    """Return the parts of a join condition in Spark SQL: the equalities, which find the pairs, and the rest as one."""
    if on is None:
        return []
    if never_fails(on, kinds):
        return [f"({to_spark(on)})"]
    parts = conjuncts(on)
    pairing = [part for part in parts if _pairs(part, left)]
    others = [f"({to_spark(part)})" for part in parts if not _pairs(part, left)]
    return [*(f"({to_spark(part)})" for part in pairing), *([whole(" AND ".join(others))] if others else [])]


def sorted_out(
    on: exp.Expr | None, left: Collection[str], types: Mapping[str, str]
) -> tuple[list[str], list[NamedSql]]:
    """Return the equalities of two columns of one of ``types``, which cannot fail, and the other parts.

    Of these, other equalities between the sides come first; where one is NULL, there is no pair. ``left``: the columns
    of the left side.
    """
    parts = conjuncts(on)
    equal = [part for part in parts if _compares(part, types)]
    pairing = [part for part in parts if part not in equal and _pairs(part, left)]
    others = [part for part in parts if part not in equal and part not in pairing]
    first = [(f"coalesce({to_spark(part)}, false)", to_rowtime(part)) for part in pairing]
    return [f"({to_spark(part)})" for part in equal], first + [(to_spark(p), to_rowtime(p)) for p in others]


def equal_columns(on: exp.Expr | None, left: Mapping[str, str], right: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the columns of both sides that a condition requires to be equal, if their types are known and the same.

    ``left`` and ``right``: the types of the sides' columns.
    """
    pairs: list[tuple[str, str]] = []
    for part in conjuncts(on):
        if _compares(part, {**left, **right}):
            one, other = (
                (part.this.name, part.expression.name)
                if part.this.name in left
                else (part.expression.name, part.this.name)
            )
            pairs += [(one, other)] if one in left and other in right else []
    return pairs


def _pairs(part: exp.Expr, left: Collection[str]) -> bool:
    """Return True for an equality between an expression over one side and one over the other."""
    if not isinstance(part, exp.EQ | exp.NullSafeEQ):
        return False
    sides = [columns_in([side]) for side in (part.this, part.expression)]
    return all(sides) and {frozenset(name in left for name in side) for side in sides} == {
        frozenset([True]), frozenset([False])
    }  # fmt: skip


def _compares(part: exp.Expr, types: Mapping[str, str]) -> bool:
    if not isinstance(part, exp.EQ) or not isinstance(part.this, exp.Column):
        return False
    if not isinstance(part.expression, exp.Column):
        return False
    kinds = [types.get(side.name, "").lower() for side in (part.this, part.expression)]
    return bool(kinds[0]) and kinds[0] == kinds[1]


def joined_if(rows: Frame, others: Frame, met: str, parts: Sequence[NamedSql], how: str) -> Frame:
    """Join rows with others by the condition ``met`` and by ``parts``: a pair for which one of these fails is none."""
    numbered = rows.with_column(PAIR_ROW, "bigint", pa.array(range(rows.count()), pa.int64()))
    names = {f"{TRIED}{n}": text for n, (text, _) in enumerate(parts)}
    attempts = with_attempts(numbered.joined(others, met, "inner"), names)
    tests = " AND ".join(f"coalesce({name}.c0, false)" for name in names) or "true"
    matches = attempts.where(tests).selectExpr(f"{PAIR_ROW} AS {PAIR_MATCH}", *map(quoted, others.columns))
    shown = [*rows.columns, *([] if how in ("left_semi", "left_anti") else others.columns)]
    return numbered.joined(matches, f"{PAIR_ROW} = {PAIR_MATCH}", how).selectExpr(*map(quoted, shown))
