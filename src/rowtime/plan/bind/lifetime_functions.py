"""Binds the functions that alter lifetimes, where they are after FROM: ``FROM EXTEND(s, INTERVAL '1' MINUTE)``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import get_args

from sqlglot import exp

from rowtime.core.columns import CUTTING, NEW_END, NEW_START, ROWTIME
from rowtime.core.errors import Place, Refused, refuse
from rowtime.expr.conditions import col
from rowtime.expr.facts import Kind
from rowtime.expr.many_rows import has_aggregates
from rowtime.operators.contract import Column, Operator
from rowtime.operators.events.alter_lifetime import AlterLifetime, How
from rowtime.operators.events.chop import Chop
from rowtime.operators.events.clip import Clip
from rowtime.operators.events.stitch import Stitch
from rowtime.operators.rows.lifetimes import is_lifetimes
from rowtime.operators.rows.select import Item, extended
from rowtime.plan.bind.scope import From, Input, Scope
from rowtime.plan.bind.sources import Binder
from rowtime.sql.generate import to_rowtime
from rowtime.sql.intervals import duration_of
from rowtime.sql.nodes import AtMost, Period, TableArgument, WithinPeriod
from rowtime.sql.places import place_of, refuse_at

FUNCTIONS = {
    "TO_POINT": "TO_POINT(s)",
    "POINT_AT_END": "POINT_AT_END(s)",
    "SHIFT": "SHIFT(s, INTERVAL '1' MINUTE)",
    "EXTEND": "EXTEND(s, INTERVAL '1' MINUTE), or EXTEND(s) forever",
    "ALTER_DURATION": "ALTER_DURATION(s, INTERVAL '1' MINUTE), or with an interval made of the event's columns",
    "QUANTIZE": "QUANTIZE(s, INTERVAL '10' MINUTE), perhaps with an offset",
    "CHOP": "CHOP(s, INTERVAL '1' HOUR), perhaps with an offset",
    "STITCH": "STITCH(s)",
    "CLIP": "CLIP(s, t, key), where key is a column of both, CLIP(s, t WHERE s.k = t.k AND t.v > s.v), "
    "CLIP(s, AT MOST INTERVAL '1' HOUR) or CLIP(s, WITHIN PERIOD (a, b))",
    "POINT_TO_SIGNAL": "POINT_TO_SIGNAL(s, key), or without a key",
}
"""Each function with its syntax."""
READS = {name: 2 if name == "CLIP" else 1 for name in FUNCTIONS}
"""How many leading arguments of each are streams."""


def altering(item: exp.Expr) -> exp.Anonymous | None:
    """Return the call of such a function after FROM; ``None`` for anything else."""
    call = item.this if isinstance(item, exp.Table) else item
    return call if isinstance(call, exp.Anonymous) and call.name.upper() in FUNCTIONS else None


def bind_altering(binder: Binder, call: exp.Anonymous, name: str) -> Operator:
    """Return the operators of a call and of the calls inside it."""
    place, how = place_of(binder.text, call), call.name.upper()
    source = _events(binder, call, 0, name, place)

    def altered(node: Operator, how: How, by: int | None = None, offset: int = 0) -> Operator:
        return AlterLifetime(binder.sources.fresh(f"{name}.{how.lower()}"), node, how, by, offset)

    if how == "CLIP":
        return _clipped(binder, call, source, name)
    if how == "ALTER_DURATION" and len(call.expressions) > 1 and call.expressions[1].find(exp.Column):
        return Computed(binder, call, name).lasting(source, "ALTER_DURATION", call.expressions[1])
    if how == "POINT_TO_SIGNAL":
        points = altered(source, "TO_POINT")
        keys = _keys(call, call.expressions[1:], (points, points), place)
        return Clip(binder.sources.fresh(f"{name}.clip"), altered(points, "EXTEND"), points, keys)
    numbers = [_micros(argument, call, place) for argument in call.expressions[1:]]
    least, most = _ARITY[how]
    if not least <= len(numbers) <= most:
        raise _refused(
            call, f"{how} takes {least if least == most else f'{least} or {most}'} arguments after the stream", place
        )
    by = numbers[0] if numbers else None
    if how in ("ALTER_DURATION", "QUANTIZE", "CHOP") and (by or 0) <= 0:
        raise _refused(call, f"{how} takes a time above zero", place)
    if how == "STITCH":
        return Stitch(binder.sources.fresh(f"{name}.stitch"), source)
    offset = numbers[1] if len(numbers) > 1 else 0
    if how == "CHOP":
        assert by is not None
        return Chop(binder.sources.fresh(f"{name}.chop"), source, by, offset)
    assert how in get_args(How)
    return altered(source, how, by, offset)  # type: ignore[arg-type]


def _clipped(binder: Binder, call: exp.Anonymous, source: Operator, name: str) -> Operator:
    """Bind CLIP, by the starts of another stream, by a length or by a period."""
    limits = [argument for argument in call.expressions[1:] if isinstance(argument, AtMost | WithinPeriod)]
    place, where = place_of(binder.text, call), call.args.get("where")
    if limits and call.expressions[1:] == limits[:1]:
        return _limited(binder, call, limits[0], source, name)
    if limits:
        raise _refused(call, f"{to_rowtime(limits[0])} must be the only argument after the events that it cuts", place)
    other = _events(binder, call, 1, name, place)
    keys = _keys(call, call.expressions[2:], (source, other), place)
    clip = Clip(binder.sources.fresh(f"{name}.clip"), source, other, keys)
    return clip if where is None else Computed(binder, call, name).cut_where(clip, where)


def _limited(binder: Binder, call: exp.Anonymous, limit: exp.Expr, source: Operator, name: str) -> Operator:
    """Bind CLIP by a length or a period: of literals, or of columns of the event."""
    place, computed = place_of(binder.text, call), Computed(binder, call, name)
    if call.args.get("where") is not None:
        raise _refused(call, "WHERE in CLIP needs a second stream: it says which of its events cut", place)
    if isinstance(limit, WithinPeriod):
        return computed.within(source, limit.this)
    if limit.find(exp.Column):
        return computed.lasting(source, "AT_MOST", limit.this)
    by = _micros(limit.this, call, place)
    if by <= 0:
        raise _refused(call, "CLIP takes a time above zero", place)
    return AlterLifetime(binder.sources.fresh(f"{name}.at_most"), source, "AT_MOST", by)


def _keys(
    call: exp.Anonymous, arguments: Sequence[exp.Expr], sides: tuple[Operator, Operator], place: Place
) -> tuple[tuple[str, str], ...]:
    """Return the columns that both sides have under a name, with each side's own spelling."""
    names_by_side = [{column.lower(): column for column in side.emits().names} for side in sides]
    pairs = []
    for argument in arguments:
        name = argument.name.lower()
        if (
            not isinstance(argument, exp.Column)
            or argument.text("table")
            or not all(name in names for names in names_by_side)
        ):
            raise _refused(
                call, f"{to_rowtime(argument)} is not a column of the events that {call.name.upper()} reads", place
            )
        pairs.append((names_by_side[0][name], names_by_side[1][name]))
    return tuple(pairs)


_ARITY = {"TO_POINT": (0, 0), "POINT_AT_END": (0, 0), "SHIFT": (1, 1), "EXTEND": (0, 1), "ALTER_DURATION": (1, 1),
          "QUANTIZE": (1, 2), "CHOP": (1, 2), "STITCH": (0, 0)}  # fmt: skip


def _events(binder: Binder, call: exp.Anonymous, number: int, name: str, place: Place) -> Operator:
    """Return the events of an argument: a name, a query in parentheses, or another call."""
    first = call.expressions[number] if number < len(call.expressions) else None
    if isinstance(first, TableArgument):
        first = first.this
    inner = altering(first) if first is not None else None
    if inner is not None:
        return bind_altering(binder, inner, name)
    if isinstance(first, exp.Column):
        first = exp.Table(this=first.this, db=first.args.get("table"), catalog=first.args.get("db"))
        first.meta.update(call.meta)
    if isinstance(first, exp.Table):
        node = binder.sources.table(binder, first)[0]
    elif isinstance(first, exp.Query):
        node = binder.bind(first, f"{name}.sub").node
    else:
        raise _refused(call, f"{call.name.upper()} needs {'a stream' if number == 0 else 'two streams'}", place)
    if not is_lifetimes(node):
        raise _refused(call, f"{to_rowtime(first)} has rows, not events with lifetimes", place)
    return node


def _micros(argument: exp.Expr, call: exp.Anonymous, place: Place) -> int:
    micros = duration_of(argument)
    if micros is None:
        raise _refused(call, f"{to_rowtime(argument)} is not a fixed length of time", place)
    return micros


def _refused(call: exp.Anonymous, what: str, place: Place) -> Refused:
    return refuse("R194", what, f"Write {FUNCTIONS[call.name.upper()]}.", place)


_NO_LENGTH = (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT, Kind.TEXT, Kind.BOOLEAN, Kind.TIMESTAMP, Kind.DATE)


@dataclass(frozen=True)
class Computed:
    """The expressions over an event in one ``call`` in the query ``name``.

    The computed value is a column below the operator that alters the lifetime. It is computed like any other column: an
    event for which it fails is refused.
    """

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
