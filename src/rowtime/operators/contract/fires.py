"""The columns that identify the fires of panes, as far as operators pass them on (semantics 8.2 and 8.4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from rowtime.expr.conditions import conjuncts


@dataclass(frozen=True)
class FireColumns:
    """The columns of fires, by name: the ``ends`` of their panes, their ``timings``, their ``indices``, their change.

    ``again``: the rows may have more than one fire of a pane. ``changes``: they include retractions.
    """

    ends: tuple[str, ...] = ()
    timings: frozenset[str] = frozenset()
    indices: frozenset[str] = frozenset()
    signs: frozenset[str] = frozenset()
    again: bool = False
    changes: bool = False

    def renamed(self, passed: Mapping[str, str]) -> FireColumns:
        """Return the same with the names of a projection: of each, the column that passes it on."""

        def named(old: frozenset[str] | tuple[str, ...]) -> list[str]:
            return [new for new, name in passed.items() if name in old]

        timings, indices, signs = (frozenset(named(part)) for part in (self.timings, self.indices, self.signs))
        return FireColumns(tuple(named(self.ends)), timings, indices, signs, self.again, self.changes)

    def beside(self, other: FireColumns) -> FireColumns:
        """Return the columns that both these fires and others have."""
        ends = tuple(name for name in self.ends if name in other.ends)
        columns = (self.timings & other.timings, self.indices & other.indices, self.signs & other.signs)
        return FireColumns(ends, *columns, again=self.again or other.again, changes=self.changes or other.changes)

    def where(self, condition: exp.Expr | None) -> FireColumns:
        """Return the same for the fires that satisfy a condition over these names."""
        return self.among(condition, lambda side: isinstance(side, exp.Column) and side.name in self.timings)

    def among(self, condition: exp.Expr | None, is_timing: Callable[[exp.Expr], bool]) -> FireColumns:
        """Return the same for those that satisfy a condition; if it asks for COMPLETE, a pane has one at most.

        That holds only if none is retracted.
        """
        once = not self.changes and any(_asks_for_complete(part.unnest(), is_timing) for part in conjuncts(condition))
        return replace(self, again=self.again and not once)


def _asks_for_complete(part: exp.Expr, is_timing: Callable[[exp.Expr], bool]) -> bool:
    sides = [part.this.unnest(), part.expression.unnest()] if isinstance(part, exp.EQ) else []
    complete = any(isinstance(side, exp.Literal) and side.name == "COMPLETE" for side in sides)
    return complete and any(map(is_timing, sides))
