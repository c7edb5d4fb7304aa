"""Binds ``name.rejected``: the rows that the gates of a stream or view refuse (SPEC 4)."""

from __future__ import annotations

from collections.abc import Callable, Collection

from rowtime.core.errors import Place, Problem, Refused
from rowtime.operators.bounded_events import BoundedEvents
from rowtime.operators.contract import Column, Operator, walk
from rowtime.operators.event_stream import EventStream
from rowtime.operators.event_time import EventTimed
from rowtime.operators.group_by import GroupBy
from rowtime.operators.group_values import GroupByValues
from rowtime.operators.hop import Hop
from rowtime.operators.ordered import Ordered
from rowtime.operators.panes import Panes
from rowtime.operators.permit_gate import PermitGate
from rowtime.operators.pump_gate import PumpGate
from rowtime.operators.rejected import Rejected
from rowtime.operators.select import Select
from rowtime.operators.session import SessionGroup
from rowtime.operators.stream import Stream
from rowtime.operators.tsort import TSort
from rowtime.operators.union_all import UnionAll
from rowtime.plan.pump_edge import behind

_GATES = TSort | Stream | Ordered | EventTimed | Panes | PermitGate | BoundedEvents | PumpGate
_COMPUTES = Select | GroupBy | GroupByValues | SessionGroup
"""Ends of queries whose rows may be impossible to compute."""


def refused_rows(
    fresh: Callable[[str], str], node: Operator, name: str, pumps: Collection[str], place: Place
) -> Operator:
    """What the gate ``name`` below ``node`` refuses, those of its ``pumps`` and of what it declares.

    ``fresh`` makes names. Raises ``Refused`` (R125) where there is no such gate.
    """
    gates = [part for part in walk(node) if isinstance(part, _GATES) or (isinstance(part, Hop) and part.gate)]
    gate = next((part for part in gates if part.name == name), None)
    if gate is None and isinstance(node, _COMPUTES):
        return Rejected(fresh(f"{name}.rejected"), node, _users(node), failing=name)
    if gate is None:
        hint = f"These do: {', '.join(part.name for part in gates)}."
        raise Refused(Problem("R125", f"{name} refuses no rows", place, hint))
    filled = [part for part in gates if part.name in pumps]
    orders = [part for part in gates if _declares(part) and part.name.startswith(f"{name}.")]
    as_name = f"{name}.rejected"
    refused = [Rejected(fresh(as_name), part, _shown(part)) for part in (gate, *filled, *orders)]
    if not refused[1:]:
        return refused[0]
    return UnionAll(fresh(f"{as_name}.all"), tuple(refused), optional=bool(filled))


def refused_by_pump(fresh: Callable[[str], str], node: Operator, pump: str, place: Place) -> Operator:
    """What is refused on the way of a pump to its target: by the T-sort of its query, its gate, its order checks.

    All of it with the columns of the query, as they were computed. Raises ``Refused`` (R125) where nothing is checked.
    """
    gates = [part for part in walk(node) if is_of_pump(part, pump)]
    query = behind(node)
    if not gates and isinstance(query, _COMPUTES):
        return Rejected(fresh(f"{pump}.rejected"), query, _users(query), failing=pump)
    if not gates:
        what = f"{pump} refuses no rows: its values fit the declared columns of the target, and nothing is checked"
        raise Refused(Problem("R125", what, place))
    as_name = f"{pump}.rejected"
    refused = tuple(Rejected(fresh(as_name), part, _shown(part)) for part in gates)
    return UnionAll(fresh(f"{as_name}.all"), refused) if refused[1:] else refused[0]


def is_of_pump(part: Operator, pump: str) -> bool:
    """True for a gate on the way of a pump to its target."""
    if isinstance(part, PumpGate):
        return part.name in (pump, f"{pump}.gate")
    if isinstance(part, Ordered):
        return part.declares is None and part.name.startswith(f"{pump}.")
    return isinstance(part, TSort) and part.name == pump


def _declares(gate: Operator) -> bool:
    return isinstance(gate, EventTimed | BoundedEvents) or (isinstance(gate, Ordered) and gate.declares is not None)


def _shown(gate: Operator) -> tuple[Column, ...]:
    """The columns of the rows that a gate refuses."""
    if isinstance(gate, EventStream | BoundedEvents):
        return gate.columns
    return _users(gate.inputs[0] if gate.inputs else gate)


def _users(node: Operator) -> tuple[Column, ...]:
    return tuple(column for column in node.emits().columns if not column.name.startswith("__"))
