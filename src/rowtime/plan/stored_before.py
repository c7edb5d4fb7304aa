"""Stored plans of formats 2 and 3, which have a text for each operator: the only place that handles such text.

An operator is compared with such a plan by the text that it would have had there. Texts are split into fields. Only
fields that are needed are parsed; the rest stays text. Splitting loses nothing, so two operators are equal if their
texts are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar, Final, Self

from sqlglot import exp

from rowtime.core.fields import stored_fields
from rowtime.operators.contract import Column, Operator
from rowtime.operators.over.value_clocks import MARK
from rowtime.plan.kept_options import lasts
from rowtime.plan.stored import FORMAT, Names, StoredOperator, StoredPlan, lasting_of
from rowtime.sql.former import to_former
from rowtime.sql.generate import to_stored

_WIRED: Final = ("gate", "gates", "made", "event", "idle_after")
"""Fields that are not stored, but are in the text of an operator inside another's text."""
_SCALARS: Final[Mapping[str, object]] = {"None": None, "True": True, "False": False}
_FIELD: Final = re.compile(r"(?:^|; )(?=\w+=)")
_PAIR: Final = re.compile(r"\], \[(?=[\w.\-]+, )")
_MARKED: Final = re.compile(f"`{MARK}([^`]*)`")


def read_plan(stored: Mapping[str, Any]) -> StoredPlan:
    """Return a plan of any format from its JSON object."""
    return StoredPlan.read(stored) if stored["format"] >= FORMAT else FormerPlan.read(stored)


@dataclass(frozen=True)
class FormerPlan(StoredPlan):
    """A plan of format 2 or 3; ``spelled`` returns the spelling of expressions in its texts."""

    spelled: Callable[[exp.Expr], str] = to_stored

    structured: ClassVar[bool] = False

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> Self:
        """Return the plan from its JSON object; if it does not name its spelling, it uses `sql.former`."""
        operators = {
            name: _operator(stored["kinds"][name], name, tuple(stored["inputs"][name]), text.partition("; ")[2][:-1])
            for name, text in stored["operators"].items()
        }
        retired = {name: _fields(text) for name, text in stored.get("retired", {}).items()}
        spelled = to_stored if "spelling" in stored else to_former
        return cls(
            stored["sql"],
            operators,
            retired,
            stored.get("spans", {}),
            stored.get("since"),
            "edges" in stored,
            spelled=spelled,
        )

    def of(self, node: Operator, names: Names | None = None) -> StoredOperator:
        """Return an operator as it would have been stored."""
        called = names or {}
        text = _MARKED.sub(lambda mark: f"`{MARK}{called.get(mark[1], mark[1])}`", described(node, self.spelled))
        return _operator(node.kind, node.name, tuple(called.get(child.name, child.name) for child in node.inputs), text)

    def marks(self, node: Operator, now: StoredOperator, was: StoredOperator) -> Names | None:
        """Return the marks of running calls, which come last in a call's text."""
        mine = [call.mark for call in getattr(node, "calls", ()) if call.mark]
        if now == was or not mine:
            return {} if now == was else None
        parts = re.split("|".join(re.escape(f", {mark})") for mark in mine), str(now))
        match = re.fullmatch(r", ([^ ,;()]+)\)".join(map(re.escape, parts)), str(was))
        return None if match is None else dict(zip(mine, match.groups(), strict=True))


def described(node: Operator, spelled: Callable[[exp.Expr], str]) -> str:
    """Return the text of an operator's fields."""
    own = tuple(f for f in fields(node) if f.name not in ("name", "input", "inputs"))  # type: ignore[arg-type]
    values = ((f, lasting_of(v) if "options" in f.metadata else v) for f, v in stored_fields(node, own).items())
    return "; ".join(f"{f.name}={_text(value, spelled)}" for f, value in values)


def _text(value: object, spelled: Callable[[exp.Expr], str]) -> str:
    if isinstance(value, exp.Expr):
        return spelled(value)
    if isinstance(value, tuple):
        return "[" + ", ".join(_text(part, spelled) for part in value) + "]"
    if isinstance(value, Column):
        return f"({value.name}, {value.type})"
    if is_dataclass(value) and not isinstance(value, type):
        stored = {f.name: part for f, part in stored_fields(value, fields(value)).items()}
        names = (f.name for f in fields(value) if f.name in stored or f.name in _WIRED)
        return "(" + ", ".join(_text(getattr(value, name), spelled) for name in names) + ")"
    return str(value)


def _operator(kind: str, name: str, inputs: tuple[str, ...], text: str) -> StoredOperator:
    return StoredOperator(kind, name, inputs, _fields(text))


def _fields(text: str) -> dict[str, Any]:
    fields: dict[str, str] = {}
    for part in filter(None, _FIELD.split(text)):
        name, _, value = part.partition("=")
        if name in fields:  # a literal that looks like a field: the current field continues
            name, value = next(reversed(fields)), f"{fields[next(reversed(fields))]}; {part}"
        fields[name] = value
    return {name: _value(name, value) for name, value in fields.items()}


def _value(name: str, text: str) -> Any:
    if name == "options":
        return _options(text)
    if name == "source" and text.startswith("["):
        kind, _, options = text[1:-1].partition(", ")
        return [kind, _options(options)]
    if name == "shape":
        kind, _, rest = text[1:-1].partition(", ")
        return {"kind": kind, "rest": rest}
    return int(text) if re.fullmatch(r"0|-?[1-9]\d*", text) else _SCALARS.get(text, text)


def _options(text: str) -> list[list[str]]:
    pairs = [part.split(", ", 1) for part in _PAIR.split(text[2:-2])] if len(text) > len("[]") else []
    return [pair for pair in pairs if lasts(*pair)]
