"""The operator: a frozen plan node that says what it needs, keeps, emits and promises.

An operator file reads in this order: ``requires``, ``keeps``, ``emits``, ``promises``, ``step``. The first four are
pure Python on facts and scalars: the planner, EXPLAIN and the running tick all use the same ones. ``step`` turns the
new rows of a tick (DataFrames) into results; it is the only place that touches Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from rowtime.core.clock import Clocks
from rowtime.operators.contract.edge import Delta, Shape
from rowtime.operators.contract.state import Kept
from rowtime.operators.contract.tick import Tick


class Operator:
    """A plan node. What most operators have in common stands here; each says in its own file where it differs."""

    kind: ClassVar[str]
    promise: ClassVar[str] = ""
    """Which bound goes downstream, in words; empty where it is the identity or the least."""
    reason: ClassVar[str] = ""
    """Why the promise holds, in one sentence; empty where it is the identity or the least."""

    name: str
    """Unique in its plan and stable from run to run."""

    if TYPE_CHECKING:  # a field or a property: a field must not find a property in its base

        @property
        def inputs(self) -> tuple[Operator, ...]:
            """The operators that this one reads."""
            ...

    def requires(self) -> str:
        """What the inputs must give, in words: order, or nothing."""
        return "nothing"

    def keeps(self) -> tuple[Kept, ...]:
        """What is kept from tick to tick, and what bounds it."""
        return ()

    def emits(self) -> Shape:
        """What the output edge carries."""
        raise NotImplementedError

    def promises(self, clocks: Sequence[Clocks], control: Mapping[str, Any]) -> Clocks:
        """The output's bounds, given those of the inputs and the operator's scalars."""
        raise NotImplementedError

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """The results of one tick."""
        raise NotImplementedError


class Unary(Operator):
    """An operator of one input, whose columns and bounds it passes on unless it says otherwise."""

    input: Operator

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """The one input."""
        return (self.input,)

    def emits(self) -> Shape:
        """What the input carries."""
        return self.input.emits()

    def promises(self, clocks: Sequence[Clocks], control: Mapping[str, Any]) -> Clocks:  # noqa: ARG002 - the operator's
        """The bounds of the input."""
        return clocks[0]


def walk(root: Operator) -> Iterator[Operator]:
    """Every operator below and including ``root``, inputs first, each once."""
    seen: set[str] = set()

    def visit(node: Operator) -> Iterator[Operator]:
        if node.name in seen:
            return
        seen.add(node.name)
        for child in node.inputs:
            yield from visit(child)
        yield node

    return visit(root)
