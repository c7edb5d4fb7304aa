"""A proof tree: the order of an expression, the rule that gives it, and what the rule stands on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rowtime.expr.facts import Fact
from rowtime.expr.order import Order


@dataclass(frozen=True)
class Proof:
    """``text`` has the order of ``fact`` by ``rule``; where there is none, ``rule`` says what failed."""

    text: str
    fact: Fact
    rule: str
    parts: tuple[Proof, ...] = ()

    @property
    def order(self) -> Order:
        """The order that is proved."""
        return self.fact.order

    def failure(self) -> Proof:
        """The innermost expression whose rule failed; the proof itself if its own rule did."""
        for part in self.parts:
            if part.order is Order.NONE:
                return part.failure()
        return self

    def lines(self, depth: int = 0) -> Iterator[str]:
        """One line a rule, parts below what stands on them."""
        yield f"{'  ' * depth}{self.text}: {self.order.value} ({self.rule})"
        for part in self.parts:
            yield from part.lines(depth + 1)

    def as_json(self) -> dict[str, Any]:
        """The tree as plain values."""
        found: dict[str, Any] = {"expression": self.text, "order": self.order.value, "rule": self.rule}
        if self.parts:
            found["parts"] = [part.as_json() for part in self.parts]
        return found
