"""Binds JOIN, LEFT JOIN and LEFT ANTI JOIN of events with lifetimes; NOT EXISTS in WHERE is an anti join, too."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from sqlglot import exp

from rowtime.core.columns import PERIODS, ROWTIME
from rowtime.core.errors import Refused, refuse
from rowtime.expr.conditions import col, conjuncts
from rowtime.operators.contract import Column, Operator
from rowtime.operators.events.anti_join import AntiJoin
from rowtime.operators.events.lifetime_join import LifetimeJoin
from rowtime.operators.rows.lifetimes import is_lifetimes
from rowtime.operators.rows.select import Item, Select, extended, unchanged
from rowtime.operators.streams.union_all import UnionAll
from rowtime.plan.bind.periods import Periods
from rowtime.plan.bind.scope import From, Input, Scope, null_of, unique
from rowtime.plan.bind.sources import Binder
from rowtime.sql.places import place_of, refuse_at


def is_inner(node: exp.Join) -> bool:
    """True for a JOIN that gives pairs alone."""
    return not node.args.get("side") and str(node.args.get("kind") or "").upper() in ("", "INNER", "CROSS")


def starts_of(query: exp.Select) -> frozenset[str]:
    """The names, in lower case, of the inputs whose own ROWTIME a query asks for."""
    asked = (column for column in query.find_all(exp.Column) if column.name.lower() == "rowtime")
    return frozenset(column.text("table").lower() for column in asked if column.text("table"))


def anti_joins(query: exp.Select, text: str) -> list[exp.Join]:
    """The joins that each NOT EXISTS of the WHERE stands for; it is taken out of the query.

    The sub-query reads one stream, view or query, and its WHERE says which events meet.
    """
    where = query.args.get("where")
    conditions = conjuncts(where.this if where else None)
    found = [c for c in conditions if isinstance(c, exp.Not) and isinstance(c.this.unnest(), exp.Exists)]
    joins = [_anti_join(condition.this.unnest(), text) for condition in found]
    if found:
        others = [condition for condition in conditions if condition not in found]
        query.set("where", exp.Where(this=exp.and_(*others, copy=False)) if others else None)
    return joins


def _anti_join(exists: exp.Expr, text: str) -> exp.Join:
    inner = exists.this
    known = {"expressions", "from_", "where", "stream", "kind"}
    clauses = {name for name, value in inner.args.items() if value} - known
    if not isinstance(inner, exp.Select) or inner.args.get("from_") is None or clauses:
        hint = "Write NOT EXISTS (SELECT STREAM * FROM t WHERE t.k = s.k), with a view for anything more."
        raise refuse_at(text, exists, "R190", "NOT EXISTS of such a query is not supported", hint)
    where = inner.args.get("where")
    join = exp.Join(this=inner.args["from_"].this, side="LEFT", kind="ANTI", on=where.this if where else None)
    join.meta.update(exists.meta)
    return join


class LifetimeJoins:
    """The joins of one SELECT over events; ``starts``: the inputs whose own start goes through them as a column."""

    def __init__(self, binder: Binder, name: str, starts: Collection[str]) -> None:
        self.binder, self.name, self.starts = binder, name, starts
        self.text, self.sources = binder.text, binder.sources

    def bind(self, left: From, right: From, node: exp.Join, more: Sequence[exp.Expr] = ()) -> From:
        """The join of what stands before a JOIN with what stands behind it; ``more``: what WHERE adds to ON."""
        kind, side = (str(node.args.get(part) or "").upper() for part in ("kind", "side"))
        self._check(left, right, node, f"{side} {kind}".strip())
        left, right = self._with_start(left), self._with_start(right)
        taken: set[str] = set()
        lefts, rights = self._named(left, taken), self._named(right, taken)
        periods, on = Periods(self.binder, self.name), [*conjuncts(node.args.get("on")), *more]
        (left, right), meets, others = periods.meeting((left, right), (lefts, rights), on, inner=is_inner(node))
        condition = self._condition(From(left.node, (*lefts, *rights)), (lefts, rights), node, others)
        names = tuple(tuple(name for one in inputs for name in named_in(one)) for inputs in (lefts, rights))
        if kind == "ANTI":
            anti = AntiJoin(self._fresh("anti"), left.node, right.node, names, condition)  # type: ignore[arg-type]
            return From(anti, lefts)
        if meets:
            left, right = (periods.with_times(one, number) for number, one in enumerate((left, right)))
            names = tuple((*own, *more) for own, more in zip(names, PERIODS, strict=True))
        made: Operator = LifetimeJoin(self._fresh("join"), left.node, right.node, names, condition)  # type: ignore[arg-type]
        if side == "LEFT":
            made = self._with_unmatched(made, left, right, names, condition)
        return From(periods.paired(made, meets) if meets else made, (*lefts, *rights))

    def _fresh(self, what: str) -> str:
        return self.sources.fresh(f"{self.name}.{what}")

    def _check(self, left: From, right: From, node: exp.Join, kind: str) -> None:
        place = place_of(self.text, node.this)
        if not (is_lifetimes(left.node) and is_lifetimes(right.node)):
            hint = "Declare an EVENT SHAPE for both, or read a view that EMITs the events as rows."
            raise refuse("R197", "one side of the join has lifetimes and the other has not", hint, place)
        if kind not in ("", "INNER", "CROSS", "LEFT", "LEFT OUTER", "ANTI", "LEFT ANTI") or node.args.get("method"):
            hint = "There are JOIN, LEFT JOIN and LEFT ANTI JOIN."
            raise refuse("R190", f"{kind} JOIN of events is not supported yet", hint, place)
        if any(one.window is not None for one in (*left.inputs, *right.inputs)):
            raise refuse("R197", "events have lifetimes and no OVER window", "Use EXTEND(s, interval).", place)

    def _with_start(self, side: From) -> From:
        """A side with its start as a further column, where that is asked for: a pair has a start of its own."""
        one = side.inputs[0]
        if len(side.inputs) > 1 or one.rowtime != ROWTIME or one.alias.lower() not in self.starts:
            return side
        name = unique(f"{one.alias}_ROWTIME", {column.lower() for column in side.node.emits().names})
        start = Item(Column(name, "TIMESTAMP"), col(ROWTIME))
        node = extended(self._fresh("starts"), side.node, start)
        return replace(side, node=node, inputs=(replace(one, rowtime=name),))

    def _named(self, source: From, taken: set[str]) -> tuple[Input, ...]:
        """The inputs with columns under names that are unique in the join."""
        inputs = []
        for one in source.inputs:
            columns = tuple((name, Column(unique(f"{one.alias}_{name}", taken), c.type)) for name, c in one.columns)
            time = ROWTIME if one.rowtime == ROWTIME else unique(f"{one.alias}_ROWTIME", taken)
            inputs.append(Input(one.alias, columns, time))
        return tuple(inputs)

    def _condition(
        self, both: From, sides: tuple[tuple[Input, ...], tuple[Input, ...]], node: exp.Join, on: Sequence[exp.Expr]
    ) -> exp.Expr | None:
        scope = Scope(self.text, both)
        bound = exp.and_(*map(scope.bind, on), copy=False) if on else None
        for identifier in node.args.get("using") or ():
            pair = [
                scope.bind(exp.column(exp.to_identifier(identifier.name), table=inputs[0].alias)) for inputs in sides
            ]
            equal = exp.EQ(this=pair[0], expression=pair[1])
            bound = equal if bound is None else exp.And(this=bound, expression=equal)
        if bound is not None and any(column.name == ROWTIME for column in bound.find_all(exp.Column)):
            hint = (
                "Lifetimes meet by themselves; alter them with SHIFT, EXTEND or TO_POINT. "
                f"The start of one side is {both.inputs[0].alias}.ROWTIME."
            )
            scope.refuse("R197", "ROWTIME of the pair does not stand in the condition of a join of events", node, hint)
        if scope.problems:
            raise Refused(*scope.problems)
        return bound

    def _with_unmatched(
        self, joined: Operator, left: From, right: From, names: tuple[tuple[str, ...], ...], on: exp.Expr | None
    ) -> Operator:
        """LEFT JOIN: the pairs, and the left events alone while they have none."""
        anti = AntiJoin(self._fresh("anti"), left.node, right.node, names, on)  # type: ignore[arg-type]
        columns = joined.emits().columns
        nothing = [Item(replace(c), null_of(c.type)) for c in columns[len(names[0]) :]]
        lonely = Select(self._fresh("unmatched"), anti, (*unchanged(columns[: len(names[0])]), *nothing))
        return UnionAll(self._fresh("outer"), (joined, lonely))


def named_in(one: Input) -> tuple[str, ...]:
    """What the columns of an input are called in a join, with that of its start where it goes along."""
    return (*(column.name for _, column in one.columns), *((one.rowtime,) if one.rowtime != ROWTIME else ()))
