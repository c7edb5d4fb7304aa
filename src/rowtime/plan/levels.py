"""The levels of a plan: which operators step in any task of a tick, and which in the one that has all rows.

Level 0 has the operators below the first one that needs all rows of its inputs. Each of its tasks has a part of the
rows of each stream. What its last operators give is exchanged: the task of level 1 gets it from all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rowtime.operators.contract import Distribution, Operator
from rowtime.operators.streams.table import is_table


@dataclass(frozen=True)
class Levels:
    """``first``: the operators of level 0, in plan order; ``exchanged``: those that others read, with the latter."""

    first: Sequence[Operator] = ()
    exchanged: Mapping[str, Sequence[Operator]] = field(default_factory=dict)

    @classmethod
    def of(cls, operators: Sequence[Operator]) -> Levels:
        """Return the levels of operators in plan order; none if a stream needs all of its rows in one task.

        The tasks of level 0 read all streams.
        """
        first: dict[str, Operator] = {}
        for node in operators:
            below = all(child.name in first for child in node.inputs)
            if below and node.distribution() is Distribution.ANY:
                first[node.name] = node
        if any(not node.inputs and node.name not in first and not is_table(node) for node in operators):
            return cls()
        exchanged: dict[str, list[Operator]] = {}
        for node in operators:
            for child in node.inputs if node.name not in first else ():
                if child.name in first:
                    exchanged.setdefault(child.name, []).append(node)
        return cls([*first.values()], exchanged)

    def combining(self) -> Iterator[tuple[str, Operator]]:
        """Yield the operators whose rows only one other reads, and the latter."""
        for name, readers in self.exchanged.items():
            if len(readers) == 1 and len(readers[0].inputs) == 1:
                yield name, readers[0]

    def runs(self, name: str) -> str:
        """Return in words where an operator of level 0 steps, and what goes from there to level 1."""
        if all(node.name != name for node in self.first):
            return ""
        plain = Operator.combined
        combined = {below: reader.name for below, reader in self.combining() if type(reader).combined is not plain}
        if name in combined:
            return f"any task of a tick; what {combined[name]} keeps of the rows goes to one task"
        return "any task of a tick" + ("; the rows go to one task" if name in self.exchanged else "")
