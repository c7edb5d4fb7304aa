"""Verification: a pipeline's output equals the result of one batch over its recorded input.

It compares every output row by row with its sequence number, or as a set if the sink has no order; the rows that gates
refused; counts, bounds and the ledger. The checkpoint and the outputs are only read.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyspark

from rowtime.audit.read_back import beside_others, left_in, read_back, rows_of, tables
from rowtime.audit.replay import KeptSink, Replay, in_parts, replay
from rowtime.core.errors import refuse
from rowtime.core.time import BEGINNING, to_text
from rowtime.plan.bind.sink_options import partitions_of
from rowtime.plan.formats.lake import LAKES
from rowtime.runtime.entries import SPARKS
from rowtime.runtime.plain_rows import plain_rows
from rowtime.runtime.quiet import hiding
from rowtime.runtime.skipping import is_skipped, put_back, skipped_lines, unskipped
from rowtime.state.checkpoint import Checkpoint

if TYPE_CHECKING:
    from rowtime.api.pipeline import Pipeline
    from rowtime.client.home import Home
    from rowtime.operators.sinks.sink import Sink as SinkNode

Received = Mapping[str, pa.Table]
SHOWN = 5  # differences of an output
_TOGETHER = 65_536  # rows compared at once


@dataclass(frozen=True)
class Compared:
    """One output compared with the expected one: how many rows, how they were compared, what differs.

    ``how``: ``in order``, ``as a set``, or ``counted`` if a sink cannot be read back. ``first`` are the first of the
    ``differences``.
    """

    name: str
    kind: str
    rows: int
    how: str
    differences: int
    first: tuple[str, ...]


@dataclass(frozen=True)
class Verified:
    """The comparison of a checkpoint's outputs up to a tick with those of ``batches`` over its recorded input.

    ``sparks``: which ticks another version of Spark has written than the present one, in words.
    """

    tick: int
    batches: int
    outputs: tuple[Compared, ...]
    sparks: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """Return True if nothing differs."""
        return not any(output.differences for output in self.outputs)

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        return {**asdict(self), "equal": self.equal}


def verified(place: Checkpoint, pipeline: Pipeline, received: Received) -> Verified:
    """Compare a checkpoint's outputs with those of its recorded input, run again; see `rowtime.verify`."""
    entry = place.journal.last()
    if entry is None:
        raise refuse(
            "R405", f"{place.folder} has no tick to verify", "Give the checkpoint folder of a pipeline that has run."
        )
    place.check_identity(entry)
    if place.published < entry["tick"]:
        hint = "While the pipeline runs, ask again; if it has died, start it, which finishes the tick."
        raise refuse("R408", f"the rows of tick {entry['tick']} have not all been delivered", hint)
    with tempfile.TemporaryDirectory(prefix="rowtime-verify-") as scratch:
        engine = replay(pipeline, place, Path(scratch))
        try:
            with hiding(engine.program.secrets):
                done = len(list(engine.run(in_parts(place, engine))))
                outputs = tuple(_compared(place, entry, engine, pipeline.home, received))
                return Verified(entry["tick"], done, outputs, tuple(_other_sparks(entry)))
        finally:
            engine.close()
            engine.stop()


def _other_sparks(entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield the ticks of other versions of Spark, if an entry says what wrote which."""
    sparks = entry.get(SPARKS, [])
    ends = [*(first - 1 for first, _ in sparks[1:]), entry["tick"]]
    for (first, version), last in zip(sparks, ends, strict=True):
        if version not in ("", pyspark.__version__):
            yield f"ticks {first} to {last} were written under Spark {version}; this is Spark {pyspark.__version__}"


def _compared(
    place: Checkpoint, entry: Mapping[str, Any], engine: Replay, home: Home, received: Received
) -> Iterator[Compared]:
    for node in engine.program.sinks:
        control = entry["control"].get(node.name, {})
        numbers = control.get("base", 0), control.get("sequence", 0)
        given = received.get(node.name)
        if given is None:
            skipped = skipped_lines(place, entry, node)
            given = read_back(node, home, entry["tick"], numbers, place, skipped=skipped)
        table = None if given is None else put_back(place, entry, node, numbers[0], given)
        yield _output(node, entry, engine, place, table)
    ledgers = unskipped(entry), engine.entry["totals"]
    for gate in sorted({*ledgers[0], *ledgers[1]}):
        files = (
            [file for file in at.rejected(gate, entry["tick"]) if not is_skipped(file)]
            for at in (place, engine.checkpoint)
        )
        written, computed = map(tables, files)
        differences = [
            *_difference(f"the ledger of {gate}", *(at.get(gate, {}) for at in ledgers)),
            *_as_sets(written, computed),
        ]
        yield _one(f"{gate}.rejected", "ledger", written.num_rows, "as a set", differences)


def _output(
    node: SinkNode, entry: Mapping[str, Any], engine: Replay, place: Checkpoint, table: pa.Table | None
) -> Compared:
    written, computed = (at["control"].get(node.name, {}) for at in (entry, engine.entry))
    counts = [
        *_difference("rows in all", written.get("sequence", 0), computed.get("sequence", 0)),
        *_difference("bound", *(to_text(at.get("bound", BEGINNING)) for at in (written, computed))),
    ]
    sink = engine.stages[node.name].sink
    assert isinstance(sink, KeptSink)
    if table is None:
        return _one(node.name, node.format, written.get("sequence", 0), "counted", counts)
    mixed = node.format in LAKES or (entry.get("skipped") and partitions_of(node.format, node.options))
    ordered = node.ordered and not mixed
    compare, rows = _in_order if ordered else _as_sets, rows_of(node, sink.files)
    table = beside_others(node, place, written.get("base", 0), table, rows)
    differences = [*counts, *compare(table, left_in(node, rows, table.schema))]
    return _one(node.name, node.format, table.num_rows, "in order" if ordered else "as a set", differences)


def _one(name: str, kind: str, rows: int, how: str, differences: Sequence[str]) -> Compared:
    return Compared(name, kind, rows, how, len(differences), tuple(differences[:SHOWN]))


def _difference(what: str, written: object, computed: object) -> Iterator[str]:
    if written != computed:
        yield f"{what}: recorded {written}, computed {computed}"


# -- rows -----------------------------------------------------------------------------


def _in_order(written: pa.Table, computed: pa.Table) -> Iterator[str]:
    """Yield where rows of the same number differ."""
    computed = _alike(computed, written)
    for start in range(0, max(written.num_rows, computed.num_rows), _TOGETHER):
        # A slice of a table without columns has as many rows as requested.
        parts = [table.slice(start, max(0, min(_TOGETHER, table.num_rows - start))) for table in (written, computed)]
        if not parts[0].equals(parts[1]):
            for number, pair in enumerate(zip_longest(*map(_texts, parts)), start):
                if pair[0] != pair[1]:
                    yield f"row {number}: written {pair[0] or 'nothing'}, computed {pair[1] or 'nothing'}"


def _as_sets(written: pa.Table, computed: pa.Table) -> Iterator[str]:
    """Yield rows that are more frequent on one side."""
    computed = _alike(computed, written)
    if _sorted(written).equals(_sorted(computed)):
        return
    ours, theirs = (Counter(_texts(table)) for table in (written, computed))
    yield from (f"{times} more written: {row}" for row, times in (ours - theirs).items())
    yield from (f"{times} more computed: {row}" for row, times in (theirs - ours).items())


def _alike(computed: pa.Table, written: pa.Table) -> pa.Table:
    """Return the computed rows with the names and types of the written ones, if possible."""
    if not written.num_columns or computed.num_columns != written.num_columns:
        return computed
    named = computed.rename_columns(written.column_names)
    try:
        return named.cast(written.schema)
    except (ValueError, pa.ArrowNotImplementedError):  # Arrow's own, and for a NULL in a required column Python's
        return named  # a value or type that does not fit counts as a difference


def _sorted(table: pa.Table) -> pa.Table:
    try:
        return table.sort_by([(name, "ascending") for name in table.column_names]) if table.num_rows else table
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, pa.ArrowKeyError):
        return table  # of types without an order, or with a duplicate name: unless equal, rows are counted


def _texts(table: pa.Table) -> Iterator[str]:
    return (repr(row) for row in plain_rows(table))
