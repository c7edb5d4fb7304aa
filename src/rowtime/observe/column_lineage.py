"""Which columns of streams and tables a sink's columns are made from, and which decide about its rows.

Operators declare this (`Operator.made_from`, `decided_by`). A column without a declaration counts as made from all
columns that the operator reads, so lineage names too much rather than too little.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from rowtime.core.columns import ROWTIME
from rowtime.operators.contract import Operator
from rowtime.operators.contract.lineage import AGGREGATION, IDENTITY, TRANSFORMATION, Derivation
from rowtime.plan.required_columns import columns_required_of

_RANKS: Final = (IDENTITY, TRANSFORMATION, AGGREGATION)
_TIME: Final = "rowtime.column"  # the option of a stream that names the rowtime column

Place = tuple[str, str]  # the name of a stream or table in the plan, and a column of it


@dataclass
class ColumnLineage:
    """The lineage of one plan; results are cached."""

    _sources: dict[Place, dict[Place, str]] = field(default_factory=dict)

    def sources_of(self, node: Operator, column: str) -> Mapping[Place, str]:
        """Return the columns of streams and tables from which a column of an operator is made, and how."""
        key = (node.name, column)
        if key not in self._sources:
            self._sources[key] = {}
            sources: dict[Place, str] = {}
            for place, how in self._below(node, column):
                sources[place] = max(sources.get(place, IDENTITY), how, key=_RANKS.index)
            self._sources[key] = sources
        return self._sources[key]

    def _below(self, node: Operator, column: str) -> Iterator[tuple[Place, str]]:
        if not node.inputs:
            yield from ((place, IDENTITY) for place in _at_source(node, column))
        for number, child in enumerate(node.inputs):
            source = node.made_from(number, column)
            if source is None:
                source = Derivation([name for name in child.readable() if not name.startswith("__")], TRANSFORMATION)
            for name in source.columns:
                for place, how in self.sources_of(child, name).items():
                    yield place, max(how, source.how, key=_RANKS.index)

    def decides(self, node: Operator) -> Mapping[Place, frozenset[str]]:
        """Return the columns of streams and tables that decide about the rows of an operator, and what they do."""
        deciders: dict[Place, set[str]] = {}
        for above in _through(node, set()):
            for number, child in enumerate(above.inputs):
                decisive = above.decided_by(number)
                names = columns_required_of(above, number, ()) if decisive is None else decisive
                for name in {*names} & {*child.readable(), ROWTIME}:
                    for place in self.sources_of(child, name):
                        deciders.setdefault(place, set()).add(above.decides)
        return {place: frozenset(what) for place, what in deciders.items()}


def _through(node: Operator, seen: set[str]) -> Iterator[Operator]:
    if node.name not in seen:
        seen.add(node.name)
        yield node
        for child in node.inputs:
            yield from _through(child, seen)


def _at_source(node: Operator, column: str) -> Iterator[Place]:
    """Yield the column itself; for the rowtime the column that gives it, if the stream has one."""
    names = node.emits().names
    if column == ROWTIME:
        options = {name.lower(): value for name, value in getattr(node, "source", ("", ()))[1]}
        column = options.get(_TIME, "")
    yield from ((node.name, name) for name in names if name == column or name.lower() == column.lower())
