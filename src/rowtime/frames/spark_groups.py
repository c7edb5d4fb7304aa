"""Groups with aggregates without a translation: Spark computes these, for the rows of each group in their order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowtime.core.columns import ASKED_GROUP, GROUP_ROWS, POSITION, ROWTIME, WRITER
from rowtime.frames.answers import struct_of
from rowtime.frames.attempted import TRIED_VALUE
from rowtime.frames.catalyst import answered, group_part_of
from rowtime.frames.extremes import name_of
from rowtime.frames.kinds import struct_text
from rowtime.frames.queries import Uncomputed
from rowtime.frames.tables import delivered
from rowtime.frames.words import Untranslated
from rowtime.kernels.frames import Ints
from rowtime.sql.generate import quoted

if TYPE_CHECKING:
    from rowtime.frames.frame import Frame


def grouped_by_spark(rows: Frame, keys: Sequence[str], aggregates: Sequence[str]) -> Frame:
    """Return groups as `Frame.grouped` does; Spark computes the aggregates that only it knows.

    Raises ``Untranslated`` and ``Uncomputed``.
    """
    unknown = unknown_in(rows, keys, aggregates)
    if not unknown:
        raise Untranslated(str(aggregates))
    return groups_with(rows, keys, aggregates, unknown)


def tried_groups(rows: Frame, keys: Sequence[str], aggregates: Sequence[str], tried: Collection[str]) -> Frame:
    """Return the same; those of ``tried`` (names) are structs of a value ``c0``; NULL if one fails for the group.

    What fails in DuckDB may not fail in Spark, so Spark tries it. Raises ``Untranslated`` and ``Uncomputed``.
    """
    rows.share()
    unknown = unknown_in(rows, keys, aggregates)
    try:
        groups = groups_with(rows, keys, aggregates, unknown, tried)
        groups.count()
    except Uncomputed:
        trying = [n for n, text in enumerate(aggregates) if name_of(text) in tried]
        return groups_with(rows, keys, aggregates, sorted({*unknown, *trying}), tried)
    known = {name_of(text) for n, text in enumerate(aggregates) if n not in unknown}
    for name, kind in groups.fields:
        if name in known.intersection(tried):
            values = delivered(groups.column(name), kind).combine_chunks()
            fine = pa.repeat(pa.scalar(value=False), len(values))
            groups = groups.with_column(name, struct_text({TRIED_VALUE: kind}), struct_of(values, fine))
    return groups


def groups_with(
    rows: Frame,
    keys: Sequence[str],
    aggregates: Sequence[str],
    by_spark: Sequence[int],
    tried: Collection[str] = (),
) -> Frame:
    """Return groups with aggregates, of which Spark computes those with the numbers ``by_spark``.

    The rows of a group are in stream order, or in that of the columns that the aggregates read: an approximate
    aggregate, and the last digits of a DOUBLE, depend on it. Those of the names ``tried`` are structs.
    """
    named = (group_part_of(rows.sparkSession, aggregates[n], rows.fields) for n in by_spark)
    parts = {name: replace(part, tries=name in tried) for name, part in named}
    place = [name for name in (ROWTIME, WRITER, POSITION) if name in rows.columns]
    read = dict.fromkeys(name for part in parts.values() for name, _ in part.columns if name in rows.columns)
    nothing = rows.limit(0)
    terms = [*map(quoted, place), *(name for name in map(quoted, read) if nothing.in_order([name]) is not None)]
    ordered = rows.in_order(terms) if parts and terms else rows
    if ordered is None or not (keys or rows.count()):
        raise Untranslated(str(aggregates))
    numbers = pa.array(np.arange(ordered.count()))
    own = [text for n, text in enumerate(aggregates) if n not in by_spark]
    numbered = ordered.with_column(GROUP_ROWS, "bigint", numbers)
    groups = numbered.grouped_here(keys, own, GROUP_ROWS)
    if groups is None:
        raise Untranslated(str(aggregates))
    order, of_group, given = _in_groups(groups.column(GROUP_ROWS))
    given_rows = ordered.taken(given).with_column(ASKED_GROUP, "bigint", of_group)
    distinct = [*dict.fromkeys(parts.values())]
    values = answered(rows.sparkSession, dict.fromkeys(distinct, given_rows)) if distinct else []
    by_part = dict(zip(distinct, values, strict=True))
    groups = groups.taken(order)
    for name, part in parts.items():
        kind, array = by_part[part]
        groups = groups.with_column(name, struct_text({TRIED_VALUE: kind}) if part.tries else kind, array)
    names = [*groups.columns[: len(keys)], *(name_of(text) for text in aggregates)]
    return groups.valued([*map(quoted, names)])


def unknown_in(rows: Frame, keys: Sequence[str], aggregates: Sequence[str]) -> list[int]:
    """Return the numbers of the aggregates without a translation."""
    nothing = rows.limit(0)
    return [n for n, text in enumerate(aggregates) if nothing.grouped_here(keys, [text]) is None]


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
