"""Which operators must show each change of their events, and which may skip retractions within a tick."""

from __future__ import annotations

from rowtime.plan.program import Program


def visible_changes(program: Program) -> frozenset[str]:
    """Return the operators with a consumer that needs each change.

    An event that begins and ends within a tick is then shown as open first, as if the tick were cut into two.
    """
    names: set[str] = set()
    for node in reversed(program.operators):
        if node.asks_changes(above=node.name in names):
            names.update(child.name for child in node.inputs)
    return frozenset(names)
