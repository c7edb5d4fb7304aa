"""Text with a collation, compared as in Spark: by keys whose bytes have the order and the identity of the texts.

Spark has such keys, but no SQL function that returns them, so its expression is called by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rowtime.core.columns import COLLATED_KEY, COLLATED_VALUE
from rowtime.expr.aggregates import PLACE, placed_merges, sketches
from rowtime.frames.extremes import grouped_by_places, name_of
from rowtime.frames.kinds import type_text
from rowtime.frames.local import is_local
from rowtime.operators.contract import functions as F
from rowtime.operators.contract import quoted
from rowtime.sql.generate import literal

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

_FLOATING = re.compile(r"\b(?:float|double)\b", re.IGNORECASE)
_EITHER_ZERO = re.compile(r"\b(?:median|mode|percentile|percentile_cont|percentile_disc)\s*\(", re.IGNORECASE)
"""Aggregates that show one of the rows' values; of zeros with different signs, Spark shows any."""
_COLLATION = re.compile(r" collate \w+")


def has_collation(kind: DataType) -> bool:
    """Return True if a type is, or contains, text that is not compared by its bytes."""
    return " collate " in type_text(kind)


def collated_of(rows: DataFrame, names: Iterable[str]) -> list[str]:
    """Return those of some columns whose values have a collation."""
    return [name for name in names if has_collation(rows.schema[name].dataType)]


def in_bytes(rows: DataFrame, names: Iterable[str]) -> tuple[DataFrame, dict[str, Column]]:
    """Return the rows with some columns as text without a collation, and the columns that restore the collation."""
    kinds = {name: type_text(rows.schema[name].dataType) for name in collated_of(rows, names)}
    plain = {name: F.expr(f"CAST({quoted(name)} AS {_COLLATION.sub('', kind)})") for name, kind in kinds.items()}
    back = {name: F.expr(f"CAST({quoted(name)} AS {kind})") for name, kind in kinds.items()}
    return (rows.withColumns(plain) if plain else rows), back


def least(name: str) -> str:
    """Return Spark SQL for the text that names a group: of equal texts the least by its bytes.

    Spark shows the first text that it meets. The least does not depend on the order, and the least of partial results
    is the least of all.
    """
    return f"min_by({quoted(name)}, CAST({quoted(name)} AS STRING))"


def grouped(rows: DataFrame, keys: Sequence[str], aggregates: Sequence[str]) -> DataFrame:
    """Return the groups of the rows with their aggregates; a key with a collation is the least text of its group.

    Of zeros that are equally in the middle, or equally frequent, the positive one is shown.
    """
    return with_one_zero(_grouped(rows, keys, aggregates), aggregates)


def with_one_zero(groups: DataFrame, aggregates: Sequence[str]) -> DataFrame:
    """Return groups that show the positive one of zeros that are equally in the middle, or equally frequent."""
    names = {name_of(text) for text in aggregates if _EITHER_ZERO.search(text)}
    if not names:
        return groups
    kinds = {field.name: field.dataType for field in groups.schema if field.name in names}
    values = {name: _with_one_zero(quoted(name), kinds[name]) for name in kinds}
    chosen = [f"{values[name]} AS {quoted(name)}" if name in values else quoted(name) for name in groups.columns]
    return groups if all(text == quoted(name) for name, text in values.items()) else groups.selectExpr(*chosen)


def _grouped(rows: DataFrame, keys: Sequence[str], aggregates: Sequence[str]) -> DataFrame:
    if is_local(rows):
        placed = placed_merges(aggregates)
        local = grouped_by_places(rows, keys, aggregates, placed, PLACE.split(", "))
        if local is None:
            local = rows.grouped(keys, aggregates)
        if local is not None:
            return local
    place = PLACE.split(", ")
    if sketches(aggregates) and {*place} <= {*rows.columns}:
        rows = rows.coalesce(1).sortWithinPartitions(*keys, *place)
    collated = {name: f"__c_{name}" for name in collated_of(rows, keys)}
    kinds = {name: rows.schema[name].dataType for name in collated}
    rows = rows.withColumns({name: F.expr(_with_one_zero(quoted(name), kind)) for name, kind in kinds.items()})
    shown = [f"{least(name)} AS {quoted(other)}" for name, other in collated.items()]
    groups = rows.groupBy(*keys).agg(*map(F.expr, (*aggregates, *shown) or ["1 AS __one"])).drop("__one")
    if not collated:
        return groups
    names = [name for name in groups.columns if name not in collated.values()]
    return groups.select(*(F.col(collated.get(name, name)).alias(name) for name in names))


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


def grouped_as_they_are(rows: DataFrame, keys: Sequence[str], aggregates: Sequence[str]) -> DataFrame:
    """Return the groups of the rows by ``keys`` (quoted names), as Spark compares them."""
    groups: DataFrame | None = rows.grouped(keys, aggregates) if is_local(rows) else None
    return rows.groupBy(*keys).agg(*map(F.expr, aggregates)) if groups is None else groups


def keyed(rows: DataFrame, names: Iterable[str]) -> DataFrame:
    """Return the rows with keys in place of text in some columns."""
    return rows.withColumns({name: _key(rows, name) for name in names})


def paired(rows: DataFrame, names: Iterable[str]) -> DataFrame:
    """Return the rows with pairs of key and text (`kernels.collated`) in place of text in some columns."""
    pairs = {name: F.struct(_key(rows, name).alias(COLLATED_KEY), F.col(name).alias(COLLATED_VALUE)) for name in names}
    return rows.withColumns({name: F.when(F.col(name).isNotNull(), pair) for name, pair in pairs.items()})


def _key(rows: DataFrame, name: str) -> Column:
    from pyspark.sql.classic.column import Column as Classic  # noqa: PLC0415 - as above

    java = rows.sparkSession._jvm  # noqa: SLF001 - the only way to the expression
    assert java is not None
    bridge = java.org.apache.spark.sql.classic.ExpressionUtils
    text = bridge.expression(F.col(name)._jc)  # noqa: SLF001 - as above
    return Classic(bridge.column(java.org.apache.spark.sql.catalyst.expressions.CollationKey(text)))
