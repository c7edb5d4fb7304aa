"""Rows of an OVER as Arrow tables: sorted, selected by key and time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from rowtime.core.columns import DUE, KEY_HASH, POSITION
from rowtime.kernels.frames import Ints


def gathered(tables: Iterable[pa.Table], most: int) -> Iterator[pa.Table]:
    """Yield the rows of tables, at most ``most`` at a time."""
    batch: list[pa.Table] = []
    for part in (table.slice(start, most) for table in tables for start in range(0, table.num_rows, most)):
        if sum(one.num_rows for one in (*batch, part)) > most:
            yield pa.concat_tables(batch).combine_chunks()
            batch = []
        batch.append(part)
    if batch:
        yield pa.concat_tables(batch).combine_chunks()


def in_stream_order(rows: pa.Table) -> pa.Table:
    """Return rows in stream order, by position; columns that Spark declares non-null become nullable."""
    rows = pa.Table.from_arrays(rows.columns, names=rows.column_names)
    places = np.asarray(rows[POSITION])
    if (places[1:] >= places[:-1]).all():
        return rows.combine_chunks()
    return rows.take(pa.array(np.argsort(places, kind="stable"))).combine_chunks()


def of_keys(table: pa.Table, hashed: Ints) -> pa.Table:
    """Return the rows of some keys in a table sorted by hash."""
    hashes = np.asarray(table[KEY_HASH])
    begins, ends = np.searchsorted(hashes, hashed, "left"), np.searchsorted(hashes, hashed, "right")
    lengths = ends - begins
    steps = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return table.take(pa.array(np.repeat(begins, lengths) + steps))


def alive(rows: pa.Table, clock: int) -> pa.Table:
    """Return the rows that may still be needed at a clock."""
    return rows.filter(pa.array(np.asarray(rows[DUE]) > clock))
