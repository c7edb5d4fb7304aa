"""The clock functions (``CURRENT_TIMESTAMP``, ``NOW()``, ``CURRENT_DATE``), fixed for a query.

Semantics 3: they return the time at which the query first started. The time is in the journal, so that a restart and a
replay compute the same rows; the plan still has the functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from sqlglot import exp

from rowtime.plan.program import Program
from rowtime.sql.places import unlocated
from rowtime.sql.script import parse_expression

_NOW = frozenset({"NOW", "CURRENT_TIMESTAMP", "LOCALTIMESTAMP", "CURRENT_DATE", "CURDATE"})


def fixed(program: Program, at: int) -> Program:
    """Return the program with every clock function replaced by the time ``at`` (µs UTC)."""
    if not any(_of_clock(part) for node in program.operators for tree in trees_of(node) for part in tree.walk()):
        return program
    fixed_nodes: dict[int, Any] = {}  # a node that several operators read stays one node

    def value(given: object) -> Any:
        if isinstance(given, exp.Expr):
            return given.copy().transform(lambda part: _instant(part, at) if _of_clock(part) else part)
        if isinstance(given, tuple):
            return tuple(value(part) for part in given)
        if not is_dataclass(given) or isinstance(given, type):
            return given
        if id(given) not in fixed_nodes:
            fixed_nodes[id(given)] = replace(given, **{f.name: value(getattr(given, f.name)) for f in fields(given)})
        return fixed_nodes[id(given)]

    return replace(program, sinks=value(program.sinks))


def trees_of(node: object) -> list[exp.Expr]:
    """Return the expressions of one operator, without those of its inputs."""
    own = (f.name for f in fields(node) if f.name not in ("input", "inputs", "gate"))  # type: ignore[arg-type]
    return [tree for name in own for tree in _trees(getattr(node, name))]


def _trees(value: object) -> Iterator[exp.Expr]:
    if isinstance(value, exp.Expr):
        yield value
    elif isinstance(value, tuple):
        yield from (tree for part in value for tree in _trees(part))
    elif is_dataclass(value) and not isinstance(value, type):
        yield from (tree for f in fields(value) for tree in _trees(getattr(value, f.name)))


def _of_clock(part: exp.Expr) -> bool:
    if isinstance(part, exp.Anonymous):
        return part.name.upper() in _NOW or (part.name.upper() == "UNIX_TIMESTAMP" and not part.expressions)
    return isinstance(part, exp.CurrentTimestamp | exp.CurrentDate | exp.Localtimestamp)


def _instant(part: exp.Expr, at: int) -> exp.Expr:
    name = part.name.upper() if isinstance(part, exp.Anonymous) else ""
    text = f"timestamp_micros({at})"
    if isinstance(part, exp.CurrentDate) or name in ("CURRENT_DATE", "CURDATE"):
        text = f"CAST({text} AS DATE)"
    elif isinstance(part, exp.Localtimestamp) or name == "LOCALTIMESTAMP":
        text = f"CAST({text} AS TIMESTAMP_NTZ)"
    elif name == "UNIX_TIMESTAMP":
        text = f"unix_timestamp({text})"
    instant = unlocated(parse_expression(text))
    instant.update_positions(part)
    return instant
