"""What holds an operator: the slowest input, stream and writer below it; and since when."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rowtime.core.clock import least
from rowtime.operators.contract import Delta
from rowtime.plan.program import Program
from rowtime.plan.stored import StoredPlan


def slowest_of(inputs: Sequence[str], clocks: Mapping[str, Mapping[str, int]]) -> tuple[str, int]:
    """Return the input with the least bound, which holds an operator, and that bound."""
    bounds = {name: least(clocks.get(name, {}).values()) for name in inputs}
    name = min(inputs, key=lambda one: bounds[one])
    return name, bounds[name]


def holder(plan: StoredPlan, clocks: Mapping[str, Mapping[str, int]], name: str) -> tuple[str, str]:
    """Return the stream and writer with the least clock below an operator."""
    inputs = plan.operators[name].inputs
    mine = clocks.get(name, {})
    slowest = min(mine, key=lambda writer: (mine[writer], writer), default="")
    if not inputs:
        return name, slowest
    if plan.operators[name].answers.side_by_side and slowest[:4].isdigit():
        child = inputs[int(slowest[:4])]
        return _deeper(plan, clocks, child, slowest[5:])
    if _merges(plan, clocks, name, slowest):
        return holder(plan, clocks, slowest_of(inputs, clocks)[0])
    return _deeper(plan, clocks, inputs[0], slowest)


def _deeper(plan: StoredPlan, clocks: Mapping[str, Mapping[str, int]], name: str, writer: str) -> tuple[str, str]:
    """Return the same writer further down, until an operator merges writers."""
    if not plan.operators[name].inputs:
        return name, writer
    if plan.operators[name].answers.side_by_side or _merges(plan, clocks, name, writer):
        return holder(plan, clocks, name)
    return _deeper(plan, clocks, plan.operators[name].inputs[0], writer)


def _merges(plan: StoredPlan, clocks: Mapping[str, Mapping[str, int]], name: str, writer: str) -> bool:
    """Return True if a writer of an operator is not one of its input's: the output merges all writers."""
    operator = plan.operators[name]
    return operator.answers.merges_writers or writer not in clocks.get(operator.inputs[0], {})


def beneath(plan: StoredPlan, name: str) -> set[str]:
    """Return everything below an operator."""
    inputs = plan.operators[name].inputs
    return {*inputs, *(deeper for child in inputs for deeper in beneath(plan, child))}


def since(
    program: Program, entry: Mapping[str, Any], segments: Collection[str], deltas: Mapping[str, Delta], now: int
) -> dict[str, list[int]]:
    """Return the bound that holds each operator with rows, and since when it has that bound (µs UTC).

    ``entry`` is the one before; ``segments`` are the keys of the held rows' segments.
    """
    before, clocks = entry.get("since", {}), {name: delta.clocks for name, delta in deltas.items()}
    holding = {key.rsplit("/", 1)[0] for key in segments}
    known_holders: dict[str, list[int]] = {}
    for node in program.operators:
        if node.name in holding:
            holders = [] if node.holds_itself else [child.name for child in node.inputs]
            _, bound = slowest_of(holders or [node.name], clocks)
            holder = before.get(node.name, [None])
            known_holders[node.name] = holder if holder[0] == bound else [bound, now]
    return known_holders
