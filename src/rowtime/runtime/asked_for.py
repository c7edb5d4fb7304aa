"""Which columns of an operator anybody asks for, down to the sinks.

A column that nobody asks for may be computed or not: Spark leaves it out where its rows pass at once, and computes it
where they are written on the way. So a row is refused for a column that cannot be computed only if somebody asks for
it: whether it is refused follows from the query, and not from the cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from sqlglot import exp

from rowtime.expr.conditions import columns_in
from rowtime.operators.contract import Operator

_WORD = re.compile(r"\w+")


def columns_asked_for(operators: Sequence[Operator]) -> dict[str, frozenset[str]]:
    """By the name of each operator the columns of it that its readers ask for; of ``operators`` inputs come first."""
    read = {child.name for node in operators for child in node.inputs}
    asked = {node.name: set[str]() if node.name in read else set(node.readable()) for node in operators}
    for node in reversed(operators):
        above = asked[node.name]
        for number, child in enumerate(node.inputs):
            found = node.required_columns(number, above)
            wanted = _named(node, child, above) if found is None else found
            asked.setdefault(child.name, set()).update(child.readable().intersection(wanted))
    return {name: frozenset(found) for name, found in asked.items()}


def _named(node: Operator, child: Operator, above: set[str]) -> Iterable[str]:
    """What an operator asks of an input whose columns it passes on, as far as its fields say; else all."""
    if not {*child.emits().names} <= {*node.emits().names}:
        return child.readable()
    return {*above, *_mentioned(node, child.readable())}


def _mentioned(value: Any, names: frozenset[str], *, top: bool = True) -> Iterator[str]:
    """The columns that the fields of an operator name, in expressions or as text."""
    if isinstance(value, exp.Expr):
        yield from columns_in([value])
    elif isinstance(value, str):
        yield from names & {value, *_WORD.findall(value)}
    elif isinstance(value, tuple | list | frozenset | set):
        for part in value:
            yield from _mentioned(part, names, top=False)
    elif is_dataclass(value) and (top or not hasattr(value, "inputs")):
        for field in fields(value):
            if field.name != "name":
                yield from _mentioned(getattr(value, field.name), names, top=False)
