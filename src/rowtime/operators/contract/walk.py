"""The operators of a plan, inputs first."""

from __future__ import annotations

from collections.abc import Iterator

from rowtime.operators.contract.operator import Operator


def walk(root: Operator) -> Iterator[Operator]:
    """Yield every operator below and including ``root``, inputs first, each once."""
    seen: set[str] = set()

    def visit(node: Operator) -> Iterator[Operator]:
        if node.name in seen:
            return
        seen.add(node.name)
        for child in node.inputs:
            yield from visit(child)
        yield node

    return visit(root)
