"""The rows of a table that go to one route: which they are, and in what files and blocks they are written."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowtime.core.columns import ROUTE
from rowtime.operators.contract.state import Route
from rowtime.runtime.file_form import FileForm

PART: Final = 250_000  # rows from which several files are written at once
SMALL: Final = 200_000  # rows that the driver always collects, and copies at once
BLOCK: Final = 65_536  # rows; in a large segment that is sorted by time, few are read to close few windows

Values = tuple[str | None, ...]
"""The values of partition columns, as text, that separate files."""


@dataclass(frozen=True)
class Chosen:
    """Rows of a table: all, or those at ``places``, in ascending order. Many are copied block by block for a file."""

    table: pa.Table
    places: np.ndarray | None = None

    @property
    def count(self) -> int:
        """Return how many rows these are."""
        return int(self.table.num_rows) if self.places is None else len(self.places)

    def part(self, start: int, count: int) -> Chosen:
        """Return some of the rows."""
        if self.places is None:
            return Chosen(self.table.slice(start, count))
        return Chosen(self.table, self.places[start : start + count])

    def blocks(self, size: int = BLOCK) -> Iterator[pa.Table]:
        """Yield the rows: at once if they need no copy, otherwise so many at a time."""
        if self.places is None:
            yield self.table
            return
        for start in range(0, len(self.places), size):
            at = self.places[start : start + size]
            first, marks = at[0], np.zeros(at[-1] - at[0] + 1, dtype=bool)
            marks[at - first] = True
            yield self.table.slice(first, len(marks)).filter(pa.array(marks))

    def whole(self) -> pa.Table:
        """Return the rows as one table."""
        return next(self.blocks(max(1, self.count)), self.table.slice(0, 0))


def parts_of(table: pa.Table, routes: Mapping[str, Route], form: FileForm) -> Iterator[tuple[str, int, Values, Chosen]]:
    """Yield route, file number, partition values and rows: one file per route, or a few if there are many rows."""
    for name, route in routes.items():
        chosen = rows_for(table, route) if len(routes) > 1 else Chosen(table)
        if form.split or form.largest:
            chosen = Chosen(chosen.whole())
        size = max(PART, -(-chosen.count // (os.cpu_count() or 1)))
        size = min(size, form.most or size)
        places = alike(chosen.table, [route.columns[column] for column in form.split]) if form.split else [((), None)]
        parts = ((of, chosen if at is None else Chosen(chosen.table.take(at))) for of, at in places)
        pieces = (
            (of, part.part(start, most))
            for of, part in parts
            for most in (min(size, rows_of(part.table.select([*route.columns.values()]), form.largest)),)
            for start in range(0, part.count, most)
        )
        yield from ((name, number, *piece) for number, piece in enumerate(pieces))


def rows_for(table: pa.Table, route: Route) -> Chosen:
    """Return the rows of a route; nothing is copied if these are most rows, and follow each other.

    A few rows that are not copied would keep all others in memory.
    """
    routes = table[ROUTE]
    table = table.select(list(dict.fromkeys((*route.columns.values(), route.time))))
    together = _together(routes.to_numpy(), route)
    places = np.flatnonzero(chosen_by(routes, route).to_numpy()) if together is None else together
    if not len(places):
        return Chosen(table.slice(0, 0))
    first, count = int(places[0]), int(places[-1] - places[0]) + 1
    if count == len(places) >= table.num_rows / 2:
        return Chosen(table.slice(first, count))
    places = np.arange(places.start, places.stop) if isinstance(places, range) else places
    if len(places) > SMALL:
        return Chosen(table, places)
    marks = np.zeros(count, bool)
    marks[places - first] = True
    return Chosen(table.slice(first, count).filter(pa.array(marks)))


def _together(routes: np.ndarray, route: Route) -> range | None:
    """Return where the rows of a route are, if the routes of all rows ascend: then they follow each other."""
    if route.more or (routes[1:] < routes[:-1]).any():
        return None
    return range(*np.searchsorted(routes, np.array([route.key, route.key + 1], routes.dtype)).tolist())


def chosen_by(routes: pa.Array | pa.ChunkedArray, route: Route) -> pa.Array | pa.ChunkedArray:
    """Return for each row whether it goes there."""
    return reduce(pc.or_, (pc.equal(routes, key) for key in (route.key, *route.more)))


def rows_of(part: pa.Table | pa.RecordBatch, largest: int) -> int:
    """Return how many of some rows have so many bytes; all if there is no limit."""
    rows: int = part.num_rows
    size = part.nbytes if largest else 0
    return max(1, rows * largest // size if size > largest else rows)


def alike(rows: Any, columns: Sequence[str]) -> Iterator[tuple[Values, pa.Array | None]]:
    """Yield where rows of a table or a batch have the same values in some columns, and these values as text.

    ``None``: these are all rows.
    """
    if not columns or not rows.num_rows:
        yield (), None
        return
    codes = np.stack([_codes(rows.column(name)) for name in columns], axis=1)
    kinds, of = np.unique(codes, axis=0, return_inverse=True)
    for number in range(len(kinds)):
        at = pa.array(np.flatnonzero(of.reshape(-1) == number))
        first = rows.slice(at[0].as_py(), 1)
        yield tuple(first.column(name).cast(pa.string())[0].as_py() for name in columns), at


def _codes(values: Any) -> Any:
    """Return a number for each value of a column, equal for equal values; NULL is a value."""
    whole = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    return whole.dictionary_encode(null_encoding="encode").indices.to_numpy(zero_copy_only=False)
