"""What the rows of panes tell of their fires, as far as those above pass it on (semantics 8.2 and 8.4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from rowtime.expr.conditions import conjuncts


@dataclass(frozen=True)
class FiresTold:
    """The columns of fires, by name: the ``ends`` of their panes, their ``timings``, their ``indices``, their change.

    ``again``: more than one fire of a pane may be among the rows. ``changes``: with those that take one back.
    """

    ends: tuple[str, ...] = ()
    timings: frozenset[str] = frozenset()
    indices: frozenset[str] = frozenset()
    signs: frozenset[str] = frozenset()
    again: bool = False
    changes: bool = False

    def renamed(self, passed: Mapping[str, str]) -> FiresTold:
        """The same under the names of a projection: of each, which column it passes on."""

        def named(old: frozenset[str] | tuple[str, ...]) -> list[str]:
            return [new for new, name in passed.items() if name in old]

        timings, indices, signs = (frozenset(named(part)) for part in (self.timings, self.indices, self.signs))
        return FiresTold(tuple(named(self.ends)), timings, indices, signs, self.again, self.changes)

    def beside(self, other: FiresTold) -> FiresTold:
        """What is told both of these fires and of others."""
        ends = tuple(name for name in self.ends if name in other.ends)
        told = (self.timings & other.timings, self.indices & other.indices, self.signs & other.signs)
        return FiresTold(ends, *told, again=self.again or other.again, changes=self.changes or other.changes)

    def where(self, condition: exp.Expr | None) -> FiresTold:
        """The same of the fires that satisfy a condition over these names."""
        return self.among(condition, lambda side: isinstance(side, exp.Column) and side.name in self.timings)

    def among(self, condition: exp.Expr | None, is_timing: Callable[[exp.Expr], bool]) -> FiresTold:
        """The same of those that satisfy a condition; where it asks for COMPLETE, a pane has one, if none is undone."""
        once = not self.changes and any(_asks_for_complete(part.unnest(), is_timing) for part in conjuncts(condition))
        return replace(self, again=self.again and not once)


def _asks_for_complete(part: exp.Expr, is_timing: Callable[[exp.Expr], bool]) -> bool:
    sides = [part.this.unnest(), part.expression.unnest()] if isinstance(part, exp.EQ) else []
    complete = any(isinstance(side, exp.Literal) and side.name == "COMPLETE" for side in sides)
    return complete and any(map(is_timing, sides))
