"""A trace as a graph: the operators of a row's path, from the output down to the streams, with their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rowtime.audit.traced import LISTED
from rowtime.plan.stored import StoredPlan

SHOWN: Final = 8  # rows of an operator


@dataclass(frozen=True)
class Step:
    """One operator of a trace; ``reads``: the contributing operators below it. Times are texts (UTC).

    ``more`` rows are not shown; ``others`` are the ids of those of them that have edges.
    """

    name: str
    kind: str
    reads: Sequence[str]
    columns: Sequence[str]
    rows: Sequence[Mapping[str, Any]]
    more: int
    others: Sequence[int]
    bounds: Sequence[Mapping[str, Any]]


def levels(plan: StoredPlan, items: Sequence[Mapping[str, Any]]) -> list[list[Step]]:
    """Return the operators by their distance from the output, which comes first; one level is a list."""
    names = [*dict.fromkeys(item["operator"] for item in items)]
    depth: dict[str, int] = {}
    for name in sorted(names, key=lambda one: -_place(plan, one)):
        above = [depth[earlier] for earlier in depth if name in _read_by(plan, earlier, names)]
        depth[name] = max(above, default=-1) + 1
    steps = {name: _step(plan, name, names, items) for name in names}
    return [
        [steps[name] for name in names if depth[name] == level] for level in range(max(depth.values(), default=-1) + 1)
    ]


def _place(plan: StoredPlan, name: str) -> int:
    order = [*plan.operators]
    return order.index(name) if name in plan.operators else len(order)


def _read_by(plan: StoredPlan, name: str, names: Sequence[str]) -> list[str]:
    """Return the operators of a trace that one reads, skipping those that are not in it."""
    read: list[str] = []
    left = [*plan.operators[name].inputs] if name in plan.operators else []
    while left:
        below = left.pop(0)
        if below in names:
            read.append(below)
        else:
            left += plan.operators[below].inputs
    return [*dict.fromkeys(read)]


def _step(plan: StoredPlan, name: str, names: Sequence[str], items: Sequence[Mapping[str, Any]]) -> Step:
    mine = [item for item in items if item["operator"] == name]
    rows = [item for item in mine if item["kind"] != "bound"]
    columns = [*dict.fromkeys(column for item in rows for column in item.get("columns", {}))]
    kind = plan.operators[name].kind if name in plan.operators else ""
    bounds = [item for item in mine if item["kind"] == "bound"]
    others = sorted({item["id"] for item in rows[SHOWN:] if "id" in item})[:LISTED]
    reads, more = _read_by(plan, name, names), max(0, len(rows) - SHOWN)
    return Step(name, kind, reads, columns, rows[:SHOWN], more, others, bounds)
