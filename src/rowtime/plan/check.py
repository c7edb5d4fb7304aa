"""`check`: what is wrong with a script, and what order an expression has; without Spark."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from rowtime.core.errors import Problem
from rowtime.expr.monotonicity import order_of as order_of_tree
from rowtime.expr.order import Order
from rowtime.plan.catalog import Definitions
from rowtime.plan.program import compile_script
from rowtime.sql.script import parse_column, parse_expression
from rowtime.sql.statements import ColumnDef


def check(text: str, home: Definitions | None = None, variables: Mapping[str, str] | None = None) -> list[Problem]:
    """All problems of a script; an empty list means that it would run."""
    return list(compile_script(text, home, variables).problems)


def order_of(expression: str, columns: Mapping[str, str]) -> str:
    """The order of an expression: constant, ascending, strictly ascending, descending, …, none.

    A column's value is definition text, ``"BIGINT STRICTLY ASCENDING"``. Raises ``Refused``
    (R101) for text that does not parse.
    """
    orders = {"__t": Order.ASCENDING}
    for name, definition in columns.items():
        orders[name.lower()] = declared(parse_column(f"{name} {definition}"))
    tree = parse_expression(expression)
    for column in list(tree.find_all(exp.Column)):
        name = "__t" if column.name.lower() == "rowtime" and "rowtime" not in orders else column.name.lower()
        column.set("this", exp.to_identifier(name, quoted=True))
    return order_of_tree(tree, orders).value


def declared(column: ColumnDef) -> Order:
    """The order that a column definition declares."""
    order = column.order
    if order is None or order.within is not None or order.within_rows is not None:
        return Order.NONE
    base = Order.STRICTLY_ASCENDING if order.strict else Order.ASCENDING
    return base if order.ascending else base.reversed()
