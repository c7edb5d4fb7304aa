"""A plan for a trace: its operators also give the columns that only a trace shows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any, cast

from rowtime.operators.contract import Operator
from rowtime.operators.sinks.sink import Sink


def detailed(sinks: Iterable[Sink]) -> tuple[Sink, ...]:
    """Return the outputs over operators that give these columns too; the others are the same objects."""
    copies: dict[str, Operator] = {}

    def below(value: Any) -> Any:
        if isinstance(value, tuple):
            parts = tuple(map(below, value))
            return parts if any(one is not other for one, other in zip(parts, value, strict=True)) else value
        return of(value) if isinstance(value, Operator) else value

    def of(node: Operator) -> Operator:
        if node.name not in copies:
            given = {field.name: getattr(node, field.name) for field in fields(cast("Any", node))}
            changed = {
                name: changed_value for name, value in given.items() if (changed_value := below(value)) is not value
            }
            copies[node.name] = (replace(cast("Any", node), **changed) if changed else node).with_details()
        return copies[node.name]

    return tuple(cast("Sink", of(sink)) for sink in sinks)
