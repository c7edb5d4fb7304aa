"""Binds joins of events with lifetimes, with each other and with tables; a sub-query in WHERE is such a join too.

An outer join is the pairs and, for each kept side, an anti-join. A semi-join is the anti-join of the left events with
the result of their anti-join: whether an event has a partner at a time depends on its payload and the time.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from sqlglot import exp

from rowtime.core.columns import PERIODS, ROWTIME
from rowtime.core.errors import Refused, refuse
from rowtime.expr.conditions import col, conjuncts
from rowtime.operators.contract import Column, Operator
from rowtime.operators.events.anti_join import AntiJoin
from rowtime.operators.events.event_table_join import EventTableJoin
from rowtime.operators.events.lifetime_join import LifetimeJoin
from rowtime.operators.joins.of_rows import Side
from rowtime.operators.rows.lifetimes import is_lifetimes
from rowtime.operators.rows.select import Item, Select, extended
from rowtime.operators.streams.table import is_table
from rowtime.operators.streams.table_versions import refreshed
from rowtime.operators.streams.union_all import UnionAll
from rowtime.plan.bind.correlation import is_derived
from rowtime.plan.bind.join_range import unique
from rowtime.plan.bind.periods import Periods, timed
from rowtime.plan.bind.scope import From, Input, Scope, null_of
from rowtime.plan.bind.sources import Binder
from rowtime.plan.bind.values_below import computed_below
from rowtime.sql.places import place_of, refuse_at


def is_inner(node: exp.Join) -> bool:
    """Return True for a JOIN that gives only pairs."""
    return not node.args.get("side") and str(node.args.get("kind") or "").upper() in ("", "INNER", "CROSS")


def starts_of(query: exp.Select) -> frozenset[str]:
    """Return the lower-case names of the inputs whose own ROWTIME a query uses."""
    columns = (column for column in query.find_all(exp.Column) if column.name.lower() == "rowtime")
    return frozenset(column.text("table").lower() for column in columns if column.text("table"))


_KINDS = ("", "INNER", "CROSS", "ANTI", "LEFT ANTI", "SEMI", "LEFT SEMI",
          *(f"{side}{outer}" for side in ("LEFT", "RIGHT", "FULL") for outer in ("", " OUTER")))  # fmt: skip
_ALONE = {"SEMI": "left_semi", "ANTI": "left_anti"}


class LifetimeJoins:
    """The joins of one SELECT over events; ``starts``: the inputs whose own start is passed through as a column."""

    def __init__(self, binder: Binder, name: str, starts: Collection[str]) -> None:
        self.binder, self.name, self.starts = binder, name, starts
        self.text, self.sources = binder.text, binder.sources

    def bind(self, left: From, right: From, node: exp.Join, more: Sequence[exp.Expr] = ()) -> From:
        """Return the join of the input before a JOIN with the one after it; ``more``: conditions from WHERE."""
        kind, side = (str(node.args.get(part) or "").upper() for part in ("kind", "side"))
        side = side or ("LEFT" if kind in _ALONE else "")
        tabled = is_table(right.node) and is_lifetimes(left.node)
        how = f"{node.args.get('method') or ''} {side} {kind}".strip()
        self._check(left, right, node, how, tabled=tabled)
        left, right = self._with_start(left), right if tabled else self._with_start(right)
        taken: set[str] = set()
        lefts, rights = self._named(left, taken), self._named(right, taken)
        periods, on = Periods(self.binder, self.name), [*_conditions(node), *more]
        if tabled:
            condition = self._condition(From(left.node, (*lefts, *rights)), (lefts, rights), node, on)
            return self._with_table((left, right), (lefts, rights), condition, node)
        alone = [] if is_inner(node) else [n for n, word in enumerate(("RIGHT", "LEFT")) if side != word]
        (left, right), meets, others = periods.meeting((left, right), (lefts, rights), on, alone)
        condition = self._condition(From(left.node, (*lefts, *rights)), (lefts, rights), node, others)
        names = tuple(tuple(name for source in inputs for name in named_in(source)) for inputs in (lefts, rights))
        if kind in ("ANTI", "SEMI"):
            both = left.node, right.node
            anti = AntiJoin(self._fresh("anti"), *both, names, condition, refuses_pairs=True)  # type: ignore[arg-type]
            return From(anti if kind == "ANTI" else self._met(left.node, anti, names[0], taken), lefts)
        if meets:
            left, right = (periods.with_times(source, number) for number, source in enumerate((left, right)))
            names = tuple((*own, *more) for own, more in zip(names, PERIODS, strict=True))
        joined: Operator = LifetimeJoin(self._fresh("join"), left.node, right.node, names, condition)  # type: ignore[arg-type]
        if alone:
            lonely = [self._unmatched(joined, (left, right), names, condition, n) for n in alone]
            joined = UnionAll(self._fresh("outer"), (joined, *lonely))
        return From(periods.paired(joined, meets) if meets else joined, (*lefts, *rights))

    def _fresh(self, what: str) -> str:
        return self.sources.fresh(f"{self.name}.{what}")

    def _check(self, left: From, right: From, node: exp.Join, kind: str, *, tabled: bool) -> None:
        place = place_of(self.text, node.this)
        if tabled:
            if refreshed(right.node):
                hint = "Leave REFRESH EVERY out of its definition, or join the rows before they become events."
                raise refuse(
                    "R190", "joining events with a table that has REFRESH EVERY is not supported yet", hint, place
                )
            if kind not in _KINDS or kind.startswith(("RIGHT", "FULL")):
                hint = "Use JOIN, LEFT JOIN, LEFT SEMI JOIN or LEFT ANTI JOIN, with the events on the left."
                raise refuse("R190", f"{kind} JOIN of events with a table is not supported yet", hint, place)
            about = [part for part in conjuncts(node.args.get("on")) if timed(part)]
            if about:
                what, hint = (
                    "a table has no lifetimes to compare with",
                    "Move it to WHERE in a query over a view of the join.",
                )
                raise refuse_at(self.text, about[0], "R198", what, hint)
            return
        if is_table(left.node):
            hint = "Put the events first: FROM events JOIN table ON …."
            raise refuse("R197", "the table comes before the events that it is joined with", hint, place)
        if not (is_lifetimes(left.node) and is_lifetimes(right.node)):
            hint = "Declare an EVENT SHAPE for both, or read a view that EMITs the events as rows."
            raise refuse("R197", "one side of the join has lifetimes and the other does not", hint, place)
        if kind not in _KINDS:
            hint = "Use JOIN, LEFT JOIN, RIGHT JOIN, FULL JOIN, LEFT SEMI JOIN or LEFT ANTI JOIN."
            raise refuse("R190", f"{kind} JOIN of events is not supported yet", hint, place)
        if any(source.window is not None for source in (*left.inputs, *right.inputs)):
            raise refuse(
                "R197", "events have lifetimes, so they cannot have an OVER window", "Use EXTEND(s, interval).", place
            )

    def _with_start(self, side: From) -> From:
        """Return a side with its start as a further column, if it is used: a pair has a start of its own."""
        source = side.inputs[0]
        if len(side.inputs) > 1 or source.rowtime != ROWTIME or source.alias.lower() not in self.starts:
            return side
        name = unique(f"{source.alias}_ROWTIME", {column.lower() for column in side.node.emits().names})
        start = Item(Column(name, "TIMESTAMP"), col(ROWTIME))
        node = extended(self._fresh("starts"), side.node, start)
        return replace(side, node=node, inputs=(replace(source, rowtime=name),))

    def _named(self, source: From, taken: set[str]) -> tuple[Input, ...]:
        """Return the inputs with column names that are unique in the join."""
        inputs = []
        for part in source.inputs:
            columns = tuple((name, Column(unique(f"{part.alias}_{name}", taken), c.type)) for name, c in part.columns)
            time = part.rowtime if part.rowtime in (ROWTIME, "") else unique(f"{part.alias}_ROWTIME", taken)
            inputs.append(replace(part, columns=columns, rowtime=time))
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
                "The join compares lifetimes itself; change them with SHIFT, EXTEND or TO_POINT. "
                f"The start of one side is {both.inputs[0].alias}.ROWTIME."
            )
            scope.refuse(
                "R197", "the ROWTIME of the pair is not allowed in the condition of a join of events", node, hint
            )
        if scope.problems:
            raise Refused(*scope.problems)
        return bound

    def _unmatched(
        self,
        joined: Operator,
        sides: tuple[From, From],
        names: tuple[tuple[str, ...], ...],
        on: exp.Expr | None,
        kept: int,
    ) -> Operator:
        """Return the events of one side while they have no pair, with NULL in the columns of the other side."""
        kept_side, lost_side = sides[kept].node, sides[1 - kept].node
        anti = AntiJoin(self._fresh("anti"), kept_side, lost_side, (names[kept], names[1 - kept]), on)
        own = set(names[kept])
        items = (Item(c, col(c.name)) if c.name in own else Item(c, null_of(c.type)) for c in joined.emits().columns)
        return Select(self._fresh("unmatched"), anti, tuple(items))

    def _met(self, left: Operator, alone: AntiJoin, names: tuple[str, ...], taken: set[str]) -> AntiJoin:
        """Return the left events while they are not alone: without the times at which one of their payload is."""
        flags = tuple(unique(f"{name}_alone", taken) for name in names)
        types = [column.type.upper() for column in left.emits().columns]
        same = [
            exp.NullSafeEQ(this=_as_written(col(one), kind), expression=_as_written(col(other), kind))
            for one, other, kind in zip(names, flags, types, strict=False)
        ]
        on = exp.and_(*same, copy=False) if same else None
        return AntiJoin(self._fresh("semi"), left, alone, (names, flags), on)

    def _with_table(
        self, sides: tuple[From, From], named: tuple[tuple[Input, ...], ...], on: exp.Expr | None, node: exp.Join
    ) -> From:
        """Return each event once per matching row of a table; or once, for LEFT, SEMI and ANTI."""
        alone = _ALONE.get(str(node.args.get("kind") or "").upper(), "")
        outer = not alone and str(node.args.get("side") or "").upper() == "LEFT"
        below = sides[0].node
        own, columns_of_table = (
            tuple(zip(side.node.emits().names, (name for source in inputs for name in named_in(source)), strict=True))
            for side, inputs in zip(sides, named, strict=True)
        )
        if is_derived(node):
            alias = named[1][0].alias
            below, own, on = computed_below(below, own, on, lambda: self._fresh(f"{alias}.asked"), f"{alias}_asked")
        nodes, parts = (below, sides[1].node), (Side(own), Side(columns_of_table))
        joined = EventTableJoin(self._fresh("join"), nodes, parts, on, outer=outer, alone=alone)
        return From(joined, named[0] if alone else (*named[0], *named[1]))


def _conditions(node: exp.Join) -> list[exp.Expr]:
    """Return the conditions of ON; a sub-query without a condition has TRUE."""
    return [part for part in conjuncts(node.args.get("on")) if part != exp.true() or not node.meta.get("subquery")]


def _as_written(column: exp.Expr, kind: str) -> exp.Expr:
    """Return a column whose equal values are identical: for texts under a collation, their bytes."""
    return exp.cast(column, "BINARY", dialect="spark") if "COLLATE" in kind else column


def named_in(source: Input) -> tuple[str, ...]:
    """Return an input's column names in a join, with its start if that is passed through."""
    return (
        *(column.name for _, column in source.columns),
        *((source.rowtime,) if source.rowtime not in (ROWTIME, "") else ()),
    )
