"""Text with a collation, compared as in Spark: by keys whose bytes have the order and the identity of the texts.

Spark has such keys, but no SQL function that returns them, so its expression is called by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from rowtime.core.columns import COLLATED_KEY, COLLATED_VALUE
from rowtime.expr.aggregates import PLACE, placed_merges
from rowtime.frames.extremes import grouped_by_places, name_of
from rowtime.frames.frame import Frame
from rowtime.frames.keyed import key_of, with_keys
from rowtime.frames.kinds import is_collated, struct_text, type_text, without_collation
from rowtime.operators.contract import quoted
from rowtime.sql.generate import literal

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

_FLOATING = re.compile(r"\b(?:float|double)\b", re.IGNORECASE)
_EITHER_ZERO = re.compile(r"\b(?:median|mode|percentile|percentile_cont|percentile_disc)\s*\(", re.IGNORECASE)
"""Aggregates that show one of the rows' values; of zeros with different signs, Spark shows any."""
_COLLATION = re.compile(r" collate \w+")


def has_collation(kind: DataType) -> bool:
    """Return True if a type is, or contains, text that is not compared by its bytes."""
    return " collate " in type_text(kind)


def collated_of(rows: Frame, names: Iterable[str]) -> list[str]:
    """Return those of some columns whose values have a collation."""
    kinds = dict(rows.fields)
    return [name for name in names if is_collated(kinds[name])]


def in_bytes(rows: Frame, names: Iterable[str]) -> tuple[Frame, Mapping[str, str]]:
    """Return the rows with some columns as text without a collation, and what restores their collation."""
    wanted = {*names}
    back = {name: kind for name, kind in rows.fields if name in wanted and is_collated(kind)}
    return rows.of_kinds({name: without_collation(kind) for name, kind in back.items()}), back


def restored(rows: Frame, back: Mapping[str, str]) -> Frame:
    """Return rows with the collations that `in_bytes` has taken away."""
    return rows.of_kinds(back)


def least(name: str) -> str:
    """Return Spark SQL for the text that names a group: of equal texts the least by its bytes.

    Spark shows the first text that it meets. The least does not depend on the order, and the least of partial results
    is the least of all.
    """
    return f"min_by({quoted(name)}, CAST({quoted(name)} AS STRING))"


def grouped(rows: Frame, keys: Sequence[str], aggregates: Sequence[str]) -> Frame:
    """Return the groups of the rows with their aggregates; a key with a collation is the least text of its group.

    Of zeros that are equally in the middle, or equally frequent, the positive one is shown.
    """
    return with_one_zero(_grouped(rows, keys, aggregates), aggregates)


def with_one_zero(groups: Frame, aggregates: Sequence[str]) -> Frame:
    """Return groups that show the positive one of zeros that are equally in the middle, or equally frequent."""
    names = {name_of(text) for text in aggregates if _EITHER_ZERO.search(text)}
    if not names:
        return groups
    kinds = {field.name: field.dataType for field in groups.schema if field.name in names}
    values = {name: _with_one_zero(quoted(name), kinds[name]) for name in kinds}
    chosen = [f"{values[name]} AS {quoted(name)}" if name in values else quoted(name) for name in groups.columns]
    return groups if all(text == quoted(name) for name, text in values.items()) else groups.selectExpr(*chosen)


def _grouped(rows: Frame, keys: Sequence[str], aggregates: Sequence[str]) -> Frame:
    groups = grouped_by_places(rows, keys, aggregates, placed_merges(aggregates), PLACE.split(", "))
    return rows.grouped(keys, aggregates) if groups is None else groups


def _with_one_zero(value: str, kind: DataType, depth: int = 0) -> str:
    """Return Spark SQL for a value in which both zeros are the positive one, as in keys that Spark itself shows."""
    from pyspark.sql import types as t  # noqa: PLC0415 - `check` does without Spark

    if isinstance(kind, t.FloatType | t.DoubleType):
        return f"({value} + CAST(0 AS {kind.simpleString()}))"
    if not _FLOATING.search(type_text(kind)):
        return value
    if isinstance(kind, t.StructType):
        parts = ((field.name, _with_one_zero(f"{value}.{quoted(field.name)}", field.dataType, depth)) for field in kind)
        fields = ", ".join(f"{literal(name)}, {part}" for name, part in parts)
        return f"CASE WHEN {value} IS NOT NULL THEN named_struct({fields}) END"
    if isinstance(kind, t.ArrayType):
        return f"transform({value}, x{depth} -> {_with_one_zero(f'x{depth}', kind.elementType, depth + 1)})"
    return value


def keyed(rows: Frame, names: Iterable[str]) -> Frame:
    """Return the rows with keys in place of text in some columns."""
    for name, (kind, keys) in _keys(rows, names).items():
        rows = rows.with_column(name, kind, keys.combine_chunks())
    return rows


def paired(rows: Frame, names: Iterable[str]) -> Frame:
    """Return the rows with pairs of key and text (`kernels.collated`) in place of text in some columns."""
    for name, (kind, keys) in _keys(rows, names).items():
        pairs = _pairs(keys.combine_chunks(), rows.column(name).combine_chunks())
        text = struct_text({COLLATED_KEY: kind, COLLATED_VALUE: without_collation(dict(rows.fields)[name])})
        rows = rows.with_column(name, text, pairs)
    return rows


def _keys(rows: Frame, names: Iterable[str]) -> dict[str, tuple[str, pa.ChunkedArray]]:
    """Return the types and values of the keys of columns with a collation."""
    names = [name for name in names if is_collated(dict(rows.fields)[name])]
    keys = with_keys(rows, names)
    return {name: (dict(keys.fields)[key_of(name)], keys.column(key_of(name))) for name in names}


def _pairs(keys: pa.Array, values: pa.Array) -> pa.StructArray:
    """Return pairs of a key and a text; NULL for no text."""
    return pa.StructArray.from_arrays([keys, values], [COLLATED_KEY, COLLATED_VALUE], mask=values.is_null())
