"""Sub-queries of a static table as values in expressions: one value, or the truth of IN and EXISTS.

The value is a column of a LEFT JOIN with a query over the table, in which every row finds at most one row. IN and
EXISTS use counts: how many rows are equal, how many there are, and how many of them are not NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from rowtime.expr.many_rows import is_aggregate
from rowtime.plan.bind.correlation import Inner, listed_for, placed
from rowtime.sql.generate import to_rowtime
from rowtime.sql.places import refuse_at

Pair = tuple[exp.Expr, exp.Expr]
"""An equality: the expression over the table, and the one over the outer row."""
_ZERO = ("COUNT", "COUNT_IF")
_NULL = ("MAX", "MIN", "SUM", "AVG", "MAX_BY", "MIN_BY", "BOOL_AND", "BOOL_OR", "EVERY", "SOME", "ANY")
"""Aggregates by their value for no rows: 0 or NULL."""


@dataclass(frozen=True)
class TableValues:
    """Makes ``joins`` and their columns; ``fresh`` names their inputs."""

    text: str
    fresh: Callable[[str], str]
    joins: list[exp.Join]

    def value(self, inner: Inner, node: exp.Expr) -> exp.Expr:
        """Return the replacement of a sub-query that is one value. Raises ``Refused`` (R159, R190)."""
        listed = inner.listed()
        if len(listed) != 1:
            what = f"a sub-query that is used as a value needs one column, and this one has {len(listed)} columns"
            raise refuse_at(self.text, node, "R159", what, "Select one column.")
        if not inner.is_static:
            what = "a sub-query of a stream cannot be used as a value"
            hint = "Join its last row: LEFT JOIN b FOR SYSTEM_TIME AS OF a.ROWTIME ON a.k = b.k; events: LEFT JOIN b."
            raise refuse_at(self.text, node, "R190", what, hint)
        value, pairs = listed[0].unalias(), self._pairs(inner)
        if not inner.grouped or not pairs:
            derived = inner.derived(self.fresh("value"))
            keys = [derived.column(mine) for mine, _ in pairs]
            column = derived.column(value)
            self._join(derived.subquery(tuple(key.name for key in keys)), keys, pairs)
            return placed(exp.paren(column), node)
        if inner.query.args.get("group") or inner.query.args.get("having"):
            raise inner.refused("GROUP BY together with a reference to the outer row", inner.correlated[0])
        whole = exp.Paren(this=value.copy())
        calls = [part for part in whole.find_all(exp.Expr) if is_aggregate(part) and not _in_aggregate(part)]
        for call, column in zip(calls, self._aggregates(inner, pairs, calls), strict=True):
            call.replace(column)
        return placed(whole, node)

    def test(self, inner: Inner, node: exp.Expr) -> exp.Expr:
        """Return the truth of IN or EXISTS: true, false, or NULL if a NULL may be the value. Raises ``Refused``."""
        if inner.grouped:
            raise inner.refused("GROUP BY or an aggregate, beside OR or outside of WHERE,", inner.query)
        every, pairs = exp.Count(this=exp.Star()), self._pairs(inner)
        if isinstance(node, exp.Exists):
            [count] = self._aggregates(inner, pairs, [every])
            return placed(exp.paren(_some(count)), node)
        value = node.this
        [column] = listed_for(inner, [value], node)
        count, known_count = self._aggregates(inner, pairs, [every, exp.Count(this=column.copy())])
        [equal] = self._aggregates(inner, [*pairs, (column, exp.paren(value.copy()))], [every])
        is_null = exp.Is(this=exp.paren(value.copy()), expression=exp.null())
        unknown = exp.or_(is_null, exp.GT(this=count.copy(), expression=known_count))
        cases = [
            exp.If(this=_some(equal), true=exp.true()),
            exp.If(this=exp.and_(_some(count), unknown), true=exp.cast(exp.null(), "BOOLEAN")),
        ]
        return placed(exp.paren(exp.Case(ifs=cases, default=exp.false())), node)

    def _pairs(self, inner: Inner) -> list[Pair]:
        """Return the sub-query's conditions on the outer row: equalities."""
        copies = []
        for part in inner.correlated:
            sides = [(part.this, part.expression), (part.expression, part.this)] if isinstance(part, exp.EQ) else []
            pair = next(
                (candidate for candidate in sides if inner.owns(candidate[0]) and not inner.asks(candidate[1])), None
            )
            if pair is None:
                what = "a sub-query that is used as a value can compare with the outer row by equality only"
                raise refuse_at(
                    self.text,
                    part,
                    "R190",
                    what,
                    f"Write WHERE {inner.alias}.k = s.k, with one column from each query.",
                )
            copies.append((pair[0].copy(), pair[1].copy()))
        return copies

    def _join(self, source: exp.Subquery, keys: Sequence[exp.Expr], pairs: Sequence[Pair]) -> None:
        tests = [exp.EQ(this=outer.copy(), expression=key.copy()) for key, (_, outer) in zip(keys, pairs, strict=True)]
        self.joins.append(exp.Join(this=source, side="LEFT", on=exp.and_(*tests) if tests else exp.true()))

    def _aggregates(self, inner: Inner, pairs: Sequence[Pair], calls: Sequence[exp.Expr]) -> list[exp.Expr]:
        """Return aggregates of the rows that belong to an outer row; without rows, COUNT is 0 and others are NULL."""
        derived, values = inner.derived(self.fresh("value")), []
        keys = [derived.column(mine) for mine, _ in pairs]
        derived.group = [mine.copy() for mine, _ in pairs]
        for call in calls:
            name = _function(call)
            if name not in (*_ZERO, *_NULL):
                what = f"{to_rowtime(call)} of the rows that belong to an outer row is not supported"
                raise refuse_at(self.text, call, "R190", what, "Use COUNT, SUM, AVG, MIN or MAX.")
            column = derived.column(call)
            zero = [exp.Literal.number(0)]
            values.append(exp.Coalesce(this=column, expressions=zero) if name in _ZERO else column)
        self._join(derived.subquery(None), keys, pairs)
        return values


def _some(count: exp.Expr) -> exp.Expr:
    return exp.GT(this=count.copy(), expression=exp.Literal.number(0))


def _function(call: exp.Expr) -> str:
    """Return the name of an aggregate, without expressions around it."""
    while isinstance(call, exp.Filter | exp.IgnoreNulls | exp.WithinGroup):
        call = call.this
    if isinstance(call, exp.Anonymous):
        return call.name.upper()
    return call.sql_name().upper() if isinstance(call, exp.Func) else ""


def _in_aggregate(call: exp.Expr) -> bool:
    return call.parent is not None and is_aggregate(call.parent)
