"""Binds lifetimes computed by expressions over the event: ``ALTER_DURATION(s, expression)``, and CLIP with columns.

The computed value is a column below the operator that alters the lifetime. It is computed like any other column: an
event for which it fails is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from rowtime.core.columns import CUTTING, NEW_END, NEW_START, ROWTIME
from rowtime.core.errors import Refused
from rowtime.expr.conditions import col
from rowtime.expr.facts import Kind
from rowtime.expr.many_rows import has_aggregates
from rowtime.operators.contract import Column, Operator
from rowtime.operators.events.alter_lifetime import AlterLifetime, How
from rowtime.operators.events.clip import Clip
from rowtime.operators.rows.select import Item, extended
from rowtime.plan.bind.scope import From, Input, Scope
from rowtime.plan.bind.sources import Binder
from rowtime.sql.generate import to_rowtime
from rowtime.sql.nodes import Period, TableArgument
from rowtime.sql.places import refuse_at

_NO_LENGTH = (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT, Kind.TEXT, Kind.BOOLEAN, Kind.TIMESTAMP, Kind.DATE)


@dataclass(frozen=True)
class Computed:
    """The expressions of one ``call`` in the query ``name``."""

    binder: Binder
    call: exp.Anonymous
    name: str

    def lasting(self, source: Operator, how: How, length: exp.Expr) -> Operator:
        """Return events whose end is a length above their start; an event without a length is dropped."""
        bound = self._bound(From.one(source, self._alias(0), {}), length)
        kinds = {column.name: column.known.kind for column in source.emits().columns}
        if isinstance(bound.unnest(), exp.Column) and kinds.get(bound.unnest().name) in _NO_LENGTH:
            what = f"{to_rowtime(length)} is not a length of time"
            hint = f"Give it a unit, for example {to_rowtime(length)} * INTERVAL '1' SECOND."
            raise refuse_at(self.binder.text, length, "R194", what, hint)
        return self._altered(source, how, {NEW_END: exp.Add(this=col(ROWTIME), expression=exp.Paren(this=bound))})

    def within(self, source: Operator, period: Period) -> Operator:
        """Return events clipped to a period."""
        scope = From.one(source, self._alias(0), {})
        start, end = (self._bound(scope, time) for time in (period.this, period.expression))
        return self._altered(source, "WITHIN", {NEW_START: start, NEW_END: end})

    def cut_where(self, clip: Clip, where: exp.Expr) -> Clip:
        """Return the clip, on a condition over the event and the event that cuts it."""
        columns = clip.right.emits().columns
        named = tuple((c.name, Column(f"{CUTTING}{n}", c.type)) for n, c in enumerate(columns))
        left, right = From.one(clip.left, self._alias(0), {}), self._alias(1)
        if right and right.lower() == left.inputs[0].alias.lower():
            hint = f"Read the second one through a view: CREATE VIEW later AS SELECT STREAM * FROM {right}."  # noqa: S608 - a hint
            what = f"both sides of CLIP are called {right}, so its condition cannot tell them apart"
            raise refuse_at(self.binder.text, where, "R194", what, hint)
        bound = self._bound(From(clip.left, (*left.inputs, Input(right, named))), where)
        used = {column.name for column in bound.find_all(exp.Column)}
        if ROWTIME in used:
            hint = "CLIP compares the starts itself. Use a column of the event."
            raise refuse_at(self.binder.text, where, "R194", "ROWTIME is not allowed in the condition of CLIP", hint)
        used_columns = tuple((name, to.name) for name, to in named if to.name in used)
        return replace(clip, where=bound, asked=used_columns)

    def _altered(self, source: Operator, how: How, times: dict[str, exp.Expr]) -> AlterLifetime:
        fresh = self.binder.sources.fresh
        items = (
            Item(Column(name, "TIMESTAMP"), exp.cast(value, "TIMESTAMP", dialect="spark"))
            for name, value in times.items()
        )
        below = extended(fresh(f"{self.name}.times"), source, *items)
        return AlterLifetime(fresh(f"{self.name}.{how.lower()}"), below, how, computed=True)

    def _alias(self, number: int) -> str:
        """Return the name of the events of an argument: the name inside the calls around it."""
        given = self.call.expressions[number]
        while isinstance(given, exp.Anonymous) and given.expressions:
            given = given.expressions[0]
        given = given.this if isinstance(given, TableArgument) else given
        return str(given.alias_or_name) if isinstance(given, exp.Table | exp.Column) else ""

    def _bound(self, source: From, expression: exp.Expr) -> exp.Expr:
        scope = Scope(self.binder.text, source)
        bound = scope.bind(expression)
        if has_aggregates(expression):
            hint = "Aggregate in a view, and join the events with it."
            scope.refuse(
                "R194",
                f"{to_rowtime(expression)} is computed for one event, so it cannot contain an aggregate",
                expression,
                hint,
            )
        if scope.problems:
            raise Refused(*scope.problems)
        return bound
