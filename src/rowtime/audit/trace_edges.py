"""The edges of a trace: for each listed row, the rows below that may have contributed to it.

The rows are known at this point; the links of operators say which of them belong together, as during the trace.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

import pyarrow as pa

from rowtime.audit.traced import LISTED, Trace, Traced
from rowtime.core.columns import ABOVE_ROW, ABOVE_TICK, TRACE_ROW, TRACE_TICK
from rowtime.operators.contract import Operator
from rowtime.plan.program import Program

if TYPE_CHECKING:
    from rowtime.frames.frame import Frame

MOST_EDGES: Final = 5_000  # between two operators

Place = tuple[int, int]  # tick and row


class Pairing(Protocol):
    """Knows which rows of a run belong together: `audit.trace.Tracing`."""

    reached: dict[str, pa.Table]
    rows_at: Callable[[Sequence[Place]], Frame]

    def pairs(self, node: Operator, n: int, rows: pa.Table, *above_too: str, only: Frame | None = None) -> Frame | None:
        """Return the n-th input's rows, ``only`` of these places, that may have made ``rows``."""
        ...


def with_edges(trace: Trace, program: Program, pairing: Pairing) -> Trace:
    """Return the trace with numbered rows; each of an operator's first rows has the numbers of its contributors."""
    numbers: dict[tuple[str, Place], int] = {}
    listed: dict[str, list[Place]] = defaultdict(list)
    for item in trace.items:
        if item.place is not None and (item.operator, item.place) not in numbers:
            numbers[item.operator, item.place] = len(numbers)
            listed[item.operator].append(item.place)
    first = {name: places[:LISTED] for name, places in listed.items()}
    sources: dict[int, list[int]] = defaultdict(list)
    for node in program.operators:
        for above, name, below in _edges(node, first, pairing, sinks=program.sinks):
            sources[numbers[node.name, above]].append(numbers[name, below])
    return replace(trace, items=tuple(_numbered(item, numbers, sources) for item in trace.items))


def _numbered(item: Traced, numbers: Mapping[tuple[str, Place], int], sources: Mapping[int, Sequence[int]]) -> Traced:
    if item.place is None:
        return item
    number = numbers[item.operator, item.place]
    return replace(item, number=number, made_of=tuple(sorted(sources.get(number, ()))))


def _edges(
    node: Operator, listed: Mapping[str, Sequence[Place]], pairing: Pairing, sinks: Sequence[Operator]
) -> Iterator[tuple[Place, str, Place]]:
    """Yield pairs of an operator's row and a row of an input that may have made it, with the input's name."""
    mine = listed.get(node.name, ())
    for n, child in enumerate(node.inputs):
        theirs = listed.get(child.name, ())
        if node in sinks:  # a sink delivers its input rows
            yield from ((place, child.name, place) for place in mine if place in theirs)
        elif mine and theirs:
            for above, below in _joined(pairing, node, n, _at(pairing.reached[node.name], mine), theirs):
                yield above, child.name, below


def _joined(
    pairing: Pairing, node: Operator, n: int, rows: pa.Table, theirs: Sequence[Place]
) -> Iterator[tuple[Place, Place]]:
    pairs = pairing.pairs(node, n, rows, f"{TRACE_ROW} AS {ABOVE_ROW}", only=pairing.rows_at(theirs))
    if pairs is None:
        return
    columns = (ABOVE_TICK, ABOVE_ROW, TRACE_TICK, TRACE_ROW)
    for row in pairs.select(*columns).distinct().limit(MOST_EDGES).toArrow().to_pylist():
        yield (row[ABOVE_TICK], row[ABOVE_ROW]), (row[TRACE_TICK], row[TRACE_ROW])


def _at(rows: pa.Table, places: Sequence[Place]) -> pa.Table:
    """Return the rows of these places."""
    places_of_rows = zip(rows[TRACE_TICK].to_pylist(), rows[TRACE_ROW].to_pylist(), strict=True)
    chosen = {*places}
    return rows.filter(pa.array([place in chosen for place in places_of_rows], pa.bool_()))
