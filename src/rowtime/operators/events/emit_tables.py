"""Final events in Arrow tables, as the rows of a sink's files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowtime.core.columns import DUE, WEIGHT
from rowtime.core.time import END, MAX_MICROS
from rowtime.kernels.identity import summed

UTC = pa.timestamp("us", "UTC")


def in_utc(table: pa.Table) -> pa.Table:
    """Return a table with all instants in UTC; before, they have their maker's time zone."""
    for at, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.tz not in (None, "UTC"):
            table = table.set_column(at, field.name, table[field.name].cast(UTC))
    return pa.Table.from_arrays(table.columns, names=table.column_names)


def together(new: pa.Table | None, kept: Sequence[pa.Table], span: tuple[int, int]) -> pa.Table | None:
    """Return the new rows, and the kept ones that are due in a span (µs; without its beginning)."""
    tables = [] if new is None else [new]
    for table in map(in_utc, kept):
        due = pc.and_(pc.greater(table[DUE], span[0]), pc.less_equal(table[DUE], span[1]))
        tables.append(table.filter(due))
    columns = tables[0].column_names if tables else []
    return pa.concat_tables([table.select(columns) for table in tables]) if tables else None


def left_over(table: pa.Table, end: str, identity: Sequence[str]) -> np.ndarray | None:
    """Return which events do not cancel out; only those without an end can, which are compared in ``identity``.

    ``None`` if Arrow does not compare some of these columns as Spark does, or an event is left several times.
    """
    open_ones = np.flatnonzero(table[end].to_numpy() >= END)
    left = np.ones(table.num_rows, bool)
    if not len(open_ones):
        return left
    some = table.select([*dict.fromkeys([*identity, WEIGHT])]).take(pa.array(open_ones))
    if not all(map(_is_exact, some.schema.types)):
        return None
    weights = some[WEIGHT].to_numpy()
    places, sums = summed([some[name] for name in identity], weights)
    left[open_ones] = False
    left[open_ones[places]] = True
    return left if (sums == weights[places]).all() else None


def _is_exact(kind: pa.DataType) -> bool:
    """Return True for a type whose values have one form each."""
    tests = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_string, pa.types.is_decimal, pa.types.is_temporal)
    return any(test(kind) for test in tests)


def as_rows(table: pa.Table, start: str, end: str, shown: Mapping[str, str]) -> pa.Table:
    """Return final events as rows, as often as their weight says; ``shown``: names of the rowtime, start and end."""
    weights = np.asarray(table[WEIGHT])
    if (weights != 1).any():
        table = table.take(pa.array(np.repeat(np.arange(table.num_rows), weights)))
    ends_known = pc.less(table[end], END)
    at = pc.min_element_wise(table[end], pa.scalar(MAX_MICROS, pa.int64()))
    values = [at, table[start], pc.if_else(ends_known, at, pa.scalar(None, pa.int64()))]
    for name, value in zip(shown.values(), values, strict=False):
        table = table.append_column(name, value.cast(pa.timestamp("us")).cast(UTC))
    return table
