"""A proof tree: the order of an expression, the rule that gives it, and the proofs of its parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from rowtime.expr.facts import Fact
from rowtime.expr.order import Order
from rowtime.expr.readable import readable


@dataclass(frozen=True)
class Proof:
    """``expression`` has the order of ``fact`` by ``rule``; if it has none, ``rule`` says what failed."""

    expression: exp.Expr
    fact: Fact
    rule: str
    parts: tuple[Proof, ...] = ()

    @property
    def text(self) -> str:
        """Return the expression as a user would write it."""
        return readable(self.expression)

    @property
    def order(self) -> Order:
        """Return the proved order."""
        return self.fact.order

    def failure(self) -> Proof:
        """Return the innermost proof whose rule failed; the proof itself if its own rule did."""
        for part in self.parts:
            if part.order is Order.NONE:
                return part.failure()
        return self

    def lines(self) -> Iterator[str]:
        """Yield one line per rule, with its parts below."""
        return lines_of(self.as_json())

    def as_json(self) -> dict[str, Any]:
        """Return the tree as plain values."""
        content: dict[str, Any] = {"expression": self.text, "order": self.order.value, "rule": self.rule}
        if self.parts:
            content["parts"] = [part.as_json() for part in self.parts]
        return content


def lines_of(proof: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    """Yield the lines of a proof that is given as plain values."""
    yield f"{'  ' * depth}{proof['expression']}: {proof['order']} ({proof['rule']})"
    for part in proof.get("parts", ()):
        yield from lines_of(part, depth + 1)
