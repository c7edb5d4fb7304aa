"""Which columns of an operator anybody asks for, down to the sinks.

A column that nobody asks for may be computed or not: Spark leaves it out where its rows pass at once, and computes it
where they are written on the way. So a row is refused for a column that cannot be computed only if somebody asks for
it: whether it is refused follows from the query, and not from the cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from sqlglot import exp

from rowtime.expr.generators import generator
from rowtime.operators.contract import Operator
from rowtime.operators.group_by import GroupBy
from rowtime.operators.group_values import GroupByValues
from rowtime.operators.join import Join
from rowtime.operators.panes import Panes
from rowtime.operators.select import Select
from rowtime.operators.session import SessionGroup
from rowtime.operators.table_join import TableJoin
from rowtime.operators.union_all import UnionAll

_WORD = re.compile(r"\w+")


def columns_asked_for(operators: Sequence[Operator]) -> dict[str, frozenset[str]]:
    """By the name of each operator the columns of it that its readers ask for; of ``operators`` inputs come first."""
    read = {child.name for node in operators for child in node.inputs}
    asked = {node.name: set[str]() if node.name in read else _visible(node) for node in operators}
    for node in reversed(operators):
        above = asked[node.name]
        for number, child in enumerate(node.inputs):
            names = _visible(child)
            asked.setdefault(child.name, set()).update(set(_of_input(node, number, names, above)) & names)
    return {name: frozenset(found) for name, found in asked.items()}


def _visible(node: Operator) -> set[str]:
    hidden = {item.column.name for item in node.hidden} if isinstance(node, Select) else set()
    return {*node.emits().names, *hidden}


def _of_input(node: Operator, number: int, names: set[str], above: set[str]) -> Iterator[str]:
    """The columns of one input that an operator asks for, if those ``above`` are asked for of it."""
    if isinstance(node, Select):
        makes_rows = any(generator(item.expression) is not None for item in node.items)
        items = (i for i in (*node.items, *node.hidden) if makes_rows or i.column.name in above)
        yield from _columns([node.where, *(item.expression for item in items)])
    elif isinstance(node, Join | TableJoin):
        own = {*_columns([node.on]), *above}
        yield from (old for old, new in node.sides[number].columns if new in own)
    elif isinstance(node, UnionAll):
        mine = node.inputs[number].emits().names
        yield from (name for name, shown in zip(mine, node.emits().names, strict=True) if shown in above)
    elif isinstance(node, GroupBy | GroupByValues | SessionGroup | Panes):
        yield from _columns([item.expression for item in (*node.keys, *node.aggregates)])
    elif names <= {*node.emits().names, *_hidden_below(node)}:
        yield from above
        yield from _mentioned(node, names)
    else:
        yield from names


def _hidden_below(node: Operator) -> set[str]:
    """Columns of an input for this operator alone."""
    return {i.column.name for child in node.inputs if isinstance(child, Select) for i in child.hidden}


def _columns(nodes: Sequence[exp.Expr | None]) -> Iterator[str]:
    yield from (column.name for node in nodes if node is not None for column in node.find_all(exp.Column))


def _mentioned(value: Any, names: set[str], *, top: bool = True) -> Iterator[str]:
    """The columns that the fields of an operator name, in expressions or as text."""
    if isinstance(value, exp.Expr):
        yield from _columns([value])
    elif isinstance(value, str):
        yield from names & {value, *_WORD.findall(value)}
    elif isinstance(value, tuple | list | frozenset | set):
        for part in value:
            yield from _mentioned(part, names, top=False)
    elif is_dataclass(value) and (top or not hasattr(value, "inputs")):
        for field in fields(value):
            if field.name != "name":
                yield from _mentioned(getattr(value, field.name), names, top=False)
