"""Who writes the files of a directory itself: results that are not written twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from rowtime.operators.contract import Operator, T
from rowtime.operators.emit_lifetimes import EmitLifetimes
from rowtime.operators.group_by import GroupBy
from rowtime.operators.lifetime_join import LifetimeJoin
from rowtime.operators.over import Over
from rowtime.operators.panes import Panes
from rowtime.operators.pump_gate import PumpGate
from rowtime.operators.select import Select
from rowtime.operators.sink import Sink as SinkNode
from rowtime.operators.snapshot import Snapshot
from rowtime.plan.program import Program
from rowtime.plan.pump_edge import behind
from rowtime.runtime.file_form import FileForm

Types = Callable[[Operator], Sequence[str]]


def takers(program: Program, types: Types) -> dict[str, dict[str, str]]:
    """Operators whose one consumer is a Parquet directory, with its columns and which of theirs they are.

    What such an operator writes as its result is what the directory holds: the file is
    renamed into place, and nothing is written twice. Groups, panes and events are written in any order,
    the rows of an OVER in stream order; what only gives its columns other names is left out. Snapshots write those of
    their events that are final where what emits them would. ``types`` are those of an operator's columns: the edge of a
    pump is left out too, if it casts and checks nothing.
    """
    readers = Counter(child.name for node in program.operators for child in node.inputs)
    found = {}
    for sink in program.operators:
        if not isinstance(sink, SinkNode) or sink.format != "parquet" or FileForm.of(sink, ()).codec:
            continue  # files of the state are compressed in one way
        maker, columns, alone = sink.input, {name: name for name in sink.emits().names}, True
        while (renames := _renames(maker, types)) is not None:
            alone = alone and readers[maker.name] == 1
            columns = {name: renames.get(own, own) for name, own in columns.items()}
            maker = maker.inputs[0]
        there = {T, *maker.emits().names} >= set(columns.values())
        taken = isinstance(maker, Over | Panes | EmitLifetimes) or (
            maker is behind(sink.input) and isinstance(maker, GroupBy)
        )
        if (
            taken
            and there
            and alone
            and readers[maker.name] == 1
            and not (sink.ordered and isinstance(maker, GroupBy | Panes | EmitLifetimes))
        ):
            found[maker.name] = {sink.rowtime: T, **columns} if sink.rowtime else columns
            if isinstance(maker, EmitLifetimes):
                found |= _of_events(maker, found[maker.name], readers)
    return found


def _renames(node: Operator, types: Types) -> dict[str, str] | None:
    """What each column is called below; ``None`` for an operator that does more than that."""
    if not isinstance(node, Select | PumpGate):
        return None
    known = dict(zip(node.input.emits().names, types(node.input), strict=True))
    if isinstance(node, PumpGate):
        return None if any(True for _ in node.tests(known)) else {}
    return node.renamed(known)


def _of_events(emit: EmitLifetimes, taker: Mapping[str, str], readers: Mapping[str, int]) -> dict[str, dict[str, str]]:
    """The operator below that can write final events as the sink takes them."""
    columns, maker, alone = emit.of_final(taker), emit.input, readers[emit.input.name] == 1
    while columns is not None and isinstance(maker, Select) and (renames := maker.renames) is not None:
        columns = {name: renames.get(own, own) for name, own in columns.items()}
        maker = maker.input
        alone = alone and readers[maker.name] == 1
    can = columns is not None and alone and isinstance(maker, Snapshot | LifetimeJoin)
    return {maker.name: columns} if can and columns is not None else {}
