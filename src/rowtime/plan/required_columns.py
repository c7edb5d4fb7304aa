"""Which columns of an operator's rows those above it need."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Final

from sqlglot import exp

from rowtime.expr.conditions import columns_in
from rowtime.operators.contract import Distribution, Operator
from rowtime.operators.streams.stream import streams_of

_WORD: Final = re.compile(r"\w+")


def columns_required(operators: Sequence[Operator]) -> dict[str, frozenset[str]]:
    """Return, by operator, the columns that its readers need; ``operators`` have inputs first.

    A column that nobody needs may be computed or not: Spark skips it if its rows pass at once, and computes it if they
    are written on the way. So a row is refused for a failing column only if somebody needs the column: this depends on
    the query, and not on the cut.
    """
    read = {child.name for node in operators for child in node.inputs}
    columns = {node.name: set[str]() if node.name in read else set(node.readable()) for node in operators}
    for node in reversed(operators):
        above = columns[node.name]
        for number, child in enumerate(node.inputs):
            wanted = columns_required_of(node, number, above)
            columns.setdefault(child.name, set()).update(child.readable().intersection(wanted))
    return {name: frozenset(names) for name, names in columns.items()}


def columns_required_of(node: Operator, number: int, above: Collection[str]) -> Iterable[str]:
    """Return the columns of an input that an operator reads if those ``above`` are read from it.

    By default: for an input whose columns it passes on, those that its fields name; else all.
    """
    required, child = node.required_columns(number, above), node.inputs[number]
    if required is not None:
        return required
    if not {*child.emits().names} <= {*node.emits().names}:
        return child.readable()
    return {*above, *_mentioned(node, child.readable())}


def columns_read(node: Operator, readers: Iterable[Operator]) -> frozenset[str]:
    """Return the columns of an operator's rows that these readers read if all of their own columns are needed.

    A gate reads all: it writes those that it refuses. Hidden columns are not among them.
    """
    return frozenset(
        column
        for reader in readers
        for n, child in enumerate(reader.inputs)
        if child.name == node.name
        for column in (child.readable() if reader.is_gate else columns_required_of(reader, n, reader.readable()))
    )


def columns_of_streams(operators: Sequence[Operator]) -> dict[str, frozenset[str]]:
    """Return, by stream, the columns that have to be read to judge its rows and to step over them, if not all.

    At least one is read. A stream whose rows are not in any task has them all.
    """
    readers: dict[str, list[Operator]] = {}
    for node in operators:
        for child in node.inputs:
            readers.setdefault(child.name, []).append(node)
    needed: dict[str, frozenset[str]] = {}
    for node in streams_of(operators):
        every = node.readable()
        read = every & (columns_read(node, readers.get(node.name, ())) | node.judged_by()) or {min(every, default="")}
        if node.distribution() is Distribution.ANY and read < every:
            needed[node.name] = frozenset(read)
    return needed


def _mentioned(value: Any, names: frozenset[str], *, top: bool = True) -> Iterator[str]:
    """Yield the columns that the fields of an operator name, in expressions or as text."""
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
