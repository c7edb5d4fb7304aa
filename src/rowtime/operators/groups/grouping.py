"""The common part of all operators that make groups: keys, aggregates, and a select list over both by name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from rowtime.expr.aggregates import orders_rows
from rowtime.expr.conditions import columns_in
from rowtime.frames.typed import groups
from rowtime.frames.words import Untranslated
from rowtime.operators.contract import (
    AGGREGATION,
    TRANSFORMATION,
    Control,
    Delta,
    Derivation,
    Operator,
    Pairs,
    Tick,
    quoted,
)
from rowtime.operators.contract.requirement import PLACED, UNORDERED, Requirement
from rowtime.operators.rows.arguments import conditional_arguments, is_sorted_collection
from rowtime.operators.rows.attempt import all_computed
from rowtime.operators.rows.partials import Accumulators
from rowtime.sql.generate import to_spark

if TYPE_CHECKING:
    from rowtime.frames.frame import Frame
    from rowtime.operators.rows.ends import Lead
    from rowtime.operators.rows.select import Item

SHOWN = "shown"
"""The meta entry of an expression of ours: what a refused row shows instead of it."""


def needs_places(aggregates: Sequence[Item]) -> bool:
    """Return True if an aggregate depends on the order of rows."""
    expressions = [item.expression for item in aggregates if not is_sorted_collection(item.expression)]
    return any(orders_rows(part) for expression in expressions for part in expression.walk())


@dataclass(frozen=True)
class PartialTypes(Control):
    """``types``: the Spark types of partial columns, set with the first rows; ``None`` before."""

    types: Mapping[str, str] | None = None


class Groups(Operator):
    """Makes groups by ``keys``; ``aggregates`` of each; ``items`` and ``having`` are over both by name."""

    keys: tuple[Item, ...]
    aggregates: tuple[Item, ...]
    items: tuple[Item, ...]
    having: exp.Expr | None

    edges: ClassVar[tuple[str, ...]] = ()
    """Columns of the rows (TIMESTAMP) that distinguish groups besides the keys, and that items may use."""
    numbers: ClassVar[tuple[str, ...]] = ()
    """Columns of the groups (BIGINT) that items may use besides keys and aggregates."""

    decides: ClassVar[str] = "GROUP_BY"

    def made_from(self, n: int, column: str) -> Derivation | None:
        """Return the sources of a column by its item, over keys and aggregates."""
        if n:
            return Derivation(())
        item = next((item for item in self.items if item.column.name == column), None)
        names = {column} if item is None else columns_in([item.expression])
        keys, calls = ([i.expression for i in of if i.column.name in names] for of in (self.keys, self.aggregates))
        if calls or not keys:
            return Derivation(columns_in([*keys, *calls]), AGGREGATION) if calls else super().made_from(n, column)
        if len(keys) == 1 and (item is None or isinstance(item.expression.unnest(), exp.Column)):
            return Derivation.by(keys[0])
        return Derivation(columns_in(keys), TRANSFORMATION)

    def decided_by(self, n: int) -> Iterable[str]:
        """Return the keys."""
        return () if n else columns_in(key.expression for key in self.keys)

    def requires(self) -> tuple[Requirement, ...]:
        """Require places if an aggregate depends on the order of rows, unless another order is required anyway."""
        return self.needs or (PLACED if needs_places(self.aggregates) else UNORDERED,)

    def computed_first(self) -> Iterable[exp.Expr]:
        """Return what is computed for each row: keys, arguments, and those of sums as the numbers that Spark adds."""
        yield from (key.expression for key in self.keys)
        yield from (part for item in self.aggregates for part in _arguments(item.expression))
        for item in self.aggregates:
            call = item.expression.this if isinstance(item.expression, exp.Filter) else item.expression
            if isinstance(call, exp.Sum | exp.Avg):
                yield from map(partial(_as_number, call), conditional_arguments(item.expression))

    def same_keys(self) -> Pairs:
        """Return the keys of a group and of its rows, hidden or among the visible columns."""
        hidden = self.emits().extra
        names = {item.expression.name: item for item in self.items if isinstance(item.expression, exp.Column)}
        pairs: list[tuple[str, str]] = []
        for key in self.keys:
            own = key.column.name
            shown = own if own in hidden else names[own].column.name if own in names else None
            pairs += [] if shown is None else [(quoted(shown), to_spark(key.expression))]
        return tuple(pairs)

    def in_order(self, lead: Lead | None, keys: tuple[Item, ...], ways: tuple[str, ...]) -> Operator | None:  # noqa: ARG002
        """Return the operator with its groups in the order of ``lead``, or else of their rowtimes, and then of keys.

        ``None`` if a sort above has to do it.
        """
        return None

    def typed(self, rows: Callable[[Operator], Frame]) -> Frame:
        """Return the select list over an empty set of groups."""
        return self._empty(self._beside_keys(rows), self.aggregates).selectExpr(*(item.sql for item in self.items))

    def between(self, rows: Callable[[Operator], Frame]) -> list[Frame]:
        """Return the rows with the keys beside them; and the groups, without aggregates that Spark refuses."""
        keyed = self._beside_keys(rows)
        return [keyed, self._empty(keyed, [item for item in self.aggregates if _takes(keyed, item.text)])]

    def _beside_keys(self, rows: Callable[[Operator], Frame]) -> Frame:
        return rows(self.inputs[0]).selectExpr("*", *(key.sql for key in self.keys))

    def _empty(self, keyed: Frame, aggregates: Sequence[Item]) -> Frame:
        keys = [*(key.column.name for key in self.keys), *self.edges]
        numbers = dict.fromkeys(("__n", *self.numbers), "count(1)")
        return groups(keyed, keys, numbers | {item.column.name: item.text for item in aggregates})


class RowGroups(Groups):
    """Groups of rows; a group of events, in contrast, changes with each of them."""

    holds_results: ClassVar[bool] = True
    of_results: ClassVar[tuple[str, ...]] = ("items", "having")

    fuses: ClassVar[bool] = True

    control: ClassVar[type[PartialTypes]] = PartialTypes

    def required_columns(self, n: int, wanted: Collection[str]) -> Iterable[str]:  # noqa: ARG002 - one of rows
        """Return the columns of keys and aggregates."""
        return columns_in(item.expression for item in (*self.keys, *self.aggregates))

    def row_expressions(self) -> Iterable[exp.Expr]:
        """Return what is computed for each row."""
        return self.computed_first()

    @cached_property
    def accumulators(self) -> Accumulators:
        """Return the kept form of the aggregates."""
        return Accumulators(tuple((a.column.name, a.expression) for a in self.aggregates))

    def computing(self, tick: Tick, delta: Delta, *, skips: bool = False) -> Delta:
        """Return new rows whose keys and arguments are computed now, so that a row that fails is refused as it comes.

        A kept row would fail only when its group is complete, with the other rows of it; and an argument that is
        skipped, because another one is NULL or (``skips``) the operator refuses its row, only in a tick that tries
        each row. A column may be an expression of the Select below.
        """
        arguments = (conditional_arguments(item.expression) for item in self.aggregates)
        if not skips and self.accumulators.splits and all(len([*of]) <= 1 for of in arguments):
            return delta
        plain = self.inputs[0].projection() is None
        computed = (e for e in self.computed_first() if not (plain and isinstance(e.unnest(), exp.Column)))
        texts = dict.fromkeys(map(to_spark, computed))
        if delta.rows is None or tick.trying or not texts:
            return delta
        return replace(delta, rows=all_computed(delta.rows, texts))

    def _key_names(self) -> list[str]:
        return [key.column.name for key in self.keys]

    def _merges(self, tick: Tick) -> bool:
        """Return True if rows are merged before their group is complete; not in a failing tick: sums may overflow."""
        return self.accumulators.splits and not tick.trying

    def _types(self, tick: Tick, rows: Frame | None = None) -> Mapping[str, str]:
        """Return the types of partial columns, which only Spark knows: asked once per checkpoint."""
        types = tick.control(self).types
        if types is None and rows is not None:
            types = self.accumulators.types(rows)
            tick.remember(self, types=types)
        return types or {}


def _arguments(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the arguments of an aggregate for a row, and the condition of its FILTER."""
    if isinstance(node, exp.Filter):
        yield node.expression.this
    yield from conditional_arguments(node)


def _as_number(call: exp.Expr, value: exp.Expr) -> exp.Expr:
    """Return an argument of a sum as the number that Spark adds: a text has to be one."""
    number = exp.Anonymous(this="positive", expressions=[value.copy()])
    number.meta[SHOWN] = call.copy()
    return number


def _takes(rows: Frame, aggregate: str) -> bool:
    """Return False for an aggregate that Spark refuses: the others are typed without it."""
    from pyspark.errors import AnalysisException, ParseException  # noqa: PLC0415

    try:
        groups(rows, [], {"__taken": aggregate})
    except (AnalysisException, ParseException, Untranslated):
        return False
    return True
