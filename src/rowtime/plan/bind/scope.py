"""Scope: the meaning of the names in one SELECT, and its expressions with the names resolved."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from sqlglot import exp

from rowtime.core.columns import ARRIVAL, BOUND_BEFORE, ROWTIME
from rowtime.core.errors import Problem
from rowtime.expr.conditions import col, columns_in
from rowtime.expr.facts import ROWTIME_FACT, Fact, Kind
from rowtime.expr.grids import on_grid
from rowtime.expr.monotonicity import OF_SESSION, is_constant, non_deterministic
from rowtime.operators.contract import Column, Operator, walk
from rowtime.operators.over.value_clocks import MARK
from rowtime.operators.rows.lifetimes import is_lifetimes
from rowtime.operators.rows.select import Item
from rowtime.plan.bind.correlation import instead_of
from rowtime.plan.bind.kept_months import MONTHS, MONTHS_HINT, UNTYPED, UNTYPED_HINT, kept_months, of_months
from rowtime.plan.bind.struct_fields import missing_fields
from rowtime.plan.bind.suggestions import suggestion
from rowtime.plan.bind.time_formats import refused_patterns
from rowtime.plan.bind.windows import GROUP_FUNCTIONS, LATER, WINDOW_TIME, Windows, is_value
from rowtime.sql.dialect import Rowtime
from rowtime.sql.foreign_calls import foreign_call, word
from rowtime.sql.generate import to_rowtime, to_spark
from rowtime.sql.nodes import CurrentRowTimestamp, IfGiven, Lifetime, LifetimeEdge, Monotonic, PeriodPredicate, Windowed
from rowtime.sql.places import place_of, position, span

_OF_THE_INPUT = "The result of a stream may depend only on its input; use a column instead."
_FIXED = "CURRENT_TIMESTAMP is fixed at the first start: date_format(CURRENT_TIMESTAMP, 'HH:mm:ss')."
_TIMES_OF_DAY = {"CURRENT_TIME": _FIXED, "LOCALTIME": _FIXED}


@dataclass(frozen=True)
class Input:
    """One input under its name: its columns as (name in the query, column of the operator), and its rowtime's column.

    ``window``: how long its rows stay in the window of a join, µs. ``lag``: how far its rowtime may be below that of
    the joined row. ``optional``: it is missing if an outer join found no match. ``hidden``: it is the input of a
    sub-query, which has no name in the query.
    """

    alias: str
    columns: tuple[tuple[str, Column], ...]
    rowtime: str = ROWTIME
    window: int | None = None
    lag: int = 0
    optional: bool = False
    hidden: bool = False


@dataclass(frozen=True)
class From:
    """The input of a SELECT: one operator with the columns of all inputs; ``merged``: the meaning of those of USING.

    ``lineage``: columns that are functions of the rowtime; ``own``: that equal the rowtime (a column) of their input,
    or may be NULL instead (``optional``).
    """

    node: Operator
    inputs: tuple[Input, ...]
    lineage: Mapping[str, exp.Expr] = field(default_factory=dict)
    merged: Mapping[str, exp.Expr] = field(default_factory=dict)
    own: Mapping[str, str] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()

    @property
    def shown(self) -> list[Input]:
        """Return the inputs that the query names."""
        return [source for source in self.inputs if not source.hidden]

    @classmethod
    def one(cls, node: Operator, alias: str, lineage: Mapping[str, exp.Expr]) -> From:
        """Return a single input, with its own column names."""
        return cls(node, (Input(alias, tuple((column.name, column) for column in node.emits().columns)),), lineage)


@dataclass
class Scope:
    """The inputs of a SELECT, and the problems found so far."""

    text: str
    source: From
    problems: list[Problem] = field(default_factory=list)
    gate: Callable[[], str] = str
    promises: dict[str, tuple[str, exp.Expr]] = field(default_factory=dict)
    """The promises of MONOTONIC: text -> the name of the order check, and the expression."""
    windows: Windows = field(default_factory=Windows)
    over: Callable[[exp.Window], exp.Expr] | None = None
    """Returns the replacement of a call with OVER; ``None`` if none is possible."""
    row_facts: dict[str, Fact] = field(default_factory=dict)
    """Facts about the columns of these calls, and about columns in the rows that WHERE leaves."""
    lifetimes: bool = False
    """Whether LIFETIME is possible here."""
    clipped: bool = False
    """Whether LIFETIME_START and LIFETIME_END are possible: in the window of an event."""
    binds: Callable[[exp.Expr], bool] = field(default=lambda _: False)
    """Tests whether a rewrite of the query would be accepted."""

    @property
    def input(self) -> Operator:
        """Return the operator that gives the rows."""
        return self.source.node

    @property
    def rowtime(self) -> str:
        """Return how the rowtime of the rows is written."""
        shown = self.source.shown
        return f"{shown[0].alias}.ROWTIME" if len(shown) == 1 and shown[0].alias else "ROWTIME"

    @property
    def columns(self) -> tuple[Column, ...]:
        """Return the columns of the rows."""
        return self.input.emits().columns

    def starred(self, table: str) -> list[tuple[str, Column | exp.Expr]]:
        """Return the columns of ``*`` or ``table.*`` with their names; those of USING come first, and once."""
        if table:
            return [pair for source in self._inputs(table) for pair in source.columns]
        once = {name.lower() for name in self.source.merged}
        others = [pair for source in self.source.shown for pair in source.columns if pair[0].lower() not in once]
        return [*self.source.merged.items(), *others]

    @property
    def names(self) -> set[str]:
        """Return the names of columns in the query, in lower case."""
        return {name.lower() for source in self.source.shown for name, _ in source.columns}

    @property
    def _aliases(self) -> list[str]:
        """Return the name of the input whose events these are; none if they are joined."""
        return [source.alias.lower() for source in self.source.inputs] if len(self.source.inputs) == 1 else []

    def _inputs(self, table: str) -> list[Input]:
        return [i for i in self.source.inputs if table.lower() == i.alias.lower() or not (table or i.hidden)]

    @property
    def facts(self) -> dict[str, Fact]:
        """Return the facts about the values of each column; the rowtime ascends."""
        return {**self._given, **self.row_facts}

    @cached_property
    def _given(self) -> dict[str, Fact]:
        return {ROWTIME: ROWTIME_FACT, **{column.name: column.known for column in self.columns}}

    def refuse(self, code: str, message: str, node: exp.Expr, hint: str = "", note: str = "") -> None:
        """Note a problem at a node."""
        message, hint, note = (self._named_by_inputs(text) for text in (message, hint, note))
        self.problems.append(Problem(code, message, place_of(self.text, node), hint, note))

    def refuse_twice(self, query: exp.Expr, items: Iterable[Item]) -> None:
        """Refuse (R119) a select list in which two columns have one name."""
        seen: set[str] = set()
        for item in items:
            name = item.column.name
            if name.lower() in seen:
                what = f"the select list has two columns {name}"
                called = [entry for entry in query.expressions if entry.alias_or_name.lower() == name.lower()]
                listed = "" if called[1:] else "List the columns in place of *. "
                hint = f"{listed}Give one of them another name with AS."
                self.refuse("R119", what, called[1] if called[1:] else query, hint)
            seen.add(name.lower())

    def refuse_unkept(self, query: exp.Expr, items: Iterable[Item]) -> None:
        """Refuse (R189) columns and keys of a type that no tick can move: year-month intervals, and NULL alone."""
        for item in items:
            if isinstance(item.expression.unnest(), exp.Null):
                self.refuse("R189", f"{item.column.name} is {UNTYPED}", query, UNTYPED_HINT)
            months = item.column.fact.kind is Kind.MONTHS or of_months(item.expression, self.facts)
            if months and not isinstance(item.expression, exp.Column):  # it is refused where it is computed
                self.refuse("R189", f"{item.column.name} is {MONTHS}", query, MONTHS_HINT)

    def bind(self, node: exp.Expr) -> exp.Expr:
        """Return a copy of the expression with the columns of the input, by their own names."""
        for part in node.walk():
            self._check(part)
        if node.find(exp.Query) is not None:
            return node.copy()  # the columns inside are those of another query, which was refused
        bound = _replaced(node.copy(), self._bound)
        of = self._given
        for fault in (*missing_fields(bound, self.columns), *refused_patterns(bound, of), *kept_months(bound, of)):
            self.refuse(fault.code, fault.what, fault.node, fault.hint)
        return bound

    def shown(self, column: exp.Expr) -> str:
        """Return a column as the query names it."""
        return self._named_by_inputs(self.windows.shown(column))

    def _named_by_inputs(self, text: str) -> str:
        """Return a text with the internal names of joined columns (``s_t``) as the query has them (``s.t``)."""
        alone = len(self.source.shown) == 1
        pairs = ((source.alias, name, column) for source in self.source.shown for name, column in source.columns)
        listed = ((name if alone else f"{alias}.{name}", name, c) for alias, name, c in pairs)
        named = {c.name: shown for shown, name, c in listed if isinstance(c, Column) and c.name != name}
        if not named:
            return text
        return re.sub(r"(?<![\w.])\w+", lambda word: named.get(word[0], word[0]), text)

    def _check(self, part: exp.Expr) -> None:
        if non_deterministic(part):
            ours = isinstance(part, exp.Anonymous) and part.name.upper() not in OF_SESSION
            what = "gives another result each time it is called" if ours else "depends on the session, not on the row"
            hint = _TIMES_OF_DAY.get(part.name.upper(), _OF_THE_INPUT)
            self.refuse("R111", f"{to_rowtime(part)} {what}", part, hint)
        if (foreign := foreign_call(part)) is not None:
            self.refuse("R107", foreign.what, part, foreign.hint)
        if isinstance(part, exp.Window) and self.over is None:
            what = "a window function is allowed only in the select list of a query without groups"
            self.refuse("R160", what, part, "Compute it in a sub-query or a view, and use its column here.")
        if isinstance(part, exp.Anonymous) and part.name.upper() in LATER:
            hint = "Write TUMBLE(s.ROWTIME, INTERVAL '1' HOUR), or FLOOR(s.ROWTIME TO HOUR)."
            if part.name.upper() == WINDOW_TIME:
                hint = "Select the start of the window below, and group by it: GROUP BY window(start, '1 hour')."
            self.refuse("R190", f"{part.name.upper()} is not supported yet", part, hint)
        if isinstance(part, PeriodPredicate) and not self.lifetimes and part.find(Lifetime):
            hint = "Use it in WHERE or ON over events, with AND, OR and NOT. For two times, write PERIOD (a, b)."
            self.refuse("R198", f"{to_rowtime(part)} is not allowed here", part, hint)
        if isinstance(part, LifetimeEdge) and (not self.clipped or part.name.lower() not in self._aliases):
            hint = "Use it in aggregates of GROUP BY TUMBLE or HOP over events, with the name of the input in FROM."
            self.refuse("R198", f"{to_rowtime(part)} is not allowed here", part, hint)
        if isinstance(part, exp.Query) and not isinstance(part.parent, exp.Subquery):
            hint = instead_of(part, events=is_lifetimes(self.input))
            self.refuse("R190", "a sub-query is not supported in this place", part, hint)

    def _bound(self, part: exp.Expr) -> exp.Expr:
        if isinstance(part, exp.Column) and not isinstance(part.this, exp.Star):
            return self._column(part)
        if isinstance(part, CurrentRowTimestamp):
            return self._arrival(part)
        if isinstance(part, LifetimeEdge) or (is_current_bound(part) and self._has_bound):
            return _named(part.args.get("which") or BOUND_BEFORE, part)
        promise = to_spark(part.this) if isinstance(part, Monotonic) and not is_constant(part.this) else ""
        if promise and promise not in self.promises:
            self.promises[promise] = (self.gate(), part.this.copy())
        if isinstance(part, exp.Anonymous) and part.name.upper() in GROUP_FUNCTIONS:
            return self.windows.bind(self, part)
        if isinstance(part, exp.Window) and self.over is not None and not any(map(foreign_call, part.this.walk())):
            return self.over(part)
        return part

    @property
    def _has_bound(self) -> bool:
        """Return True if the rows have the bound of their event time."""
        return any(column.name == BOUND_BEFORE for column in self.columns)

    def _column(self, column: exp.Column) -> exp.Expr:
        """Return a column of an input by its name; else, as in Spark, a struct field: ``s.x``, ``a.s.x``, ``s.x.y``."""
        parts = column.parts
        if len(parts) > 3 and not self._inputs(parts[0].name) and self._has(parts[1].name, parts[2].name):  # noqa: PLR2004
            parts = parts[1:]  # the schema of the input
        whole = 2 if len(parts) > 1 and self._has(parts[0].name, parts[1].name) else 1
        if len(parts) > whole and (whole > 1 or self._has("", parts[0].name)):
            value = self._named_column(_first(parts, whole, column))
            for part in parts[whole:]:
                value = exp.Dot(this=exp.paren(value, copy=False), expression=part.copy())
            return value
        return self._named_column(column)

    def _has(self, table: str, name: str) -> bool:
        """Return True if an input, or the input ``table``, has a column of this name."""
        names = {column.lower() for source in self._inputs(table) for column, _ in source.columns}
        return name.lower() in names or bool(table and name.lower() == "rowtime" and self._inputs(table))

    def _named_column(self, column: exp.Column) -> exp.Expr:
        name, table = column.name, column.text("table")
        inputs = self._inputs(table)
        if not inputs:
            aliases = [source.alias for source in self.source.shown]
            self.refuse("R103", f"there is no stream {table} here", column, suggestion(table, aliases))
            return column
        if name.lower() == "rowtime":
            return self._rowtime(inputs[0], column)
        merged = [value for aliases, value in self.source.merged.items() if aliases.lower() == name.lower()]
        if merged and not table:
            return merged[0].copy()
        matches = [(source.alias, c) for source in inputs for n, c in source.columns if n.lower() == name.lower()]
        if len(matches) == 1:
            return _named(matches[0][1].name, column)
        bare = isinstance(column.this, exp.Identifier) and not column.this.quoted
        if bare and not table and not matches and (keyword := word(name)) is not None:
            return keyword
        self._refuse_column(column, inputs, [f"{alias}.{name}" for alias, _ in matches])
        return column

    def _rowtime(self, source: Input, column: exp.Column) -> exp.Expr:
        if column.text("table") and not source.rowtime:
            self.refuse("R103", f"{source.alias} is a table, and has no ROWTIME", column)
            return column
        return _named(source.rowtime if column.text("table") else ROWTIME, column)

    def _refuse_column(self, column: exp.Column, inputs: Sequence[Input], names: Sequence[str]) -> None:
        if names:
            self.refuse("R150", f"several inputs have a column {column.name}", column, f"Write {' or '.join(names)}.")
            return
        if column.name.upper() in _TIMES_OF_DAY and not column.text("table") and not column.this.quoted:
            self.refuse("R111", f"{column.name.upper()} gives another result each time it is called", column, _FIXED)
            return
        hint = suggestion(column.name, [candidate for source in inputs for candidate, _ in source.columns])
        among = " or ".join(source.alias for source in inputs)
        self.refuse("R103", f"there is no column {column.name} in {among}", column, hint)

    def _arrival(self, node: exp.Expr) -> exp.Expr:
        if not self.input.emits().arrival:
            what = "CURRENT_ROW_TIMESTAMP is not available: a query computed these rows, so they have no arrival time"
            self.refuse("R112", what, node)
        return _named(ROWTIME if self.input.emits().stamped else ARRIVAL, node)

    def inlined(self, node: exp.Expr) -> exp.Expr:
        """Return the expression's clock: over the rowtime and marks of order checks, if its columns follow them."""

        def follow(part: exp.Expr) -> exp.Expr:
            if (expression := self._lineage(part)) is not None:
                return expression.copy()
            if isinstance(part, Monotonic) and to_spark(part.this) in self.promises:
                return mark_of(self.promises[to_spark(part.this)][0])
            return part

        return _replaced(node.copy(), follow)

    def computed(self, node: exp.Expr) -> exp.Expr:
        """Return the expression with columns that are functions of the rowtime replaced by these functions."""

        def follow(part: exp.Expr) -> exp.Expr:
            expression = self._lineage(part)
            return part if expression is None or not is_value(expression) else on_grid(expression.copy())

        return _replaced(node.copy(), follow)

    def _lineage(self, part: exp.Expr) -> exp.Expr | None:
        known = {**self.source.lineage, **self.windows.lineage}.get(part.name) if isinstance(part, exp.Column) else None
        return None if isinstance(known, IfGiven | Windowed) else known


def is_current_bound(node: exp.Expr) -> bool:
    """Return True for ``CURRENT_BOUND()``."""
    return isinstance(node, exp.Anonymous) and node.name.upper() == "CURRENT_BOUND"


def _replaced(node: exp.Expr, change: object) -> exp.Expr:
    """Return the tree with each node changed once, from the leaves up; positions stay."""
    for part in list(node.walk(bfs=False))[::-1]:
        changed = change(part)  # type: ignore[operator]
        if changed is part:
            continue
        if changed.meta is not part.meta:
            changed.meta.update({k: v for k, v in part.meta.items() if k not in changed.meta})
        if part is node:
            node = changed
        else:
            part.replace(changed)
    return node


def _first(parts: Sequence[exp.Expr], count: int, origin: exp.Column) -> exp.Column:
    """Return the column that the first one or two parts of a name mean."""
    column = exp.Column(this=parts[count - 1].copy(), table=parts[0].copy() if count > 1 else None)
    column.meta.update(origin.meta)
    return column


def _named(name: str, origin: exp.Expr) -> exp.Column:
    column = col(name)
    for source in (origin, origin.this if isinstance(origin.this, exp.Expr) else origin):
        column.meta.update(source.meta)
    if (extent := span(origin)) is not None and (place := position(origin)) is not None:  # with the name of the input
        start, end = extent
        column.update_positions(line=place[0], col=place[1] + end - start, start=start, end=end)
    return column


def mark_of(gate: str) -> exp.Column:
    """Return the column of the mark of an order check."""
    return col(MARK + gate)


def marks_of(root: Operator) -> dict[str, Fact]:
    """Return the facts about the marks below, by their columns, and about the rowtime."""
    marks = (mark for node in walk(root) for mark in node.marks().items())
    return {ROWTIME: ROWTIME_FACT, **{MARK + name: fact for name, (_, fact) in marks if fact is not None}}


def follows(node: exp.Expr) -> bool:
    """Return True if an inlined expression is over the rowtime and marks alone, so that it has a clock."""
    return bool(names := columns_in([node])) and all(name == ROWTIME or name.startswith(MARK) for name in names)


def null_of(kind: str) -> exp.Expr:
    """Return NULL of a type, which files need; NULL without a type if it is empty."""
    return exp.cast(exp.null(), kind, dialect=Rowtime) if kind else exp.null()


def type_of(columns: Sequence[Column], bound: exp.Expr) -> str:
    """Return the type of an expression over some columns, as Spark's type text; empty if only Spark knows it."""
    inner = bound.unnest()
    if isinstance(inner, exp.Column):
        return next((c.type for c in columns if c.name == inner.name), "TIMESTAMP" if inner.name == ROWTIME else "")
    return inner.args["to"].sql("spark") if isinstance(inner, exp.Cast) else ""
