"""The canonical text of an operator, by which a checkpoint knows whether it belongs to a plan."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from sqlglot import exp

from rowtime.operators.contract import Column, Operator
from rowtime.operators.sink import Sink
from rowtime.operators.stream import Stream
from rowtime.operators.table import Table
from rowtime.operators.value_clocks import MARK
from rowtime.plan.kept_options import lasting, lasts
from rowtime.sql.former import to_former
from rowtime.sql.generate import to_spark

_JOURNALED = ("idle_after",)  # what it decides stands in the journal, so it may change between two starts


_LATER = ("imports", "inner", "before", "resolution", "beyond", "failing", "holds")
"""Left out where they say nothing: checkpoints from before they were there stay good."""
_SOURCES = re.compile(r"(?:stream|sink|table)\(")
_PAIR = re.compile(r"\[([\w.\-]+), ([^\[\]]*)\](?:, )?")
_SAME_STATE = ("traced", "limited")
"""What changes nothing that is kept: older checkpoints have it not."""
_MARKED = re.compile(f"`{MARK}([^`]*)`")


def describe(node: Operator, names: Mapping[str, str] | None = None, *, former: bool = False) -> str:
    """An operator in one line of canonical text; of its inputs only the names, or what ``names`` calls them.

    ``former``: expressions are spelled as in plans that do not say how they spell.
    """
    spelled = to_former if former else to_spark
    called = names or {}
    parts = [
        f"{f.name}={_canonical(_field(node, f.name), spelled)}"
        for f in fields(node)  # type: ignore[arg-type]
        if f.name not in ("name", "input", "inputs", "gate", "gates", "made", "event", *_SAME_STATE, *_JOURNALED)
        and (f.name not in _LATER or getattr(node, f.name))
    ]
    inputs = ", ".join(called.get(child.name, child.name) for child in node.inputs)
    text = f"{node.kind}({inputs}; {'; '.join(parts)})"
    return _MARKED.sub(lambda mark: f"`{MARK}{called.get(mark[1], mark[1])}`", text) if called else text


def _field(node: Operator, name: str) -> object:
    if isinstance(node, Stream | Table) and name == "source":
        return node.source[0], lasting(node.source[1])
    if isinstance(node, Sink) and name == "options":
        return lasting(node.options)
    return getattr(node, name)


def _canonical(value: object, spelled: Callable[[exp.Expr], str]) -> str:
    if isinstance(value, exp.Expr):
        return spelled(value)
    if isinstance(value, tuple):
        return "[" + ", ".join(_canonical(part, spelled) for part in value) + "]"
    if isinstance(value, Column):
        return f"({value.name}, {value.type})"  # what is proved of it may grow without another meaning
    if is_dataclass(value) and not isinstance(value, type):
        said = {f.name: getattr(value, f.name) for f in fields(value) if f.name not in _SAME_STATE}
        parts = (_canonical(one, spelled) for name, one in said.items() if one or name not in _LATER)
        return "(" + ", ".join(parts) + ")"
    return str(value)


def fingerprint(operators: Mapping[str, str]) -> str:
    """One hash of the descriptions of all operators."""
    return hashlib.sha256(json.dumps(operators, sort_keys=True).encode()).hexdigest()


def without_secrets(plan: Mapping[str, Any]) -> Mapping[str, Any]:
    """A plan that an older version wrote, as this one would have written its operators."""
    operators = {name: _lasting_text(text) for name, text in plan["operators"].items()}
    if operators == plan["operators"]:
        return plan
    return {**plan, "operators": operators, "fingerprint": fingerprint(operators)}


def _lasting_text(text: str) -> str:
    if not _SOURCES.match(text):
        return text
    found = _PAIR.sub(lambda pair: pair[0] if lasts(pair[1]) else "", text)
    return found if found == text else found.replace(", ]", "]")
