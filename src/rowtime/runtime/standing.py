"""Since when the bounds that hold rows back have stood where they stand, as the journal notes it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from rowtime.operators.contract import Delta
from rowtime.plan.holders import slowest_of
from rowtime.plan.program import Program


def since(
    program: Program, entry: Mapping[str, Any], segments: Collection[str], deltas: Mapping[str, Delta], now: int
) -> dict[str, list[int]]:
    """For each operator that holds rows: the bound that holds them, and since when it is that (µs UTC).

    ``entry`` is the one before, ``segments`` the keys of what is held.
    """
    before, clocks = entry.get("since", {}), {name: delta.clocks for name, delta in deltas.items()}
    holding = {key.rsplit("/", 1)[0] for key in segments}
    found: dict[str, list[int]] = {}
    for node in program.operators:
        if node.name in holding:
            holders = [] if node.holds_itself else [child.name for child in node.inputs]
            _, bound = slowest_of(holders or [node.name], clocks)
            known = before.get(node.name, [None])
            found[node.name] = known if known[0] == bound else [bound, now]
    return found
