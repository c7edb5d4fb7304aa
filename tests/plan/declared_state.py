"""The law of declared state: an operator keeps only what it declares, and what it declares is there to be kept."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path

import rowtime
from rowtime.core.columns import CHANGED_BY, MET
from rowtime.operators.contract import Control, Operator
from rowtime.operators.every import OPERATORS
from rowtime.operators.over.over_calls import RunningMark

SOURCES = Path(rowtime.__file__).parent
BY_HAND = ("set", "skipped")  # scalars that a command writes into the journal
LEFT_OUT = {CHANGED_BY, MET}
"""Columns of changes of events, which go when what has been put together is written again."""
UNTOLD = {
    ("Over", "rows"), ("Over", "heads"), ("Snapshot", "state"), ("Snapshot", "open"),
    ("Stream", "held"), ("EventStream", "held"), ("TSort", "held"),
}  # fmt: skip
"""Kept rows of which only the first rows tell the columns: those of accumulators, or those that a source gives."""
PASSING = ("complete", "merged", "failed")  # files of results on their way inside a tick; nothing of them is kept


def unfounded(operators: Iterable[Operator]) -> Iterator[str]:
    """What operators say that they keep without saying where."""
    for node in operators:
        scalars = {field.name for field in fields(node.control)}
        for note in node.keeps():
            if not (note.rows or note.fields):
                yield f"{node.name} keeps {note.what} nowhere"
            yield from (f"{node.name} has no scalar {name}" for name in note.fields if name not in scalars)


def undeclared(node: Operator, what: str, time: str, columns: Iterable[str]) -> Iterator[str]:
    """What is wrong if an operator keeps rows under a name, forgotten by a column, in files of some columns."""
    if what in PASSING:
        return
    kept = {one.name: one for note in node.keeps() for one in note.rows}.get(what)
    told = f"{node.name} ({type(node).__name__}) keeps {what}"
    if kept is None or kept.time != time:
        yield f"{told} by {time}, which it does not declare"
    elif kept.columns is None:
        if (type(node).__name__, what) not in UNTOLD:
            yield f"{told} without saying in which columns"
    elif wrong := ({*columns} - {*kept.columns}) | ({*kept.columns} - {*columns} - LEFT_OUT):
        yield f"{told} with {sorted(wrong)}, declared or written, but not both"


def unexplained(control: type[Control]) -> Iterator[str]:
    """The scalars of a class that its docstring, or one that it names, does not explain."""
    told = inspect.getdoc(control) or ""
    own = inspect.get_annotations(control)
    yield from (f"{control.__name__}.{name}" for name in own if not re.search(rf"``{name}``", told))


def unwritten(control: type[Control]) -> Iterator[str]:
    """The scalars of a class that no module of an operator that has them gives its tick."""
    above = {kind.__name__ for kind in (*OPERATORS, RunningMark) if issubclass(kind.control, control)} | {
        control.__name__
    }
    written = {name for names, keywords in _remembered() if names & above for name in keywords} | {*BY_HAND}
    yield from (f"{control.__name__}.{name}" for name in inspect.get_annotations(control) if name not in written)


@cache
def _remembered() -> list[tuple[set[str], set[str]]]:
    """The names that stand in each module, and the scalars that it gives ticks."""
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
    """Every class of scalars that there is."""
    for found in above.__subclasses__():
        if found.__module__.startswith("rowtime."):
            yield found
            yield from controls(found)
