"""Groups in which structs are chosen by their places: with many rows, the last one of each group.

DuckDB compares structs slowly, and once for each aggregate. So the rows are sorted by place once, groups compare the
numbers of rows in that order, and the structs are taken from the rows that were found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowtime.frames.queries import FEW_ROWS

if TYPE_CHECKING:
    from rowtime.frames.frame import Frame


def grouped_by_places(
    rows: Frame, keys: Sequence[str], aggregates: Sequence[str], placed: Mapping[str, str], fields: Sequence[str]
) -> Frame | None:
    """Groups by ``keys``, as `Frame.grouped` makes them; ``None`` for few rows, and if `grouped` has to make them.

    ``placed``: names of struct columns; the struct with the greatest (``max``) or least (``min``) place is the
    aggregate of that name in ``aggregates``. ``fields``: those of a place, a TIMESTAMP, a text and a BIGINT; places are
    unique.
    """
    if not placed or rows.count() <= FEW_ROWS:
        return None
    ranks: list[_Ranks] = []
    of: dict[str, int] = {}
    for name in placed:
        places = [pc.struct_field(rows.column(name), field) for field in fields]
        of[name] = next((n for n, ranking in enumerate(ranks) if ranking.are_of(places)), len(ranks))
        if of[name] == len(ranks):
            ranks.append(_Ranks(places))
    ranked = rows
    for n, ranking in enumerate(ranks):
        ranked = ranked.with_column(f"__rank{n}", "bigint", ranking.of_rows)
    texts = [name_of(text) for text in aggregates]
    aggregates_of_places = [f"{placed[name]}(__rank{of[name]}) AS {name}" if name in placed else text
            for name, text in zip(texts, aggregates, strict=True)]  # fmt: skip
    groups = ranked.grouped(keys, aggregates_of_places)
    if groups is None:
        return None
    kinds, rows_of_ranks = dict(rows.fields), {}
    for name, way in placed.items():
        if (of[name], way) not in rows_of_ranks:
            rows_of_ranks[of[name], way] = ranks[of[name]].rows_at(groups.column(name))
        groups = groups.with_column(name, kinds[name], rows.column(name).take(rows_of_ranks[of[name], way]))
    return groups


class _Ranks:
    """The rank of each row's place; ``places``: the columns that the rows are sorted by."""

    def __init__(self, places: Sequence[pa.ChunkedArray]) -> None:
        self._places = places
        time, text, number = (column.combine_chunks() for column in places)
        lacking = time.is_null().to_numpy(zero_copy_only=False)
        keys = [
            pc.fill_null(number, 0).to_numpy(),
            _codes(pc.fill_null(text, "")),
            pc.fill_null(time.cast(pa.int64()), 0).to_numpy(),
        ]
        self._at: Any = np.lexsort(keys)
        ranks = np.empty(len(time), np.int64)
        ranks[self._at] = np.arange(len(time))
        self.of_rows = pa.array(ranks, mask=lacking)
        """The rank of each row; NULL without a place."""

    def are_of(self, places: Sequence[pa.ChunkedArray]) -> bool:
        """Return True if these are the same places."""
        return all(one.equals(other) for one, other in zip(self._places, places, strict=True))

    def rows_at(self, ranks: pa.ChunkedArray) -> pa.Array:
        """Return the rows with some ranks."""
        chosen_ranks = ranks.combine_chunks()
        lacking = chosen_ranks.is_null().to_numpy(zero_copy_only=False)
        return pa.array(self._at[pc.fill_null(chosen_ranks, 0).to_numpy()], mask=lacking)


def _codes(texts: pa.Array) -> Any:
    """Return numbers in the order of texts, which is the order of their bytes."""
    encoded = texts.dictionary_encode()
    order = np.empty(len(encoded.dictionary), np.int64)
    order[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(order))
    return order[encoded.indices.to_numpy()]


def name_of(text: str) -> str:
    """Return the name of an aggregate ``call AS name``."""
    return text.rpartition(" AS ")[2]
