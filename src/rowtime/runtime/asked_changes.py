"""Who is asked for each change of its events, and who may leave out what it takes back within a tick."""

from __future__ import annotations

from rowtime.plan.program import Program


def asked_changes(program: Program) -> frozenset[str]:
    """The operators of which a consumer asks for each change.

    An event that begins and ends within a tick is then known as open first, as it would be if it were cut into two.
    """
    asked: set[str] = set()
    for node in reversed(program.operators):
        if node.asks_changes(above=node.name in asked):
            asked.update(child.name for child in node.inputs)
    return frozenset(asked)
