"""Tables that take less than their streams declare: what the gates of pumps look at beside the plan.

It is read when a pipeline starts, and holds from the next tick on. The journal has it in each entry, and a change cuts
the recorded input (`state.cuts`), so that a replay judges each row by what held when the row was read.
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
Narrowed = Mapping[str, Sequence[Mapping[str, Any]]]  # by gate, what columns take, as plain values


def narrowed(nodes: Sequence[SinkNode], stages: Mapping[str, Stage], entry: Mapping[str, Any]) -> Narrowed:
    """What holds from now on; what held by an ``entry`` where a database does not answer."""
    known = {}
    for node in nodes:
        gate = limited_gate(node.input)
        if gate is not None:
            limits = stages[node.name].limits
            before = entry.get(LIMITS, {}).get(gate.name, [])
            known[gate.name] = before if limits is None else [asdict(one) for one in limits if gate.is_narrowed(one)]
    return {name: found for name, found in known.items() if found}
