"""Whose clock holds an operator of a described plan: the slowest input, stream and writer below it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rowtime.core.clock import least
from rowtime.plan.stored import StoredPlan


def slowest_of(inputs: Sequence[str], clocks: Mapping[str, Mapping[str, int]]) -> tuple[str, int]:
    """The input whose bound is the least, which holds an operator, and that bound."""
    bounds = {name: least(clocks.get(name, {}).values()) for name in inputs}
    name = min(inputs, key=lambda one: bounds[one])
    return name, bounds[name]


def holder(plan: StoredPlan, clocks: Mapping[str, Mapping[str, int]], name: str) -> tuple[str, str]:
    """The stream and writer whose clock is the least below an operator."""
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
    """The same writer further down, until something merges writers."""
    if not plan.operators[name].inputs:
        return name, writer
    if plan.operators[name].answers.side_by_side or _merges(plan, clocks, name, writer):
        return holder(plan, clocks, name)
    return _deeper(plan, clocks, plan.operators[name].inputs[0], writer)


def _merges(plan: StoredPlan, clocks: Mapping[str, Mapping[str, int]], name: str, writer: str) -> bool:
    """True if a writer of an operator is none of its input's: what comes out is that of all."""
    one = plan.operators[name]
    return one.answers.merges_writers or writer not in clocks.get(one.inputs[0], {})


def beneath(plan: StoredPlan, name: str) -> set[str]:
    """Everything below an operator."""
    inputs = plan.operators[name].inputs
    return {*inputs, *(deeper for child in inputs for deeper in beneath(plan, child))}
