"""What waits for what: for each operator that holds rows, who holds it and what releases it.

It reads the plan and a journal entry, nothing else, so it works on a running, stopped or
crashed pipeline and starts neither Spark nor Java.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rowtime.core.clock import least
from rowtime.core.time import BEGINNING, END, to_text


@dataclass(frozen=True)
class Wait:
    """One operator that holds rows; ``since`` and ``bound`` as people read them (UTC)."""

    operator: str
    kind: str
    held: int
    bound: str
    stream: str
    writer: str
    release: str

    def __str__(self) -> str:
        who = f"writer {self.writer} of {self.stream}" if self.writer else self.stream
        return f"{self.operator} holds {self.held:,} rows at {self.bound}: waits for {who}; {self.release}"

    def as_json(self) -> dict[str, Any]:
        """The finding as plain values."""
        return asdict(self)


def waiting(plan: Mapping[str, Any], entry: Mapping[str, Any]) -> list[Wait]:
    """Every operator that holds rows after ``entry``, in plan order."""
    held: dict[str, int] = {}
    for key, rows in entry.get("held", {}).items():
        name = key.rsplit("/", 1)[0]
        held[name] = held.get(name, 0) + rows
    found = (_wait(plan, entry, name, rows) for name, rows in held.items() if rows)
    order = list(plan["inputs"])
    return sorted((w for w in found if w is not None), key=lambda wait: order.index(wait.operator))


def _wait(plan: Mapping[str, Any], entry: Mapping[str, Any], name: str, rows: int) -> Wait | None:
    if name not in plan["inputs"]:
        return None
    below = plan["inputs"][name][0]
    bound = least(entry["clocks"].get(below, {}).values())
    if bound >= END:
        return None
    stream, writer = _holder(plan, entry["clocks"], below)
    return Wait(name, plan["kinds"][name], rows, to_text(bound), stream, writer, _release(entry, stream, writer))


def _holder(plan: Mapping[str, Any], clocks: Mapping[str, Mapping[str, int]], name: str) -> tuple[str, str]:
    """The stream and writer whose clock is the least below an operator."""
    inputs = plan["inputs"][name]
    mine = clocks.get(name, {})
    slowest = min(mine, key=lambda writer: (mine[writer], writer), default="")
    if not inputs:
        return name, slowest
    if plan["kinds"][name] == "union all" and slowest[:4].isdigit():
        child = inputs[int(slowest[:4])]
        return _deeper(plan, clocks, child, slowest[5:])
    if plan["kinds"][name] in ("merge", "group by"):
        return _holder(plan, clocks, inputs[0])
    return _deeper(plan, clocks, inputs[0], slowest)


def _deeper(
    plan: Mapping[str, Any], clocks: Mapping[str, Mapping[str, int]], name: str, writer: str
) -> tuple[str, str]:
    """The same writer further down, until something merges writers."""
    if not plan["inputs"][name]:
        return name, writer
    if plan["kinds"][name] in ("merge", "group by", "union all"):
        return _holder(plan, clocks, name)
    return _deeper(plan, clocks, plan["inputs"][name][0], writer)


def _release(entry: Mapping[str, Any], stream: str, writer: str) -> str:
    clock = entry["clocks"].get(stream, {}).get(writer, BEGINNING)
    spoken = entry["sources"].get(stream, {}).get("offsets", {})
    if not spoken:
        return f"nobody has written to {stream} yet: insert rows, or ALTER STREAM {stream} END"
    if not spoken.get(writer):
        return (
            f"it has sent nothing yet: send a row, type rowtime bound {stream} '<time>' --writer '{writer}', "
            f"or set it aside with ALTER STREAM {stream} SET (IDLE AFTER INTERVAL '10' SECOND)"
        )
    shown = "" if clock <= BEGINNING else f" (its clock is {to_text(clock)})"
    return f"a later row{shown}, a bound (rowtime bound {stream} '<time>'), or its end releases them"
