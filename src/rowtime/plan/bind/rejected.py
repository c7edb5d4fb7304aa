"""Binds ``name.rejected``: the rows that the gates of a stream or view refuse (semantics 4)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from rowtime.core.errors import Place, refuse
from rowtime.operators.contract import Operator, walk
from rowtime.operators.gates.rejected import Rejected
from rowtime.operators.streams.union_all import UnionAll
from rowtime.plan.bind.pump_edge import behind


def refused_rows(
    fresh: Callable[[str], str], node: Operator, name: str, pumps: Collection[str], place: Place
) -> Operator:
    """Return the rows refused by the gate ``name`` below ``node``: by its ``pumps`` and by its declarations.

    ``fresh`` makes names. Raises ``Refused`` (R125) if there is no such gate.
    """
    gates = [part for part in walk(node) if part.refuses()]
    gate = next((part for part in gates if part.name == name), None)
    gate = gate or next((part for part in gates if part.name == f"{name}.events"), None)
    if gate is None and node.computes:
        return Rejected(fresh(f"{name}.rejected"), node, node.emits().of_users, failing=name)
    if gate is None:
        raise refuse("R125", f"{name} refuses no rows", f"These do: {', '.join(part.name for part in gates)}.", place)
    filled = [part for part in gates if part.name in pumps]
    others = (part for part in gates if part is not gate and part.name.startswith(f"{name}."))
    orders = [part for part in others if part.checks_declared()]
    return _together(fresh, name, (gate, *filled, *orders), optional=bool(filled))


def refused_by_pump(fresh: Callable[[str], str], node: Operator, pump: str, place: Place) -> Operator:
    """Return the rows refused on a pump's way to its target: by its query's T-sort, its gate, its order checks.

    All of them have the columns of the query, as they were computed. Raises ``Refused`` (R125) if nothing is checked.
    """
    gates = [part for part in walk(node) if part.checks_pump(pump)]
    query = behind(node)
    if not gates and query.computes:
        return Rejected(fresh(f"{pump}.rejected"), query, query.emits().of_users, failing=pump)
    if not gates:
        what = f"{pump} refuses no rows: its values fit the declared columns of the target, and nothing is checked"
        raise refuse("R125", what, place=place)
    return _together(fresh, pump, gates, optional=False)


def _together(fresh: Callable[[str], str], name: str, gates: Sequence[Operator], *, optional: bool) -> Operator:
    refused = tuple(Rejected(fresh(f"{name}.rejected"), gate, gate.refused_columns()) for gate in gates)
    return UnionAll(fresh(f"{name}.rejected.all"), refused, optional=optional) if refused[1:] else refused[0]
