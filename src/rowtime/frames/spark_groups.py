"""Groups with aggregates without a translation: Spark computes these, for the rows of each group in their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowtime.core.columns import ASKED_GROUP, GROUP_ROWS, POSITION, ROWTIME, WRITER
from rowtime.frames.catalyst import answered, group_part_of
from rowtime.frames.extremes import name_of
from rowtime.frames.words import Untranslated
from rowtime.kernels.frames import Ints
from rowtime.sql.generate import quoted

if TYPE_CHECKING:
    from rowtime.frames.local import LocalFrame


def grouped_by_spark(
    rows: LocalFrame, keys: Sequence[str], aggregates: Sequence[str], *, every: bool = False
) -> LocalFrame:
    """Return groups as `LocalFrame.grouped` does; Spark computes ``every`` aggregate, or those that only it knows.

    The rows of a group are in stream order, or in that of the columns that the aggregates read: an approximate
    aggregate, and the last digits of a DOUBLE, depend on it. Raises ``Untranslated`` and ``Uncomputed``.
    """
    unknown = enumerate(aggregates) if every else _unknown(rows, keys, aggregates)
    by_spark = {n: group_part_of(rows.sparkSession, text, rows.fields) for n, text in unknown}
    if not by_spark or not keys:
        raise Untranslated(str(aggregates))
    place = [name for name in (ROWTIME, WRITER, POSITION) if name in rows.columns]
    read = dict.fromkeys(name for _, part in by_spark.values() for name, _ in part.columns)
    ordered = rows.in_order([*map(quoted, place), *map(quoted, read)])
    if ordered is None:
        raise Untranslated(str(aggregates))
    numbers = pa.array(np.arange(ordered.count()))
    own = [text for n, text in enumerate(aggregates) if n not in by_spark]
    numbered = ordered.with_column(GROUP_ROWS, "bigint", numbers)
    groups = numbered.grouped_here(keys, own, GROUP_ROWS)
    if groups is None:
        raise Untranslated(str(aggregates))
    order, of_group, given = _in_groups(groups.column(GROUP_ROWS))
    given_rows = ordered.taken(given).with_column(ASKED_GROUP, "bigint", of_group)
    values = answered(rows.sparkSession, dict.fromkeys([part for _, part in by_spark.values()], given_rows))
    by_part = dict(zip(dict.fromkeys(part for _, part in by_spark.values()), values, strict=True))
    groups = groups.taken(order)
    for name, part in by_spark.values():
        kind, array = by_part[part]
        groups = groups.with_column(name, kind, array)
    names = [*groups.columns[: len(keys)], *(name_of(text) for text in aggregates)]
    return groups.valued([*map(quoted, names)])


def _unknown(rows: LocalFrame, keys: Sequence[str], aggregates: Sequence[str]) -> list[tuple[int, str]]:
    """Return the aggregates without a translation, by their numbers."""
    nothing = rows.limit(0)
    return [(n, text) for n, text in enumerate(aggregates) if nothing.grouped_here(keys, [text]) is None]


def _in_groups(lists: pa.ChunkedArray) -> tuple[Ints, pa.Array, Ints]:
    """Return the groups by their first rows, and for each of the rows, group by group, its group and its number.

    ``lists``: the numbers of the rows of each group, in any order.
    """
    whole = lists.combine_chunks()
    numbers, groups = pc.list_flatten(whole).to_numpy(), pc.list_parent_indices(whole).to_numpy()
    first = np.full(len(whole), np.iinfo(np.int64).max)
    np.minimum.at(first, groups, numbers)
    order = np.argsort(first)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    at = np.lexsort((numbers, rank[groups]))
    return order, pa.array(rank[groups[at]]), numbers[at]
