"""The rows of one tick in slices that run in parallel threads: numpy and Arrow release Python's lock.

A slice of time has a copy of the frame before it, so windows without keys run in parallel too. If rows are kept by
number, or folded into accumulators per key, slices are made of keys instead. Accumulators without keys need all rows in
order: they stay in one slice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowtime.core.columns import AT, DUE, KEY_HASH, POSITION, RANGE_VALUE
from rowtime.core.threads import at_once, processors
from rowtime.kernels.frames import Ints
from rowtime.kernels.stock import Stock
from rowtime.kernels.window_functions import Table
from rowtime.kernels.windowed import Answer, Computation, Windows, lasting

SLICE = 250_000  # rows; with fewer, a thread costs more than it saves


def slices_of(rows: int) -> int:
    """Return the number of slices for so many rows."""
    return max(1, min(processors(), rows // SLICE))


def compute(windows: Windows, heads: pa.Table | None, kept: pa.Table | None, fresh: pa.Table, slices: int) -> Answer:
    """Return the result of `Computation`, from ``slices`` of them."""
    slices = min(slices, fresh.num_rows)
    if slices > 1 and not windows.heads and (windows.timed or not windows.keys):
        return _by_time(windows, kept, fresh, slices)
    if slices > 1 and windows.keys:
        return _by_key(windows, heads, kept, fresh, slices)
    return Computation(windows, heads, kept, fresh).answer()


Part = tuple[pa.Table | None, pa.Table | None, pa.Table]  # heads, kept rows and new rows of a slice


def _answers(windows: Windows, parts: Sequence[Part]) -> list[Answer]:
    return at_once(lambda part: Computation(windows, *part).answer(), parts)


def _by_time(windows: Windows, kept: pa.Table | None, fresh: pa.Table, slices: int) -> Answer:
    """Compute slices of consecutive rows, each with the rows before it that its frames reach."""
    order = np.asarray(fresh[RANGE_VALUE if RANGE_VALUE in fresh.column_names else AT])
    edges = [fresh.num_rows * number // slices for number in range(slices + 1)]
    parts: list[Part] = []
    for start, end in zip(edges, edges[1:], strict=False):
        first = start - windows.rows_kept
        if windows.span is not None:
            first = min(first, int(np.searchsorted(order, order[start] - windows.span, "left")))
        first = max(first, 0)
        carried = [kept] if kept is not None and not first else []
        before = _together([*carried, fresh.slice(first, start - first)]) if start else kept
        parts.append((None, before, fresh.slice(start, end - start)))
    answers = _answers(windows, parts)
    left = pa.concat_tables(answer.kept for answer in answers)
    if not windows.timed:  # for each slice, a row that might have been the last one's
        left = lasting(windows.keys, left, windows.rows_kept, windows.span)
    return Answer(_joined(answers, None), left, None, answers[0].before, answers[-1].after)


def _together(tables: Sequence[pa.Table]) -> pa.Table:
    """Combine tables, with the columns of the first one."""
    return pa.concat_tables(table.select(tables[0].column_names) for table in tables)


def _by_key(windows: Windows, heads: pa.Table | None, kept: pa.Table | None, fresh: pa.Table, slices: int) -> Answer:
    """Compute slices of keys, by their hash; everything about a key is in one of them."""
    names = {POSITION, AT, RANGE_VALUE, KEY_HASH, DUE, *windows.keys, *windows.arguments}
    fresh = fresh.select([name for name in fresh.column_names if name in names])
    places = [_of_slice(fresh, number, slices) for number in range(slices)]
    parts: list[Part] = [
        (_taken(heads, number, slices), _taken(kept, number, slices), fresh.take(pa.array(mine)))
        for number, mine in enumerate(places)
        if len(mine)
    ]
    answers = _answers(windows, parts)
    tables = [answer.heads for answer in answers if answer.heads is not None]
    left = pa.concat_tables(answer.kept for answer in answers)
    values, heads = _joined(answers, np.concatenate(places)), pa.concat_tables(tables) if tables else None
    before, after = (Stock.of(parts) for parts in zip(*((a.before, a.after) for a in answers), strict=True))
    return Answer(values, left, heads, before, after)


def _of_slice(rows: pa.Table, number: int, slices: int) -> Ints:
    return np.flatnonzero(np.asarray(rows[KEY_HASH]) % slices == number)


def _taken(rows: pa.Table | None, number: int, slices: int) -> pa.Table | None:
    return None if rows is None else rows.take(pa.array(_of_slice(rows, number, slices)))


def _joined(answers: Iterable[Answer], places: Ints | None) -> Table:
    """Combine the values of all slices; those whose rows were at ``places`` in the order of the rows."""
    parts = list(answers)
    values = {name: pa.concat_arrays([answer.values[name] for answer in parts]) for name in parts[0].values}
    if places is None:
        return values
    back = pa.array(np.argsort(places))
    return {name: pc.take(column, back) for name, column in values.items()}
