"""What operators hold after a tick: rows that can still match or go out, and open groups."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rowtime.core.time import BEGINNING, END
from rowtime.kernels.frames import Ints
from rowtime.kernels.hashes import hashes
from rowtime.kernels.windowed import whole
from rowtime.operators.contract import Operator
from rowtime.operators.contract.state import Kept, Segment
from rowtime.operators.rows.collations import has_collation
from rowtime.runtime.stored_schemas import schema_of
from rowtime.state.kept_groups import Parts

if TYPE_CHECKING:
    from rowtime.runtime.tick import RunningTick

_MICROS = pa.timestamp("us")


def held(running: RunningTick, operators: Iterable[Operator], kept: Collection[str]) -> dict[str, int]:
    """Return how many rows or groups are held, by the keys of what is ``kept``, without notes about other rows."""
    holding = {key.rsplit("/", 1)[0] for key in kept}
    counts = {key: running.logs[key].held for key in kept}
    for node in operators:
        if node.name in holding:
            notes = {f"{node.name}/{one.name}": one for note in node.keeps() for one in note.rows}
            parts = {key: one for key, one in notes.items() if counts_groups(one, running.schemas.get(key))}
            for key, one in notes.items():
                if key in parts or not one.waits:
                    counts.pop(key, None)
            counts |= {key: _weight(running, key, one) for key, one in notes.items() if one.counts and key in counts}
            for key, one in notes.items():
                known = getattr(running.control(node), one.counted) if one.counted and key in counts else None
                counts |= {} if known is None else {key: known}
            counts |= _groups(running, node, {key: one for key, one in parts.items() if key in running.logs})
    return counts


def counts_groups(kept: Kept, schema: Mapping[str, Any] | None) -> bool:
    """Return True if the groups of kept rows are counted; texts with a collation cannot be compared here."""
    if kept.groups is None:
        return False
    fields = () if schema is None else schema_of(schema).fields
    return not any(field.name in kept.groups and has_collation(field.dataType) for field in fields)


def _groups(running: RunningTick, node: Operator, parts: Mapping[str, Kept]) -> dict[str, int]:
    """Return the number of open groups, under the first of the keys: a group may have parts in several logs."""
    if not parts:
        return {}
    logs = {key: running.logs[key] for key in parts}
    kept = {segment.path: parts[key] for key, log in logs.items() for segment in log.live}
    first, lasting = next(iter(parts)), any(one.lasting for one in parts.values())
    count = running.memory.groups[node.name].count(
        [segment for log in logs.values() for segment in log.live],
        {segment.path for log in logs.values() for segment in log.dropped},
        BEGINNING if lasting else logs[first].passed,
        lambda segment: _told_apart(running.table, segment, kept[segment.path]),
        lasting=lasting,
    )
    return {first: count}


def _weight(running: RunningTick, key: str, kept: Kept) -> int:
    """Return the sum of the weights of the rows that are still needed."""

    def weights_of(segment: Segment) -> tuple[Ints, Ints]:
        rows = running.table(segment, [*kept.counts, kept.timing])
        weights = sum((np.asarray(whole(rows[name])) for name in kept.counts), np.zeros(rows.num_rows, np.int64))
        return weights, np.asarray(whole(rows[kept.timing]))

    log = running.logs[key]
    return running.memory.weights[key].count(log.live, log.passed, weights_of)


def _told_apart(columns: Callable[[Segment, Sequence[str]], pa.Table], segment: Segment, kept: Kept) -> Parts:
    """Return hashes, ends (µs) and perhaps starts of the groups of a file's rows."""
    assert kept.groups is not None
    rows = columns(segment, [*kept.groups, kept.timing, *([kept.since] if kept.since else [])])
    keys = [_array(rows[name]) for name in kept.groups]
    hashed = hashes(keys) if keys else np.zeros(rows.num_rows, np.int64)
    ends = np.full(rows.num_rows, END) if kept.lasting else np.asarray(_array(rows[kept.timing]))
    return hashed, ends, np.asarray(_array(rows[kept.since])) if kept.since else None


def _array(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array; times have one unit, whoever wrote them."""
    timed = pa.types.is_timestamp(column.type) and column.type != _MICROS
    return whole(column.cast(_MICROS) if timed else column)
