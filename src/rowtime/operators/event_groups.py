"""What every GROUP BY over events has: whose events they are, what groups them, what is computed of a group (SPEC 9.6).

The operators differ in which events a group holds and when it is final: what they keep, and how they step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from rowtime.core.clock import Clocks, least
from rowtime.operators.contract import Link, Operator, Shape, Unary
from rowtime.operators.grouping import Groups
from rowtime.operators.lifetimes import TOUCHES, E, derived
from rowtime.operators.select import Item

if TYPE_CHECKING:
    from sqlglot import exp

FROM = "__s"  # the start of a kept event, µs


@dataclass(frozen=True)
class EventGroups(Groups, Unary):
    """``aggregates`` of the events of each group and ``keys``; ``items`` and ``having`` are over both by name."""

    name: str
    input: Operator
    keys: tuple[Item, ...]
    aggregates: tuple[Item, ...]
    items: tuple[Item, ...]
    having: exp.Expr | None = field(default=None, kw_only=True)

    keeps_versions: ClassVar[bool] = True

    def emits(self) -> Shape:
        """The select list, as events."""
        return derived(Shape(tuple(item.column for item in self.items)))

    def promises(self, clocks: Sequence[Clocks], control: Any) -> Clocks:  # noqa: ARG002
        """The least of the input's: below it nothing comes, so no group changes."""
        return {"": least(clocks[0].values())}

    @property
    def key_names(self) -> list[str]:
        """The columns that group the events."""
        return [key.column.name for key in self.keys]

    @property
    def identity(self) -> list[str]:
        """What is the same in all changes of one kept event."""
        return [*self.input.emits().names, FROM, E]

    def link(self, n: int) -> Link:  # noqa: ARG002 - one input
        """What is alive, and what ends where it begins or begins where it ends."""
        return Link(self.same_keys(), meets=TOUCHES, narrows="meet")
