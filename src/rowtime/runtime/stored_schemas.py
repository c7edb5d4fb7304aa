"""Schemas of kept rows in the journal, in the form for Spark and for frames."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import DataType, StructField, StructType

from rowtime.frames.frame import Frame
from rowtime.frames.kinds import spark_type, type_text
from rowtime.runtime.loose_types import loose

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def schema_of(stored: Mapping[str, Any]) -> StructType:
    """Return a new schema for each caller: Spark modifies what it reads."""
    return _schema(json.dumps(stored))


def fields_of(stored: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return names and types in Spark's words, computed once for each schema."""
    return _fields(json.dumps(stored))


def stored(rows: Frame | pa.Table | DataFrame, columns: Mapping[str, str]) -> dict[str, Any]:
    """Return the schema in which columns of some rows are kept; ``columns``: their names in the rows, by name."""
    return {"type": "struct", "fields": [*_stored(rows, columns)]}


def _stored(rows: Frame | pa.Table | DataFrame, columns: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
    if isinstance(rows, pa.Table):
        for name, source in columns.items():
            yield _of_arrow(name, rows.schema.field(source).type)
    elif isinstance(rows, Frame):
        kinds = dict(rows.fields)
        yield from (_of_frame(name, kinds[source]) for name, source in columns.items())
    else:
        fields = {field.name: field.dataType for field in rows.schema.fields}
        yield from (_field(name, fields[source]) for name, source in columns.items())


@lru_cache(maxsize=4096)
def _of_arrow(name: str, kind: pa.DataType) -> Mapping[str, Any]:
    return _field(name, from_arrow_type(kind, prefer_timestamp_ntz=True))


@lru_cache(maxsize=4096)
def _of_frame(name: str, kind: str) -> Mapping[str, Any]:
    return _field(name, spark_type(kind))


def _field(name: str, kind: DataType) -> Mapping[str, Any]:
    return StructField(name, loose(kind)).jsonValue()


def _schema(text: str) -> StructType:
    schema = loose(StructType.fromJson(json.loads(text)))
    assert isinstance(schema, StructType)
    return schema


@lru_cache(maxsize=1024)
def _fields(text: str) -> tuple[tuple[str, str], ...]:
    return tuple((field.name, type_text(field.dataType)) for field in _schema(text).fields)
