"""The items of a gate as tables: one row per item, each writer's in order.

Columns: ``__w``, ``__p``; ``t`` the time and ``j`` the value compared with the mark, ``b`` a bound (BIGINT µs); ``bad``
for a row that is refused whatever the mark, ``far`` if because of its arrival; ``g`` if it may be early, ``up`` if it
is raised to the mark.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rowtime.core.columns import POSITION, WRITER
from rowtime.kernels.identity import only_value
from rowtime.operators.contract.gates import Gate
from rowtime.operators.rows.calendar import in_calendar, those_in_calendar, times_of

if TYPE_CHECKING:
    from rowtime.frames.frame import Frame

_FLAGS = {"bad": False, "far": False, "g": True, "up": False}


def columns_of_gate(gate: Gate) -> dict[str, str]:
    """Return Spark SQL of the columns that differ between rows."""
    columns = {"t": in_calendar(f"unix_micros({gate.time})")}
    if gate.judged is not None:
        columns["j"] = f"unix_micros({gate.judged})"
    if gate.bound_column is not None:
        columns["b"] = f"unix_micros({gate.bound_column})"
    malformed = f"{gate.malformed_column} IS NOT NULL" if gate.malformed_column else "false"
    if gate.far is not None:
        columns["far"] = f"NOT ({malformed}) AND coalesce({gate.far}, false)"
    if gate.far is not None or gate.malformed_column:
        columns["bad"] = f"({malformed}) OR ({columns.get('far', 'false')})"
    if gate.early is not None:
        columns |= {"g": gate.guarded, "up": gate.lifted}
    return columns


def items_of(rows: Frame, gate: Gate, times: pa.Table | None = None) -> pa.Table:
    """Return some rows; without a query if their times are computed already, and are all that counts.

    ``times``: ``__w``, ``__p``, ``t`` (BIGINT), if something else is judged in their place.
    """
    wanted = columns_of_gate(gate)
    if times is None and len(wanted) == 1:
        times = times_of(rows, gate.time)
    if times is not None:
        return filled(times)
    columns = (f"{sql} AS {name}" for name, sql in wanted.items())
    return filled(rows.selectExpr(WRITER, POSITION, *columns).toArrow())


def filled(items: pa.Table) -> pa.Table:
    """Add the columns that are equal for all rows: these decode and are judged by their time."""
    count = items.num_rows
    items = items.set_column(items.column_names.index("t"), "t", those_in_calendar(items["t"]))
    if "j" not in items.column_names:
        items = items.append_column("j", items["t"])
    if "b" not in items.column_names:
        items = items.append_column("b", pa.nulls(count, pa.int64()))
    for name, value in _FLAGS.items():
        if name not in items.column_names:
            items = items.append_column(name, pa.repeat(pa.scalar(value), count))
    return items


def with_bounds(items: pa.Table, gate: Gate) -> pa.Table:
    """Add the bounds that are beside the rows; each writer's items in order."""
    if gate.bounds:
        writers, positions, times = zip(*gate.bounds, strict=True)
        nulls = pa.nulls(len(gate.bounds), pa.int64())
        columns = {
            WRITER: pa.array(writers, pa.string()),
            POSITION: pa.array(positions, pa.int64()),
            "t": nulls,
            "j": nulls,
        }
        flags = {name: pa.repeat(pa.scalar(False), len(gate.bounds)) for name in _FLAGS}  # noqa: FBT003
        extra = pa.table({**columns, "b": pa.array(times, pa.int64()), **flags})
        items = pa.concat_tables([items.select(extra.column_names).cast(extra.schema), extra])
    if _in_order(items):
        return items
    if only_value(items[WRITER]) is not None:  # what a few tasks have stacked; numpy is fast for few ordered runs
        return plain(items).take(np.argsort(items[POSITION].to_numpy(), kind="stable"))
    return plain(items).sort_by([(WRITER, "ascending"), (POSITION, "ascending")])


def plain(items: pa.Table) -> pa.Table:
    """Convert the writers' names to texts, whatever form they have."""
    return items.set_column(items.column_names.index(WRITER), WRITER, items[WRITER].cast(pa.string()))


def behind(first: pa.Table, second: pa.Table) -> pa.Table:
    """Concatenate two tables of one writer's items."""
    names = first.column_names
    return pa.concat_tables([plain(first), plain(second).select(names)], promote_options="permissive")


def _in_order(items: pa.Table) -> bool:
    """Return True if the rows of each writer are together and their positions ascend."""
    if not items.num_rows:
        return True
    positions = items[POSITION].to_numpy()
    if only_value(items[WRITER]) is not None:
        return bool((positions[1:] > positions[:-1]).all())
    writers, change = len(items[WRITER].unique()), _changes(items, WRITER)[1:]
    return bool(change.sum() + 1 == writers and (change | (positions[1:] > positions[:-1])).all())


def runs(items: pa.Table, keys: list[str]) -> Iterable[tuple[tuple, pa.Table]]:  # type: ignore[type-arg]
    """Yield the stretches of equal keys in a sorted table."""
    if not items.num_rows:
        return
    if keys == [WRITER] and (only := only_value(items[WRITER])) is not None:
        yield (only,), items
        return
    change = np.logical_or.reduce([_changes(items, key) for key in keys])
    starts = [*np.flatnonzero(change).tolist(), items.num_rows]
    for start, stop in zip(starts, starts[1:], strict=False):
        part = items.slice(start, stop - start)
        yield tuple(part[key][0].as_py() for key in keys), part


def _changes(items: pa.Table, key: str) -> np.ndarray:
    """Return True for each row whose value differs from the row before, and for the first row."""
    column = items[key].combine_chunks()
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    codes = (encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded).indices.to_numpy()
    return np.concatenate(([True], codes[1:] != codes[:-1]))
