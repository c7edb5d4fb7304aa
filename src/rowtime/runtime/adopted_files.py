"""Adopted files: operators write a directory's files themselves, so that results are not written twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from rowtime.core.columns import ROWTIME
from rowtime.operators.contract import Operator
from rowtime.plan.bind.pump_edge import behind
from rowtime.plan.formats.lake import LAKES
from rowtime.plan.program import Program
from rowtime.runtime.file_form import FileForm

Types = Callable[[Operator], Sequence[str]]


def adopted_files(program: Program, types: Types, takers: Collection[str]) -> dict[str, dict[str, str]]:
    """Return operators whose only consumer is one of the Parquet sinks ``takers``, with its columns' names there.

    The results of such an operator are the content of the directory: the file is renamed into place, and nothing is
    written twice. Operators that only rename columns are skipped; so is a pump edge that casts and checks nothing,
    according to the ``types`` of an operator's columns. An operator that makes events may write final ones in the form
    of the operator that emits them.
    """
    readers = Counter(child.name for node in program.operators for child in node.inputs)
    columns_of = {}
    for sink in program.sinks:
        form = FileForm.of(sink, ())
        if sink.format not in ("parquet", *LAKES) or sink.name not in takers or form.codec or form.most or form.folders:
            continue  # files of the state have one codec, any length, and all columns
        named = {name: name for name in sink.emits().names}
        maker, columns, alone = _below(sink.input, named, readers, types)
        complete = {ROWTIME, *maker.emits().names} >= set(columns.values())
        at_once = maker is behind(sink.input)
        if alone and complete and maker.files_are_results(ordered=sink.ordered, at_once=at_once):
            columns_of[maker.name] = {sink.rowtime: ROWTIME, **columns} if sink.rowtime else columns
            columns_of |= _of_events(maker, columns_of[maker.name], readers)
    return columns_of


def _below(
    node: Operator, columns: dict[str, str], readers: Mapping[str, int], types: Types | None = None
) -> tuple[Operator, dict[str, str], bool]:
    """Return the operator below renames, its columns, and whether nobody else reads one of them."""
    alone = readers[node.name] == 1
    while (renames := _renames(node, types)) is not None:
        columns = {name: renames.get(own, own) for name, own in columns.items()}
        node = node.inputs[0]
        alone = alone and readers[node.name] == 1
    return node, columns, alone


def _renames(node: Operator, types: Types | None) -> dict[str, str] | None:
    types_of = (
        {} if types is None else {n: t for c in node.inputs[:1] for n, t in zip(c.emits().names, types(c), strict=True)}
    )
    return node.renames_for(types_of)


def _of_events(emit: Operator, taken: Mapping[str, str], readers: Mapping[str, int]) -> dict[str, dict[str, str]]:
    """Return the operator below that can write final events in the sink's form."""
    columns = emit.final_columns(taken)
    if columns is None:
        return {}
    maker, columns, alone = _below(emit.inputs[0], columns, readers)
    return {maker.name: columns} if alone and maker.writes_final else {}
