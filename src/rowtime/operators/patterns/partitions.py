"""The partitions of a tick: kept and new rows together, and the state of each partition.

A key has one partition at a time. With ``expires``, a longer gap ends the partition, and the next row begins another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from rowtime.core.columns import AT, PARTITION, POSITION
from rowtime.core.time import END
from rowtime.kernels.frames import Flags, Ints, by_key
from rowtime.kernels.matching.rows import Rows
from rowtime.kernels.windowed import ranks, whole

FIRST_ROW, KEPT_FROM, START_FROM, MATCHED_TO, MATCHES, LEAST, TURN, OPENED, DECIDED, WAITING = PARTITION


def newest(keys: Sequence[str], heads: pa.Table) -> pa.Table:
    """Return the last state of each partition's key; one of an older version may not say how many rows wait."""
    if WAITING not in heads.column_names:
        heads = heads.append_column(WAITING, pa.array(np.zeros(heads.num_rows, np.int64)))
    elif heads[WAITING].null_count:
        heads = heads.set_column(heads.column_names.index(WAITING), WAITING, heads[WAITING].fill_null(0))
    codes = ranks([[heads[key]] for key in keys], heads.num_rows)
    order = np.lexsort((column(heads, TURN), codes))
    last = np.concatenate((codes[order][1:] != codes[order][:-1], [True])) if len(order) else np.zeros(0, np.bool_)
    return heads.take(pa.array(order[last]))


def column(table: pa.Table, name: str) -> Ints:
    """Return a column of whole numbers."""
    return np.asarray(whole(table[name]), dtype=np.int64)


@dataclass(frozen=True)
class Laid:
    """Rows in the order of their partitions; ``fresh``: the new ones; ``head``: each partition's state, or -1.

    ``last``: the one of a key's partitions that may continue.
    """

    table: pa.Table
    fresh: Flags
    rows: Rows
    head: Ints
    last: Flags
    heads: pa.Table

    def of_heads(self, name: str, default: Ints) -> Ints:
        """Return a value from the state of each partition, or a default."""
        if not self.heads.num_rows:
            return default
        stored = column(self.heads, name)[np.maximum(self.head, 0)]
        return np.where(self.head >= 0, stored, default)

    @cached_property
    def positions(self) -> Ints:
        """Return the position of each row in the stream."""
        return column(self.table, POSITION)

    def upto(self, limits: Ints) -> Ints:
        """Return for each partition the first row at a position at or beyond a limit."""
        below = self.positions < limits[self.rows.partition]
        sums = np.concatenate(([0], np.cumsum(below)))
        return np.asarray(self.rows.begins + sums[self.rows.ends] - sums[self.rows.begins])


@dataclass(frozen=True)
class PartitionRows:
    """Kept and new rows of some ``keys``, and the state of these: ``heads``, at most one per key."""

    keys: tuple[str, ...]
    kept: pa.Table
    fresh: pa.Table
    heads: pa.Table


def laid_out(partitions: PartitionRows, clock: int, expires: int | None, ahead: int) -> Laid | None:
    """Return the partitions at a bound; ``None`` if there are no rows.

    Kept rows that ``heads`` no longer refer to are dropped.
    """
    keys, kept, fresh, heads = partitions.keys, partitions.kept, partitions.fresh, partitions.heads
    body, count = pa.concat_tables([kept, fresh], promote_options="default"), heads.num_rows
    codes = ranks([[heads[key], body[key]] for key in keys], count + body.num_rows)
    head_of = np.full(int(codes.max(initial=0)) + 1, -1)
    head_of[codes[:count]] = np.arange(count)
    codes = codes[count:]
    wanted = np.ones(len(codes), np.bool_)
    if kept.num_rows:
        mine = head_of[codes[: kept.num_rows]]
        since = np.append(column(heads, KEPT_FROM), 0)[mine]
        wanted[: kept.num_rows] = (mine >= 0) & (column(kept, POSITION) >= since)
    places = np.flatnonzero(wanted)
    if not len(places):
        return None
    places = places[by_key(codes[places])]
    table, codes = body.take(pa.array(places)).combine_chunks(), codes[places]
    times = column(table, AT)
    new_key = np.concatenate(([True], codes[1:] != codes[:-1]))
    begin, heads_of_rows = new_key.copy(), head_of[codes]
    if expires is not None:
        begin[1:] |= ~new_key[1:] & (times[1:] - times[:-1] > expires)
    begins = np.flatnonzero(begin)
    ends = np.append(begins[1:], len(codes))
    head = np.where(new_key[begins], heads_of_rows[begins], -1)
    if expires is not None and count:
        gone = times[begins] - column(heads, AT)[np.maximum(head, 0)] > expires
        head = np.where(gone, -1, head)
    last = np.append(codes[begins][1:] != codes[begins][:-1], [True])
    over = ~last | (clock >= END)
    if expires is not None:
        over |= clock > times[ends - 1] + expires
    firsts = np.append(column(heads, FIRST_ROW), 0)[head]
    is_whole = (head < 0) | (column(table, POSITION)[begins] == firsts)
    rows = Rows(begins, ends, times, over, is_whole, clock, ahead)
    return Laid(table, places >= kept.num_rows, rows, head, last, heads)
