"""Binds DEFINE and MEASURES: values of single rows of a match, and aggregates, become slots.

A variable name before a column selects the rows; without one, all rows of the match count. The part of an expression
over a single row becomes one slot, as large as possible, so that Spark computes it with the row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from sqlglot import exp

from rowtime.core.columns import WINDOW_VALUE
from rowtime.core.errors import Problem
from rowtime.expr.conditions import col, conjuncts, never_fails
from rowtime.expr.many_rows import generator, is_aggregate
from rowtime.expr.readable import readable
from rowtime.kernels.windowed import Frame
from rowtime.operators.contract import Column
from rowtime.operators.patterns.slots import (
    CLASSIFIER,
    FIRST,
    LAST,
    NUMBER,
    ROW,
    Condition,
    Fold,
    MatchFunction,
    Named,
    Pick,
    Slot,
)
from rowtime.operators.rows.select import Item
from rowtime.plan.bind.frames import NoWindow
from rowtime.plan.bind.scope import Scope, type_of
from rowtime.plan.bind.suggestions import suggestion
from rowtime.plan.bind.window_calls import wants_of
from rowtime.sql.generate import to_rowtime
from rowtime.sql.nodes import MatchScope
from rowtime.sql.numbers import whole_number
from rowtime.sql.places import place_of

_WIDE = Frame(10**6)  # of a match, which has an end
_MOST_ROWS = 1_000  # the limit of PREV and NEXT
_MOST_NAMED = 10  # the limit of FIRST and LAST of CLASSIFIER(); each row is kept for each variable of each path
_SUPPORTED = (
    "Supported are COUNT, SUM, AVG, MIN, MAX, STDDEV, VARIANCE and their kinds, EXP_AVG and COLLECT_LIST. For others, "
    "write a function of the list of the values, such as ARRAY_MAX(COLLECT_LIST(A.price))."
)

_NO_CONDITION = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.Literal, exp.Count, exp.Sum, exp.Avg)
"""Expressions that are never BOOLEAN; of others Spark says the type."""


class _Wrong(Exception):
    """Something was refused."""


@dataclass(frozen=True)
class Names:
    """The variables: those of the pattern by their names in upper case, and the subsets of them."""

    variables: Mapping[str, str]
    subsets: Mapping[str, tuple[str, ...]]

    @property
    def every(self) -> tuple[str, ...]:
        """Return the variables of the pattern."""
        return tuple(self.variables)

    def of(self, name: str) -> tuple[str, ...] | None:
        """Return the variables that a name means; ``None`` if there is no such name."""
        return (name.upper(),) if name.upper() in self.variables else self.subsets.get(name.upper())

    @property
    def shown(self) -> list[str]:
        """Return all names, as they are written."""
        return [*self.variables.values(), *self.subsets]


@dataclass
class MatchValues:
    """Binds expressions over the rows of a match; ``whole``: by default, they are about the whole match."""

    scope: Scope
    names: Names
    whole: bool
    slots: list[Slot] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=count)
    """Numbers of slots."""

    def measure(self, node: exp.Expr) -> exp.Expr:
        """Return a measure over slots."""
        return self._read(node, _Place(self, None, final=self.whole)) if self._is_value(node) else node

    def conditions(self, variable: str, node: exp.Expr) -> Iterator[Condition]:
        """Yield the conditions of a variable in DEFINE: each part between AND, but adjacent ones over its row as one.

        These stop from left to right, if one may fail; it is computed with the row.
        """
        for part in self._together(conjuncts(node.unnest())) if self._is_value(node) else ():
            if isinstance(part.unnest(), _NO_CONDITION):
                what = f"the condition {to_rowtime(part)} of {self.names.variables[variable]} is not BOOLEAN"
                self.refuse("R174", what, part, "Compare it with a value, for example by > 0.")
                continue
            before = len(self.slots)
            test = self._read(part, _Place(self, variable, final=False))
            yield Condition(variable, test, tuple(self.slots[before:]))

    def _together(self, parts: Sequence[exp.Expr]) -> list[exp.Expr]:
        kinds = {column.name: column.known.kind for column in self.scope.columns}
        if all(never_fails(part, kinds) for part in parts):
            return [*parts]
        joined: list[exp.Expr] = []
        for part in parts:
            alone = isinstance(part.unnest(), _NO_CONDITION) or not (joined and _of_one_row(joined[-1], part))
            if not alone:
                joined[-1] = exp.and_(exp.paren(joined[-1].copy(), copy=False), exp.paren(part.copy(), copy=False))
            else:
                joined.append(part)
        return joined

    def _is_value(self, node: exp.Expr) -> bool:
        """Note a problem if an expression is more than one value of the rows of a match."""
        for part in node.walk():
            if isinstance(part, exp.Query):
                hint = "Join the table in a view or in a sub-query after FROM, and use its column here."
                self.refuse("R190", "a sub-query is not supported in MEASURES and DEFINE", part, hint)
            elif isinstance(part, exp.Window):
                hint = "Compute it in a sub-query after FROM, or in the query around the matches."
                self.refuse("R160", "OVER is not allowed in MEASURES and DEFINE", part, hint)
            elif (call := generator(part)) is not None:
                what = f"{to_rowtime(call)} gives several rows, and a measure or a condition is one value"
                self.refuse("R174", what, call, "Use it in the SELECT list around the matches.")
            else:
                continue
            return False
        return True

    def _read(self, node: exp.Expr, place: _Place) -> exp.Expr:
        try:
            return place.read(node)
        except _Wrong:
            return node

    def refuse(self, code: str, message: str, node: exp.Expr, hint: str) -> _Wrong:
        """Note a problem at a node, and return an exception to raise."""
        self.scope.problems.append(Problem(code, message, place_of(self.scope.text, node), hint))
        return _Wrong()

    def fresh(self) -> str:
        """Return the name of the next slot."""
        return f"{WINDOW_VALUE}{next(self.numbers)}"


@dataclass(frozen=True)
class _Place:
    """The place of an expression: in DEFINE of ``variable``, or in a measure; ``final``: over the whole match."""

    values: MatchValues
    variable: str | None
    final: bool

    def read(self, node: exp.Expr) -> exp.Expr:
        """Return the expression over slots."""
        if isinstance(node, MatchScope):
            return self._scoped(node)
        if _folds(node) and not isinstance(node, exp.First | exp.Last):
            return self._folded(node)
        if call := _call(node):
            return self._match_function(node, call, LAST, 0) if call in _MATCH_FUNCTIONS else self._navigated(node)
        if not _in_match(node):
            of = {self._variables(column) for column in node.find_all(exp.Column)}
            if len(of) <= 1:
                return self._pick(node, next(iter(of)), LAST, 0, 0) if of else self.values.scope.bind(node)
        copied = node.copy()
        for name, value in node.args.items():
            if isinstance(value, exp.Expr):
                copied.set(name, self.read(value))
            elif isinstance(value, list):
                copied.set(
                    name, [self.read(element) if isinstance(element, exp.Expr) else element for element in value]
                )
        return copied

    def _refuse(self, code: str, message: str, node: exp.Expr, hint: str) -> _Wrong:
        return self.values.refuse(code, message, node, hint)

    # -- whose rows -------------------------------------------------------------------------

    def _variables(self, column: exp.Column) -> tuple[str, ...]:
        """Return the variables whose rows a column means."""
        parts, names, scope = column.parts, self.values.names, self.values.scope
        if len(parts) > 1:
            variables = names.of(parts[0].name)
            if variables is not None:
                return variables
            inputs = {source.alias.lower() for source in scope.source.shown}
            if parts[0].name.lower() not in inputs | scope.names:
                what = f"there is no variable {parts[0].name} in the pattern"
                raise self._refuse("R173", what, column, suggestion(parts[0].name, names.shown))
        return names.every

    def _bare(self, node: exp.Expr) -> exp.Expr:
        """Return an expression of one row, bound, without variable names."""
        copied = node.copy()
        copied.parent = node.parent
        for column in list(copied.find_all(exp.Column)):
            parts = column.parts
            if len(parts) > 1 and self.values.names.of(parts[0].name) is not None:
                bare = exp.Column(**dict(zip(("this", "table", "db"), [p.copy() for p in parts[:0:-1]], strict=False)))
                bare.meta.update(column.meta)
                if column is copied:
                    bare.parent = node.parent
                    copied = bare
                else:
                    column.replace(bare)
        before = len(self.values.scope.problems)
        bound = self.values.scope.bind(copied)
        if len(self.values.scope.problems) > before:
            raise _Wrong
        return bound

    def _one(self, node: exp.Expr, call: exp.Expr) -> tuple[str, ...]:
        """Return the variables of an argument, which must be of one row."""
        of = {self._variables(column) for column in node.find_all(exp.Column)}
        if len(of) > 1:
            what = f"{to_rowtime(call)} reads rows of several variables"
            raise self._refuse("R174", what, call, "Use columns of one variable, or of a SUBSET, in each call.")
        return next(iter(of), self.values.names.every)

    # -- single rows ------------------------------------------------------------------------

    def _pick(self, node: exp.Expr, of: tuple[str, ...], which: str, offset: int, move: int) -> exp.Expr:
        if self.variable is not None and which == LAST and not offset and self.variable in of:
            which, of = ROW, ()
        value = self._bare(node)
        self.values.scope.refuse_unkept(node, [Item(Column(readable(node)), value)])
        kind = type_of(self.values.scope.columns, value)
        final = self.final and which != ROW
        return self._slot(Pick(Column("", kind), value, which, of, offset, move, final))

    def _slot(self, slot: Slot) -> exp.Expr:
        """Return the column of a slot; equal slots share one."""
        named = replace(slot, column=replace(slot.column, name=self.values.fresh()))
        self.values.slots.append(named)
        return col(named.column.name)

    def _navigated(self, node: exp.Expr) -> exp.Expr:
        name, inner, rows = self._argument(node)
        if _call(inner.unnest()) == "CLASSIFIER" and (name in ("FIRST", "LAST") or self._is_before(name, inner)):
            return self._match_function(inner.unnest(), "CLASSIFIER", FIRST if name == "FIRST" else LAST, rows)
        move = 0
        if name in ("PREV", "NEXT"):
            move = -rows if name == "PREV" else rows
            bare = inner.unnest()
            if _call(bare) in ("FIRST", "LAST"):
                name, inner, rows = self._argument(bare)
            else:
                name, rows = "LAST", 0
        self._plain(inner, node)
        return self._pick(inner, self._one(inner, node), FIRST if name == "FIRST" else LAST, rows, move)

    def _argument(self, node: exp.Expr) -> tuple[str, exp.Expr, int]:
        """Return the name of a call, its argument, and its number of rows."""
        name = _call(node)
        given = node.expressions if isinstance(node, exp.Anonymous) else [node.this, node.args.get("expression")]
        given = [part for part in given if part is not None]
        default = 1 if name in ("PREV", "NEXT") else 0
        if not 1 <= len(given) <= 2:  # noqa: PLR2004 - a value and a number
            raise self._refuse("R174", f"{name} takes a value and a number of rows", node, f"Write {name}(A.price, 1).")
        rows = whole_number(given[1]) if len(given) > 1 else default
        if rows is None or not 0 <= rows <= _MOST_ROWS:
            what = f"{name} takes a number of rows from 0 to {_MOST_ROWS:,}"
            raise self._refuse("R174", what, node, f"Write {name}(A.price, 1).")
        return name, given[0], rows

    def _plain(self, inner: exp.Expr, call: exp.Expr) -> None:
        """Refuse calls inside a call that picks or folds."""
        for part in inner.walk():
            if _folds(part) or _call(part) in _CALLS or isinstance(part, MatchScope):
                what = f"{to_rowtime(call)} cannot contain {to_rowtime(part)}"
                hint = "Use a column, or an expression over columns of one variable, inside."
                if _folds(call) and _folds(part) and _call(part) not in _CALLS:
                    raise self._refuse("R130", f"{to_rowtime(call)} contains another aggregate", part, hint)
                raise self._refuse("R174", what, part, hint)

    # -- several rows -----------------------------------------------------------------------

    def _folded(self, node: exp.Expr) -> exp.Expr:
        for inner in _arguments(node):
            self._plain(inner, node)
        of, call = self._one(node, node), node.copy()
        call.parent = node.parent
        for counted in list(call.find_all(exp.Count)):
            if isinstance(counted.this, exp.Column) and isinstance(counted.this.this, exp.Star):
                counted.set("this", exp.Star())
        try:
            wants = wants_of(self._bare(call), _WIDE, None, lists=True)
        except NoWindow:
            what = f"{to_rowtime(node)} is not supported over the rows of a match"
            raise self._refuse("R174", what, node, _SUPPORTED) from None
        columns = [
            self._slot(Fold(Column(""), want.argument, want.function, of, want.typed, self.final))
            for want in wants.wants
        ]
        return wants.value(*columns)

    # -- facts about the match ------------------------------------------------------------------

    @staticmethod
    def _is_before(name: str, call: exp.Expr) -> bool:
        """True of PREV(CLASSIFIER()): the rows of a match stand together, so it is LAST(CLASSIFIER(), 1)."""
        return name == "PREV" and not call.unnest().expressions

    def _match_function(self, node: exp.Expr, call: str, which: str, offset: int) -> exp.Expr:
        given = node.expressions
        if call == "MATCH_NUMBER":
            if self.variable is not None:
                raise self._refuse("R174", f"{call} is not supported in DEFINE", node, "Use it in MEASURES.")
            if given:
                raise self._refuse("R174", "MATCH_NUMBER takes no argument", node, "Write MATCH_NUMBER().")
            return self._slot(MatchFunction(Column("", "BIGINT"), NUMBER))
        of = self.values.names.every
        if given:
            variables = self.values.names.of(given[0].name) if isinstance(given[0], exp.Column) else None
            if variables is None or len(given) > 1:
                what = f"{to_rowtime(node)} does not name a variable of the pattern"
                raise self._refuse("R173", what, node, suggestion(given[0].name, self.values.names.shown))
            of = variables
        if self.variable in of and which == LAST and not offset:  # the row that DEFINE is about
            return exp.Literal.string(self.values.names.variables[self.variable])
        if offset > _MOST_NAMED:
            what = f"{to_rowtime(node)} can refer to rows at most {_MOST_NAMED} further on or back"
            raise self._refuse("R174", what, node, f"Write LAST({to_rowtime(node)}, {_MOST_NAMED}).")
        if (which, offset) == (LAST, 0):
            return self._slot(MatchFunction(Column("", "STRING"), CLASSIFIER, of, self.final))
        return self._slot(Named(Column("", "STRING"), CLASSIFIER, of, self.final, which, offset))

    def _scoped(self, node: MatchScope) -> exp.Expr:
        kind = node.args["kind"]
        if self.variable is not None and kind == "FINAL":
            what = "FINAL is not allowed in DEFINE: the match is not complete there"
            raise self._refuse("R174", what, node, "Leave FINAL out.")
        inner = node.this.unnest()
        if not (_folds(inner) or _call(inner) in _CALLS):
            what = f"{kind} must come before FIRST, LAST or an aggregate, not before {to_rowtime(inner)}"
            raise self._refuse("R174", what, node, f"Write {kind} LAST({to_rowtime(inner)}).")
        return _Place(self.values, self.variable, kind == "FINAL" or self.values.whole).read(inner)


_MATCH_FUNCTIONS = frozenset({"CLASSIFIER", "MATCH_NUMBER"})
_CALLS = frozenset({"FIRST", "LAST", "PREV", "NEXT", *_MATCH_FUNCTIONS})


def _call(node: exp.Expr) -> str:
    """Return the name of a call that exists only in matches; empty for any other expression."""
    if isinstance(node, exp.First | exp.FirstValue):
        return "FIRST"
    if isinstance(node, exp.Last | exp.LastValue):
        return "LAST"
    name = node.name.upper() if isinstance(node, exp.Anonymous) else ""
    return name if name in _CALLS else ""


def _of_one_row(*parts: exp.Expr) -> bool:
    """Return True for expressions over the columns of one row."""
    of = {
        column.parts[0].name.upper() if column.table else "" for part in parts for column in part.find_all(exp.Column)
    }
    return len(of) <= 1 and not any(map(_in_match, parts))


def _in_match(node: exp.Expr) -> bool:
    """Return True for an expression that reads other rows of a match, or a fact about it."""
    return any(_folds(part) or _call(part) or isinstance(part, MatchScope) for part in node.walk())


def _folds(node: exp.Expr) -> bool:
    """Return True for an aggregate of the rows of a match; EXP_AVG is one, and is none in GROUP BY."""
    call = node.this if isinstance(node, exp.Filter) else node
    return is_aggregate(node) or (isinstance(call, exp.Anonymous) and call.name.upper() == "EXP_AVG")


def _arguments(node: exp.Expr) -> Sequence[exp.Expr]:
    """Return the arguments of an aggregate, with the condition of its FILTER."""
    if isinstance(node, exp.Filter):
        return [*_arguments(node.this), node.expression.this]
    if isinstance(node, exp.IgnoreNulls | exp.RespectNulls):
        return _arguments(node.this)
    return [part for part in node.iter_expressions() if not isinstance(part, exp.Star)]
