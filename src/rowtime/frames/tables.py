"""Arrow tables in the place of Spark rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowtime.frames.kinds import arrow_of, spark_type, type_text, without_zones
from rowtime.kernels.identity import only_value

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

_SORTED = {pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.bool_(), pa.date32(), pa.string()}
_FEW_RUNS = 64
Column = tuple[str, str]  # its name, and its type in Spark's words


def put_together(fields: Sequence[Column], tables: Sequence[pa.Table]) -> pa.Table:
    """Combine tables into one with these columns; a missing column is NULL."""
    whole = pa.concat_tables(tables, promote_options="permissive")
    present = set(whole.column_names)
    nulls = ((name, pa.nulls(whole.num_rows, arrow_of(kind))) for name, kind in fields if name not in present)
    for name, column in nulls:
        whole = whole.append_column(name, column)
    return whole.select([name for name, _ in fields])


def stacked(one: pa.Table, other: pa.Table, order: Sequence[int]) -> pa.Table | None:
    """Return the rows of both; ``order``: the columns of the other by place. ``None`` if Arrow types differ."""
    columns = [other.column(place) for place in order]
    added = pa.Table.from_arrays(columns, names=one.column_names)
    return pa.concat_tables([one, added]) if one.schema.types == added.schema.types else None


def delivered(column: pa.ChunkedArray, kind: str) -> pa.ChunkedArray:
    """Return a column as Spark delivers it."""
    wanted = arrow_of(kind)
    # Equal types may differ in the names of elements, and in what tells a VARIANT from other structs.
    if str(column.type) != str(wanted) or "variant" in kind.lower():
        column = column.cast(wanted)
    return column if column.num_chunks else pa.chunked_array([pa.array([], wanted)])  # PySpark wants one


def _has_required(kind: DataType) -> bool:
    """Return True for a type with a struct that has a field which is never NULL."""
    from pyspark.sql.types import ArrayType, MapType, StructType  # noqa: PLC0415 - `check` does without Spark

    if isinstance(kind, StructType):
        return any(not field.nullable or _has_required(field.dataType) for field in kind)
    if isinstance(kind, ArrayType):
        return _has_required(kind.elementType)
    return isinstance(kind, MapType) and (_has_required(kind.keyType) or _has_required(kind.valueType))


def handed_out(rows: DataFrame) -> pa.Table:
    """Return rows of Spark.

    PySpark does not hand out a struct that is NULL if its fields cannot be: these are cast, and rows with a VARIANT,
    which has such fields, come as bytes.
    """
    kinds = [(field.name, type_text(field.dataType)) for field in rows.schema]
    if not any("variant" in kind.lower() for _, kind in kinds):
        if not any(_has_required(field.dataType) for field in rows.schema):
            return rows.toArrow()
        names = [f"`{name.replace('`', '``')}`" for name, _ in kinds]
        columns = zip(names, kinds, rows.schema.names, strict=True)
        return rows.select(*(rows[name].cast(spark_type(kind)).alias(of) for name, (_, kind), of in columns)).toArrow()
    batches = rows.mapInArrow(_as_bytes, "batch binary").toArrow()["batch"].to_pylist()
    tables = [pa.ipc.open_stream(batch).read_all() for batch in batches]
    if not tables:
        return pa.table({name: pa.array([], arrow_of(kind)) for name, kind in kinds})
    return pa.concat_tables(tables)


def _as_bytes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pack batches of rows, in a task of Spark."""
    for batch in batches:
        packed = pa.BufferOutputStream()
        with pa.ipc.new_stream(packed, batch.schema) as stream:
            stream.write_batch(batch)
        yield pa.record_batch({"batch": [packed.getvalue().to_pybytes()]})


def has(table: pa.Table, fields: Sequence[Column]) -> bool:
    """Return True if a table has these columns with the values that Spark would read."""
    present = {field.name: field.type for field in table.schema}
    return all(
        name in present and without_zones(present[name]) == without_zones(arrow_of(kind)) for name, kind in fields
    )


def sorted_by(table: pa.Table, names: Sequence[str]) -> pa.Table | None:
    """Return the rows in ascending order of columns; nothing is copied if they are in order, or in a few ordered runs.

    Threads that compute a part each deliver such runs. ``None`` if one of the columns has NULLs, or a type that Arrow
    may sort differently from Spark.
    """
    columns = [table.column(name) for name in names]
    if any(column.null_count or not _is_sorted_alike(column.type) for column in columns):
        return None
    keys: list[np.ndarray] = []
    number = max(0, table.num_rows - 1)
    falls, ties = np.zeros(number, bool), np.ones(number, bool)
    for column in columns:
        keys.append(key := _ranks(column))
        falls |= ties & (key[:-1] > key[1:])
        ties &= key[:-1] == key[1:]
        if not ties.any():
            break
    runs = _runs(keys, np.flatnonzero(falls))
    if runs is not None:
        return pa.concat_tables([table.slice(start, end - start) for start, end in runs]) if len(runs) > 1 else table
    keys += map(_ranks, columns[len(keys) :])
    return table.combine_chunks().take(pa.array(np.lexsort(keys[::-1])))


def _runs(keys: Sequence[np.ndarray], falls: np.ndarray) -> list[tuple[int, int]] | None:
    """Return where sorted runs begin and end, in their order; ``None`` if they are many, or interleave.

    ``falls``: the rows after which a lower one follows.
    """
    if len(falls) >= _FEW_RUNS:
        return None
    starts = [0, *(falls + 1).tolist()]
    runs = [*pairwise([*starts, len(keys[0])])]
    if not len(falls):
        return runs

    def at(row: int) -> list[int]:
        return [int(key[row]) for key in keys]

    runs.sort(key=lambda run: at(run[0]))
    return None if any(at(end - 1) >= at(start) for (_, end), (start, _) in pairwise(runs)) else runs


def _is_sorted_alike(kind: pa.DataType) -> bool:
    """Return True for a type whose values Arrow and Spark sort alike."""
    return kind in _SORTED or pa.types.is_timestamp(kind)


def _ranks(column: pa.ChunkedArray) -> np.ndarray:
    """Return numbers in the order of the values."""
    if not pa.types.is_string(column.type):
        width = pa.int32() if pa.types.is_date32(column.type) else pa.int64()
        numbers: np.ndarray = column.cast(width).to_numpy()
        return numbers
    if only_value(column) is not None:
        return np.zeros(len(column), np.int64)
    encoded = column.combine_chunks().dictionary_encode()
    ranks = pc.rank(encoded.dictionary, sort_keys="ascending").to_numpy()
    places: np.ndarray = ranks[encoded.indices.to_numpy()] if len(ranks) else ranks
    return places


def with_chunks(table: pa.Table) -> pa.Table:
    """Return the table in a form that PySpark takes: without rows and chunks, it refuses columns of nested types."""
    return table if table.num_rows else table.schema.empty_table()
