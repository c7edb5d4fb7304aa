"""A plan for a trace: its operators also give the columns that only a trace shows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any, cast

from rowtime.operators.contract import Operator
from rowtime.operators.sinks.sink import Sink


def detailed(sinks: Iterable[Sink]) -> tuple[Sink, ...]:
    """Return the outputs over operators that give these columns too; the others are the same objects."""
    made: dict[str, Operator] = {}

    def below(value: Any) -> Any:
        if isinstance(value, tuple):
            found = tuple(map(below, value))
            return found if any(one is not other for one, other in zip(found, value, strict=True)) else value
        return of(value) if isinstance(value, Operator) else value

    def of(node: Operator) -> Operator:
        if node.name not in made:
            given = {field.name: getattr(node, field.name) for field in fields(cast("Any", node))}
            changed = {name: found for name, value in given.items() if (found := below(value)) is not value}
            made[node.name] = (replace(cast("Any", node), **changed) if changed else node).with_details()
        return made[node.name]

    return tuple(cast("Sink", of(sink)) for sink in sinks)
