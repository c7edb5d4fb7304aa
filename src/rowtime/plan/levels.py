"""The levels of a plan: which operators step in any task of a tick, which by keys, and which in the one that has all.

Level 0 has the operators below the first one that needs all rows of its inputs. Each of its tasks has a part of the
rows of each stream. What its last operators give is exchanged: the task of the last level gets it from all of them.

Between both there may be a level of keys: operators of which each task needs all rows of its keys (`ByKeys`), and those
above them that map each row by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from rowtime.operators.contract import ByKeys, Distribution, Operator
from rowtime.operators.streams.table import is_table
from rowtime.plan.required_columns import columns_read

_FIRST: Final = (Distribution.ANY, Distribution.IN_ORDER, Distribution.WHOLE)
Exchange = Mapping[str, Sequence[Operator]]
"""The operators of a level that others above it read, with the latter."""


@dataclass(frozen=True)
class Levels:
    """``first``: the operators of level 0, in plan order; ``exchanged``: what goes from there to others.

    ``keyed``: the operators of the level of keys that read rows of level 0, with their keys; ``shared``: all of its
    operators, in plan order; ``handed``: what goes from there to the last level. ``alone``: level 0 has all operators.
    """

    first: Sequence[Operator] = ()
    exchanged: Exchange = field(default_factory=dict)
    keyed: Mapping[str, ByKeys] = field(default_factory=dict)
    shared: Sequence[Operator] = ()
    handed: Exchange = field(default_factory=dict)
    alone: bool = False

    @classmethod
    def of(cls, operators: Sequence[Operator], above: Collection[str] = ()) -> Levels:
        """Return the levels of operators in plan order; none if a stream needs all of its rows in one task.

        The tasks of level 0 read all streams. ``above``: operators that are not on level 0, although they could be.
        """
        first: dict[str, Operator] = {}
        for node in operators:
            below = node.name not in above and all(child.name in first for child in node.inputs)
            if below and node.distribution() in _FIRST:
                first[node.name] = node
        if any(not node.inputs and node.name not in first and not is_table(node) for node in operators):
            return cls()
        exchanged = _exchange(operators, first)
        keyed: dict[str, ByKeys] = {}
        shared: dict[str, Operator] = {}
        for node in operators:
            keys = node.distribution()
            alone = all([*map(id, exchanged.get(child.name, ()))] == [id(node)] for child in node.inputs)
            if isinstance(keys, ByKeys) and alone:
                keyed[node.name], shared[node.name] = keys, node
            elif keys is Distribution.ANY and len(node.inputs) == 1 and node.inputs[0].name in shared:
                shared |= {} if node.is_gate or node.refuses() else {node.name: node}
        handed, alone = _exchange(operators, first, shared), len(first) == len(operators)
        return cls([*first.values()], exchanged, keyed, [*shared.values()], handed, alone)

    def combining(self) -> Iterator[tuple[str, Operator]]:
        """Yield the operators of level 0 whose rows only one other reads, and the latter."""
        return _combining(self.exchanged)

    def combining_handed(self) -> Iterator[tuple[str, Operator]]:
        """Yield the operators of the level of keys whose rows only one other reads, and the latter."""
        return _combining(self.handed)

    def unread(self, name: str) -> frozenset[str]:
        """Return the columns of an operator that is read by others above its level which these do not read."""
        readers = {**self.exchanged, **self.handed}[name]
        node = next(child for child in readers[0].inputs if child.name == name)
        return node.readable() - columns_read(node, readers)

    def runs(self, name: str) -> str:
        """Return in words where an operator of a lower level steps, and where its rows go from there."""
        if any(node.name == name for node in self.shared):
            keys = self.keyed.get(name)
            columns = dict.fromkeys(of for side in keys.given for of in side) if keys is not None else ()
            names = ", ".join(name for name in columns if not name.startswith("__"))  # groups show their keys anyway
            by = f" ({names})" if names else ""
            return f"the tasks of its keys{by}, if several executors exchange many rows" + self._goes(name, self.handed)
        node = next((node for node in self.first if node.name == name), None)
        if node is None:
            return ""
        if node.distribution() is Distribution.WHOLE:
            return "each task of a tick, which reads all of it"
        few = ", if each has many rows for it" if node.distribution() is Distribution.IN_ORDER else ""
        return f"any task of a tick{few}" + self._goes(name, self.exchanged)

    def _goes(self, name: str, exchange: Exchange) -> str:
        if name not in exchange:
            return ""
        plain = Operator.combined
        readers = {below: reader for below, reader in _combining(exchange) if type(reader).combined is not plain}
        what = f"what {readers[name].name} keeps of the rows goes" if name in readers else "the rows go"
        keyed = any(reader.name in self.keyed for reader in exchange[name])
        return f"; {what} to {'the tasks of their keys' if keyed else 'one task'}"


def _exchange(operators: Sequence[Operator], *levels: Mapping[str, Operator]) -> dict[str, list[Operator]]:
    """Return which operators of the last of some levels others above them read."""
    exchanged: dict[str, list[Operator]] = {}
    for node in operators:
        for child in () if any(node.name in level for level in levels) else node.inputs:
            if child.name in levels[-1] and child.distribution() is not Distribution.WHOLE:
                exchanged.setdefault(child.name, []).append(node)
    return exchanged


def _combining(exchange: Exchange) -> Iterator[tuple[str, Operator]]:
    for name, readers in exchange.items():
        if len(readers) == 1 and len(readers[0].inputs) == 1:
            yield name, readers[0]
