"""The one place that inserts order enforcers: a merge on each edge that lacks the order its consumer requires.

Semantics 2.5: order is a property of an edge. A merge is planned only if a consumer needs it, as a database plans a
sort. Operators declare what they require (`Operator.requires`), edges what they have (`Shape.traits`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from rowtime.operators.contract import Operator
from rowtime.operators.contract.requirement import Requirement
from rowtime.operators.order.merge import Merge


@dataclass
class Enforcer:
    """Inserts merges into the plan of a script, query by query; ``fresh`` names an operator.

    A part that has been processed is settled: it stays as it is, and no merge is added to it later.
    """

    fresh: Callable[[str], str]
    settled: dict[int, tuple[Operator, Operator]] = field(default_factory=dict)
    """By identity of an operator: the operator, and its replacement."""
    own: dict[int, Operator] = field(default_factory=dict)
    """By identity, the merges that were made for their row numbers."""

    def plan(self, node: Operator, name: str) -> Operator:
        """Return the operator over inputs that meet every operator's requirements; ``name``: of the query."""
        if id(node) not in self.settled:
            needs = zip(node.inputs, node.requires(), strict=True)
            enforced = over(node, [self._met(child, need, name) for child, need in needs])
            self.settled[id(node)] = node, enforced
            self.settled[id(enforced)] = enforced, enforced
        return self.settled[id(node)][1]

    def edge(self, node: Operator, need: Requirement, name: str) -> Operator:
        """Return an operator that meets a requirement: the node itself, or a merge ``name`` above it.

        For a select list without the columns that order the rows, it is a copy of the list, above a merge.
        """
        if id(node) in self.own if need.own else need.met(node.emits()):
            return node
        if need.numbers and node.keeps_places and not node.emits().shows_order:
            below = self.edge(node.inputs[0], replace(need, own=False), name)
            return self.edge(over(replace(node, name=self.fresh(node.name)), [below]), need, name)  # type: ignore[type-var]
        merge = Merge(self.fresh(name), node, numbers=need.numbers, origins=need.origins, traced=need.traced)
        if need.own:
            self.own[id(merge)] = merge
        return merge

    def _met(self, node: Operator, need: Requirement, name: str) -> Operator:
        """Return an input that meets the requirement; the merge is as low in its query as the requirement allows."""
        if not (need.near or id(node) in self.settled or need.met(node.emits())) and node.keeps_places:
            below, *others = zip(node.inputs, node.requires(), strict=True)
            whole = [self._met(below[0], need, name), *(self._met(*other, name) for other in others)]
            return self._met(over(node, whole), need, name)
        return self.edge(self.plan(node, name), need, f"{name}.{need.name}")


def over(node: Operator, inputs: Sequence[Operator]) -> Operator:
    """Return the operator over other inputs, in the order of its fields; itself if they are its own."""
    pairs = list(zip(node.inputs, inputs, strict=True))
    if all(new is old for old, new in pairs):
        return node

    def changed(value: object) -> object:
        if isinstance(value, tuple):
            return tuple(map(changed, value))
        return pairs.pop(0)[1] if pairs and value is pairs[0][0] else value

    of: Any = node
    copied: Operator = replace(of, **{part.name: changed(getattr(node, part.name)) for part in fields(of) if part.init})
    return copied
