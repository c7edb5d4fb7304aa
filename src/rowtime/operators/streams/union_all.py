"""UNION ALL: rows of several inputs as one stream, ties by input number, then writer, position.

The rows are not ordered here: a consumer that needs order gets a `Merge` above, so a GROUP BY over a UNION ALL costs no
merge. This operator only renames writers, so that there is one merged order: the writer ``w`` of input ``i`` becomes
``iiii/w``, and the order of these names is (input, writer).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, ClassVar

from rowtime.core.clock import Clocks
from rowtime.core.columns import ARRIVAL, ORIGIN, POSITION, ROWTIME, STOP, WRITER
from rowtime.core.time import BEGINNING
from rowtime.frames.frame import Frame
from rowtime.operators.contract import (
    Column,
    Control,
    Delta,
    Derivation,
    FireColumns,
    Link,
    Operator,
    Shape,
    Tick,
    named,
)
from rowtime.operators.contract.requirement import PLACED, UNORDERED, Requirement
from rowtime.operators.rows.lifetimes import EVENT
from rowtime.sql.generate import literal, quoted


def prefix(index: int) -> str:
    """Return the prefix of the writer names of input ``index``, with the same length for all."""
    return f"{index:04d}/"


@dataclass(frozen=True)
class UnionAll(Operator):
    """The inputs have the same number of columns; names are those of the first (as in SQL).

    ``optional``: an input without any writer does not hold the others (a stream that only pumps fill), and all have the
    types of the first.
    """

    name: str
    inputs: tuple[Operator, ...]
    optional: bool = False

    kind: ClassVar[str] = "union all"
    passes_all: ClassVar[bool] = True
    finishes_groups: ClassVar = False
    side_by_side: ClassVar[bool] = True
    keeps_rows_alone: ClassVar[bool] = True

    def fires(self) -> FireColumns | None:
        """Return those of the first input, if each input has such columns at these positions."""
        names = self.inputs[0].emits().names
        fires_of_inputs = [(child.fires(), dict(zip(names, child.emits().names, strict=True))) for child in self.inputs]
        fires_known = [fires.renamed(passed) for fires, passed in fires_of_inputs if fires is not None]
        return reduce(FireColumns.beside, fires_known) if len(fires_known) == len(fires_of_inputs) else None

    def requires(self) -> tuple[Requirement, ...]:
        """Require places, because rows keep theirs; events may have none."""
        return (UNORDERED if STOP in self.inputs[0].emits().extra else PLACED,) * len(self.inputs)

    def emits(self) -> Shape:
        """Return the first input's columns; for types that differ only Spark knows the common one."""
        shapes = [node.emits() for node in self.inputs]
        columns = tuple(
            Column(same[0].name, same[0].type if self.optional or len({c.type for c in same}) == 1 else "")
            for same in zip(*(shape.columns for shape in shapes), strict=True)
        )
        arrival = all(shape.arrival for shape in shapes)
        if STOP in shapes[0].extra:  # events with lifetimes, which may be derived ones
            placed = all(shape.placed for shape in shapes)
            retracts = max((shape.retracts for shape in shapes), key=("none", "open", "any").index)
            lasts = min(shape.lasts for shape in shapes)
            single = not placed
            return Shape(
                columns, extra=EVENT, placed=placed, single=single, unmerged=True, retracts=retracts, lasts=lasts
            )
        extra = ORIGIN if any(shape.has_origin for shape in shapes) else ()
        placed = all(shape.placed for shape in shapes)
        stamped = all(shape.stamped for shape in shapes)
        unmerged = not self.optional
        return Shape(columns, extra=extra, placed=placed, arrival=arrival, stamped=stamped, unmerged=unmerged)

    def promises(self, clocks: Sequence[Clocks], control: Control) -> Clocks:  # noqa: ARG002
        """Return every input's bounds side by side; the stream's bound is the least of them."""
        nobody = {} if self.optional else {"": BEGINNING}
        return {
            prefix(index) + writer: bound
            for index, input_clocks in enumerate(clocks)
            for writer, bound in (input_clocks or nobody).items()
        }

    def link(self, n: int) -> Link:
        """Return the row of that input, whose writer has the number of the input before its name."""
        below = self.inputs[n].emits()
        names = named(list(zip(self.emits().names, below.names, strict=True)))
        ours = [name for name in (ROWTIME, POSITION, *EVENT) if name not in EVENT or name in below.extra]
        writer = (WRITER, f"concat({literal(prefix(n))}, {WRITER})")
        return Link((*names, *((name, name) for name in ours), writer))

    def required_columns(self, n: int, wanted: Collection[str]) -> Iterable[str]:
        """Return the columns of that input at the positions of the required ones."""
        places = zip(self.inputs[n].emits().names, self.emits().names, strict=True)
        return (mine for mine, shown in places if shown in wanted)

    def made_from(self, n: int, column: str) -> Derivation | None:
        """Return the column at its position."""
        names, below = self.emits().names, self.inputs[n].emits().names
        return Derivation((below[names.index(column)],)) if column in names else super().made_from(n, column)

    def typed(self, rows: Callable[[Operator], Frame]) -> Frame:
        """Return the union, whose columns are as wide as the widest."""
        parts = (rows(child).selectExpr(*map(quoted, child.emits().names)) for child in self.inputs)
        return reduce(lambda left, right: left.union(right), parts).toDF(*self.emits().names)

    def on_versions(self, below: Sequence[Operator]) -> Operator:
        """Return the same operator."""
        return replace(self, inputs=tuple(below))

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Return the new rows of all inputs; lazily."""
        clocks = self.promises([delta.clocks for delta in deltas], tick.control(self))
        live = [(i, delta) for i, delta in enumerate(deltas) if delta.rows is not None]
        if not live:
            return Delta(None, clocks)
        parts = [self._part(tick, index, delta) for index, delta in live]
        return Delta(
            reduce(lambda left, right: left.union(right), parts),
            clocks,
            min(delta.lowest for _, delta in live),
            max(delta.highest for _, delta in live),
        )

    def _part(self, tick: Tick, index: int, delta: Delta) -> Any:
        assert delta.rows is not None
        mine, first = self.inputs[index].emits(), self.emits()
        values = [quoted(name) for name in mine.names]
        wanted = [column.type for column in first.columns]
        if "" in wanted or wanted != [column.type for column in mine.columns]:
            # As wide as in any other tick, whichever inputs have rows in this one.
            types = zip(values, tick.types(self.inputs[index]), tick.types(self), strict=True)
            alike = ((value, kind, kind.lower() in ("", own.lower())) for value, own, kind in types)
            values = [value if same else f"CAST({value} AS {kind})" for value, kind, same in alike]
        columns = [f"{value} AS {quoted(name)}" for value, name in zip(values, first.names, strict=True)]
        arrival = [ARRIVAL] if first.arrival else []
        writer = f"concat('{prefix(index)}', {WRITER}) AS {WRITER}"
        extra: tuple[str, ...] = EVENT if STOP in mine.extra else ()
        if first.has_origin:
            before = ORIGIN if mine.has_origin else (WRITER, POSITION)
            extra = (f"concat('{prefix(index)}', {before[0]}) AS {ORIGIN[0]}", f"{before[1]} AS {ORIGIN[1]}")
        return delta.rows.selectExpr(*columns, ROWTIME, writer, POSITION, *arrival, *extra)
