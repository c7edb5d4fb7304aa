"""The law of declared state: an operator keeps only what it declares, and its declarations are right."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa

import rowtime
from rowtime.core.columns import CHANGED_BY, MET, Hidden
from rowtime.operators.contract import Control, Operator
from rowtime.operators.contract.state import Kept
from rowtime.operators.events.event_gate import EventGate
from rowtime.operators.every import OPERATORS
from rowtime.operators.over.over_calls import RunningMark
from rowtime.operators.streams.quarantine import Quarantine

SOURCES = Path(rowtime.__file__).parent
BY_HAND = ("set", "skipped")  # scalars that a command writes into the journal
LEFT_OUT = {CHANGED_BY, MET}
"""Columns of changes of events, which are dropped when the changes are compacted."""
HELPERS = (Quarantine, EventGate)  # attributes of operators that keep rows for them
PASSING = ("complete", "merged", "failed")  # files of results during a tick; they are not kept


def unfounded(operators: Iterable[Operator]) -> Iterator[str]:
    """Operators whose declared place is computed, and hidden columns that they emit with another type."""
    for node in operators:
        hidden = [(one.name, one.type) for one in node.emits().columns if isinstance(one.name, Hidden)]
        yield from (f"{node.name} emits {name} as {kind}" for name, kind in hidden if kind != name.type)
        scalars = {field.name for field in fields(node.control)}
        for note in node.keeps():
            if not (note.rows or note.fields):
                yield f"{node.name} keeps {note.what} nowhere"
            yield from (f"{node.name} has no scalar {name}" for name in note.fields if name not in scalars)
            unwritten = (kept.name for kept in note.rows if not _is_written(node, kept.name))
            yield from (f"{node.name} never writes {name}" for name in unwritten)


def _is_written(node: Operator, what: str) -> bool:
    """True if the code of an operator uses the rows that it keeps under a name, outside of the declaration."""
    kinds: list[type] = [kind for kind in type(node).__mro__ if issubclass(kind, Operator)]
    kinds += [one for one in HELPERS if any(one.__name__ in vars(sys.modules[kind.__module__]) for kind in kinds)]
    places = [vars(sys.modules[kind.__module__]) for kind in kinds]
    named = {name for place in places for name, value in place.items() if _speaks_of(value, what)}
    words = [re.escape(f'"{what}"'), *(rf"\b{name}\b" for name in named)]
    words += [r"\._state\.", r"WeightedLog\(tick, self\)"] if what == "state" else []
    return any(re.search("|".join(words), _steps(kind)) for kind in kinds)


def _speaks_of(value: object, what: str) -> bool:
    if isinstance(value, tuple):
        return any(_speaks_of(part, what) for part in value)
    return value == what or (isinstance(value, Kept) and value.name == what)


@cache
def _steps(kind: type) -> str:
    """The source of a class without its declarations."""
    text = inspect.getsource(kind)
    return text.replace(inspect.getsource(vars(kind)["keeps"]), "") if "keeps" in vars(kind) else text


def undeclared(node: Operator, what: str, time: str, columns: Mapping[str, str]) -> Iterator[str]:
    """The violations if an operator keeps rows under a name, dropped by a column, in files with columns of some types.

    Only Spark knows the types of users' columns; most hidden columns have one type.
    """
    if what in PASSING:
        return
    kept = {one.name: one for note in node.keeps() for one in note.rows}.get(what)
    told = f"{node.name} ({type(node).__name__}) keeps {what}"
    if kept is None or kept.time != time:
        yield f"{told} by {time}, which it does not declare"
    elif wrong := ({*columns} - {*kept.columns, *kept.sometimes}) | ({*kept.columns} - {*columns} - LEFT_OUT):
        yield f"{told} with {sorted(wrong)}, declared or written, but not both"
    else:
        types = {name: name.type for name in (*kept.columns, *kept.sometimes) if isinstance(name, Hidden)}
        other = {name: kind for name, kind in columns.items() if types.get(name, kind) != kind}
        if other:
            yield f"{told} with {other}, declared as {[types[name] for name in other]}"


def spark_types(schema: Any) -> dict[str, str]:
    """The types of columns by their names in Spark SQL, of a schema of Spark's or of Arrow's."""
    from pyspark.sql.pandas.types import from_arrow_schema

    found = from_arrow_schema(schema) if isinstance(schema, pa.Schema) else schema
    return {field.name: field.dataType.simpleString().upper() for field in found.fields}


def unexplained(control: type[Control]) -> Iterator[str]:
    """The scalars of a class that neither its docstring nor that of a named class explains."""
    told = inspect.getdoc(control) or ""
    own = inspect.get_annotations(control)
    yield from (f"{control.__name__}.{name}" for name in own if not re.search(rf"``{name}``", told))


def unwritten(control: type[Control]) -> Iterator[str]:
    """The scalars of a class that no module of its operators sets."""
    above = {kind.__name__ for kind in (*OPERATORS, RunningMark) if issubclass(kind.control, control)} | {
        control.__name__
    }
    written = {name for names, keywords in _remembered() if names & above for name in keywords} | {*BY_HAND}
    yield from (f"{control.__name__}.{name}" for name in inspect.get_annotations(control) if name not in written)


@cache
def _remembered() -> list[tuple[set[str], set[str]]]:
    """The names in each module, and the scalars that it sets."""
    found = []
    for path in SOURCES.rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        names = {node.id for node in nodes if isinstance(node, ast.Name)}
        names |= {node.name for node in nodes if isinstance(node, ast.alias | ast.ClassDef)}
        calls = [node for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
        given = (node.keywords for node in calls if node.func.attr == "remember")  # type: ignore[attr-defined]
        found.append((names, {keyword.arg or "" for keywords in given for keyword in keywords}))
    return found


def controls(above: type[Control] = Control) -> Iterator[type[Control]]:
    """Every class of scalars."""
    for found in above.__subclasses__():
        if found.__module__.startswith("rowtime."):
            yield found
            yield from controls(found)
