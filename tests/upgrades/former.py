"""Plans as older versions wrote them, with a text for each operator (formats 2 and 3)."""

from __future__ import annotations

from typing import Any

from rowtime.plan.program import Program
from rowtime.plan.stored_before import described
from rowtime.sql.former import to_former
from rowtime.sql.generate import to_spark


def former(program: Program, *, edges: bool = True, spelling: bool = True) -> dict[str, Any]:
    """The plan of a program; without ``edges`` or ``spelling`` as versions without these wrote it."""
    nodes, spelled = program.operators, to_spark if spelling else to_former
    inputs = {node.name: [child.name for child in node.inputs] for node in nodes}
    return {
        "format": 3,
        **({"spelling": "as written"} if spelling else {}),
        "sql": program.written,
        "operators": {n.name: f"{n.kind}({', '.join(inputs[n.name])}; {described(n, spelled)})" for n in nodes},
        "inputs": inputs,
        "kinds": {node.name: node.kind for node in nodes},
        **({"edges": 1} if edges else {}),
    }
