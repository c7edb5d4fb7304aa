"""Tables with narrower limits than declared: read by the gates of pumps besides the plan.

The limits are read when a pipeline starts, and apply from the next tick on. Each journal entry has them, and a change
cuts the recorded input (`state.cuts`), so that a replay judges each row by the limits when the row was read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rowtime.operators.gates.pump_gate import limited_gate

if TYPE_CHECKING:
    from rowtime.operators.sinks.sink import Sink as SinkNode
    from rowtime.runtime.sinks.staging import Stage

LIMITS = "limits"  # the part of a journal entry
Narrowed = Mapping[str, Sequence[Mapping[str, Any]]]  # by gate, the limits of columns, as plain values


def narrowed(nodes: Sequence[SinkNode], stages: Mapping[str, Stage], entry: Mapping[str, Any]) -> Narrowed:
    """Return the limits from now on; those of an ``entry`` if a database does not answer."""
    limits_of = {}
    for node in nodes:
        gate = limited_gate(node.input)
        if gate is not None:
            limits = stages[node.name].limits
            before = entry.get(LIMITS, {}).get(gate.name, [])
            limits_of[gate.name] = (
                before if limits is None else [asdict(limit) for limit in limits if gate.is_narrowed(limit)]
            )
    return {name: of_target for name, of_target in limits_of.items() if of_target}
