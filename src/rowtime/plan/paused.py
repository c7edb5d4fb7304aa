"""Pauses: what becomes of the operators of a pump that is stopped.

An operator that nobody else reads, and whose inputs are paused as well down to the streams, stays as it is: rows,
clocks, positions. When the pump starts, it continues there, and gives what it would have given without the stop. An
operator with an input that goes on would miss rows, so it is gone, as if the script had lost the pump.
"""

from __future__ import annotations

from collections.abc import Collection

from rowtime.operators.sinks.sink import Sink
from rowtime.plan.program import Program
from rowtime.plan.stored import StoredOperator, StoredPlan


def paused(plan: StoredPlan, program: Program, taken: Collection[str]) -> dict[str, StoredOperator]:
    """Return the operators of a plan that are paused once a program runs, which continues those ``taken``."""
    others = {*taken, *(node.name for node in program.operators)}
    still: set[str] = set()
    for name, operator in plan.operators.items():  # inputs first
        if name not in others and all(child in still for child in operator.inputs):
            still.add(name)
    left, below = [name for name in plan.of_kind(Sink.kind) if _is_stopped(plan, name, program)], set[str]()
    while left:
        name = left.pop()
        if name not in below:
            below.add(name)
            left += plan.operators[name].inputs
    return {name: operator for name, operator in plan.operators.items() if name in still and name in below}


def _is_stopped(plan: StoredPlan, sink: str, program: Program) -> bool:
    """Return True for the sink of a stopped pump; several pumps into a topic share a sink with its name."""
    if program.sink(sink) is not None:
        return False
    owner, pumps = sink.removesuffix(".sink"), program.catalog.pumps
    into = [pump for pump in pumps.values() if pump.target.text.lower() == owner]
    readers = [pumps[owner]] if owner in pumps else into if plan.operators[sink].fields["format"] == "kafka" else []
    return bool(readers) and not any(pump.started for pump in readers)
