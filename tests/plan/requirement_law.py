"""The law of requirements: in a plan, each requirement is met and no merge is redundant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace

from rowtime.operators.contract import Operator, walk
from rowtime.operators.contract.requirement import Requirement
from rowtime.operators.order.merge import Merge

LOG = ".written"
"""The suffix of the name of the merge that orders a pump's rows as its log would; no operator above needs it."""


def broken(roots: Sequence[Operator]) -> Iterator[str]:
    """The violations of the law in a plan, as text."""
    nodes = {node.name: node for root in roots for node in walk(root)}
    for node in nodes.values():
        for below, need in zip(node.inputs, node.requires(), strict=True):
            if not met(below, need):
                yield f"{node.name} requires {need} of {below.name}, which has {below.emits().traits}"
    for node in nodes.values():
        if _unordered(node):
            yield f"{node.name} orders rows by columns that {node.inputs[0].name} leaves out"
        if isinstance(node, Merge) and not node.name.endswith(LOG) and not _needed(node, roots):
            yield f"{node.name} could be left out"


def met(node: Operator, need: Requirement) -> bool:
    """True if an operator gives what is required."""
    return isinstance(node, Merge) and node.numbers if need.own else need.met(node.emits())


def _unordered(node: Operator) -> bool:
    return isinstance(node, Merge) and node.numbers and not node.input.emits().shows_order


def _needed(merge: Merge, roots: Sequence[Operator]) -> bool:
    """True if an operator above has an unmet requirement when its input replaces a merge."""
    without = _Without(merge)
    plans = [without.of(root) for root in roots]
    changed = [node for root in plans for node in walk(root) if node.name in without.above]
    return any(
        _unordered(node) or not met(below, need)
        for node in changed
        for below, need in zip(node.inputs, node.requires(), strict=True)
    )


class _Without:
    """A plan without one merge; ``above``: the names of the operators above it."""

    def __init__(self, merge: Merge) -> None:
        self.merge = merge
        self.above: set[str] = set()
        self.made: dict[str, Operator] = {}

    def of(self, node: Operator) -> Operator:
        """The operator over a plan without the merge."""
        if node.name == self.merge.name:
            return self.merge.input
        if node.name not in self.made:
            changes = {}
            for part in fields(node):  # type: ignore[arg-type]
                value = getattr(node, part.name)
                parts = value if isinstance(value, tuple) else (value,)
                new = tuple(self.of(one) if isinstance(one, Operator) else one for one in parts)
                if any(a is not b for a, b in zip(parts, new, strict=True)):
                    changes[part.name] = new if isinstance(value, tuple) else new[0]
            self.above |= {node.name} if changes else set()
            self.made[node.name] = replace(node, **changes) if changes else node  # type: ignore[type-var]
        return self.made[node.name]
