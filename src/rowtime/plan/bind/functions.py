"""Table functions: how a call is bound."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

from sqlglot import exp

from rowtime.core.errors import Place, refuse
from rowtime.core.imported import LeftError, staying
from rowtime.core.time import to_datetime, to_micros
from rowtime.operators.contract import Column, Operator
from rowtime.operators.gates.split import EarlyLateSplit
from rowtime.operators.rows.table_function import Make, TableFunctionCall
from rowtime.plan.bind.python_code import Unread
from rowtime.plan.bind.suggestions import suggestion
from rowtime.sql.generate import to_rowtime
from rowtime.sql.intervals import Duration, span_of
from rowtime.sql.nodes import TableArgument

BUILT_IN: Mapping[str, Make] = {"early_late_split": EarlyLateSplit}
_TOP = "QUALIFY RANK() OVER (PARTITION BY FLOOR(s.ROWTIME TO HOUR) ORDER BY"
_FOREIGN = {
    "GROUP_RANK": f"Rank in the query, with {_TOP} v DESC) <= 3.",
    "TOP_K_ITEMS_TUMBLING": f"Count in groups of the hour, and keep the first with {_TOP} COUNT(*) DESC) <= 3.",
}
"""Table functions of SQLstream that are queries in rowtime."""


def called(item: exp.Expr) -> exp.Anonymous | None:
    """Return the call in ``STREAM(f(…))`` or ``TABLE(f(…))`` after FROM; ``None`` for anything else."""
    outer = item.this if isinstance(item, exp.Table) else None
    if not isinstance(outer, exp.Anonymous):
        return None
    if outer.name.upper() not in ("STREAM", "TABLE"):
        return outer
    inner = outer.expressions[0] if len(outer.expressions) == 1 else None
    return inner if isinstance(inner, exp.Anonymous) else None


def input_of(first: exp.Expr | None) -> exp.Expr | None:
    """Return the query or table in a table function's first argument: ``CURSOR(query)``, ``TABLE s``."""
    query: exp.Expr | None = None
    if isinstance(first, exp.Subquery | TableArgument):
        query = first.this
    elif isinstance(first, exp.Anonymous) and first.name.upper() == "CURSOR" and len(first.expressions) == 1:
        query = first.expressions[0]
        query = query.this if isinstance(query, exp.Subquery) else query
    return query


def bind_call(
    call: exp.Anonymous, defined_functions: Mapping[str, Make], source: Operator, name: str, place: Place
) -> TableFunctionCall:
    """Return the operator of a call over its bound input; raises ``Refused`` (R141, R169)."""
    everything = {**BUILT_IN, **defined_functions}
    make = everything.get(call.name.lower())
    if make is None:
        what = f"there is no table function {call.name}"
        raise refuse("R141", what, _FOREIGN.get(call.name.upper()) or suggestion(call.name, everything), place)
    arguments = tuple(call.expressions[1:])
    given = [(column.name, column.type) for column in source.emits().columns]
    if isinstance(make, Unread):
        function, columns = make, make.columns_of(name, len(arguments), place)
        return TableFunctionCall(name, source, call.name.lower(), arguments, columns, function)
    try:
        values = [_value(argument) for argument in arguments]
        with staying():
            function = make(*values)
            columns = tuple(Column(column, kind) for column, kind in function.columns(given))
    except (TypeError, ValueError) as error:
        raise refuse("R141", f"{call.name} cannot be called like this: {error}", place=place) from error
    except LeftError as error:
        raise refuse("R141", f"{call.name} cannot be called: {error}", place=place) from error
    return TableFunctionCall(name, source, call.name.lower(), arguments, columns, function)


def _value(node: exp.Expr) -> Any:
    """Return a literal as a Python value."""
    match node.unnest():
        case exp.Null():
            value: Any = None
        case exp.Boolean() as truth:
            value = bool(truth.this)
        case exp.Neg() as negative:
            value = -_value(negative.this)
        case exp.Literal() as text if text.is_string:
            value = text.name
        case exp.Literal() as number:
            value = int(number.name) if number.name.isdecimal() else Decimal(number.name)
        case exp.Interval() | exp.Add() as interval:
            span = span_of(interval)
            if not isinstance(span, Duration):
                raise TypeError(f"{to_rowtime(interval)}: months have no fixed length")
            value = timedelta(microseconds=span.micros)
        case exp.Cast(this=exp.Literal()) as time:
            value = to_datetime(to_micros(time.this.name))
        case other:
            raise ValueError(f"{to_rowtime(other)} is not a literal")
    return value
