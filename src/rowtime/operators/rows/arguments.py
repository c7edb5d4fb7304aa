"""Arguments of aggregates: what is computed for each row, before anything is added up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from rowtime.core.columns import ARGUMENTS, TRIED
from rowtime.core.errors import RowtimeError
from rowtime.expr.conditions import col, only_where
from rowtime.frames.attempted import TRIED_VALUE
from rowtime.frames.queries import Uncomputed
from rowtime.operators.rows.attempt import with_attempts
from rowtime.sql.generate import quoted, to_spark

if TYPE_CHECKING:
    from rowtime.frames.frame import Frame

_AROUND_CALLS = (exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)
_WRAPPERS = (exp.AggFunc, exp.Order, exp.Ordered, exp.Distinct, exp.Tuple, *_AROUND_CALLS)
_LISTS = ("array", "map", "named_struct")


def is_sorted_collection(node: exp.Expr) -> bool:
    """Return True for ARRAY_SORT(COLLECT_LIST(x)), SORT_ARRAY(COLLECT_LIST(x), FALSE) and the like."""
    inner = node.this if isinstance(node, exp.ArraySort) else None
    if isinstance(node, exp.Anonymous) and node.name.upper() == "SORT_ARRAY":
        gathered, *way = node.expressions
        inner = gathered if all(isinstance(part, exp.Boolean) for part in way) else None
    return isinstance(inner, exp.ArrayAgg | exp.ArrayUniqueAgg)


def conditional_arguments(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the arguments of an aggregate for a row: none of them for a row that FILTER excludes."""
    for part in arguments_in(node):
        yield only_where(node.expression.this, part) if isinstance(node, exp.Filter) else part


def arguments_in(node: exp.Expr, *, calls: bool = True) -> Iterator[exp.Expr]:
    """Yield the arguments of an aggregate for a row, as they stand in it.

    ``calls``: a function that sqlglot does not know is the aggregate; else it is a part of an argument.
    """
    if isinstance(node, exp.Filter):
        yield from arguments_in(node.this)
    elif isinstance(node, _WRAPPERS) or is_sorted_collection(node) or (calls and isinstance(node, exp.Anonymous)):
        for part in node.iter_expressions():
            yield from arguments_in(part.unalias(), calls=isinstance(node, _AROUND_CALLS))
    elif not isinstance(node, exp.Star | exp.Literal) and not _is_constant_list(node) and _is_text(node):
        yield node


def _is_constant_list(node: exp.Expr) -> bool:
    """Return True for the shares of PERCENTILE and the like."""
    listed = isinstance(node, exp.Array) or (isinstance(node, exp.Anonymous) and node.name.lower() in _LISTS)
    return listed and node.find(exp.Column) is None


def _is_text(node: exp.Expr) -> bool:
    try:
        to_spark(node)
    except RowtimeError:
        return False
    return True


def with_arguments(rows: Frame, calls: Mapping[str, exp.Expr]) -> tuple[Frame, Mapping[str, exp.Expr]]:
    """Return the rows with columns for arguments for which only DuckDB fails, and the calls over these.

    An argument for which Spark fails, too, stays as it is. Spark computes none for a row that FILTER excludes.
    """
    copies = {name: exp.paren(call.copy(), copy=False) for name, call in calls.items()}
    places: dict[str, list[exp.Expr]] = {}
    for copy in copies.values():
        call = copy.this
        condition = call.expression.this if isinstance(call, exp.Filter) else None
        for n, part in enumerate(arguments_in(call)):  # a constant behind the first one has to stay a constant
            if not isinstance(part.unnest(), exp.Column) and (n == 0 or part.find(exp.Column)):
                text = to_spark(part if condition is None else only_where(condition, part))
                places.setdefault(text, []).append(part)
        if condition is not None and not isinstance(condition, exp.Column):
            places.setdefault(to_spark(condition), []).append(condition)
    ours = [text for text in places if rows.translates(text)]
    if not ours or _are_computed(rows, ours):
        return rows, calls
    failing = [text for text in ours if not _are_computed(rows, [text])]
    names = {text: f"{TRIED}{n}" for n, text in enumerate(failing)}
    attempts = with_attempts(rows, {name: text for text, name in names.items()})
    attempts.share()
    good = {text: f"{ARGUMENTS}{n}" for n, (text, name) in enumerate(names.items()) if not _fails(attempts, name)}
    for text, name in good.items():
        for place in places[text]:
            place.replace(col(name))
    values = (f"{names[text]}.{TRIED_VALUE} AS {quoted(name)}" for text, name in good.items())
    return attempts.valued([*map(quoted, rows.columns), *values]), {name: copy.this for name, copy in copies.items()}


def _are_computed(rows: Frame, texts: Sequence[str]) -> bool:
    """Return False if DuckDB fails for one of the texts."""
    try:
        rows.valued([f"{text} AS {quoted(f'{ARGUMENTS}{n}')}" for n, text in enumerate(texts)]).count()
    except Uncomputed:
        return False
    return True


def _fails(attempts: Frame, name: str) -> bool:
    return attempts.where(f"{name} IS NULL").count() > 0
