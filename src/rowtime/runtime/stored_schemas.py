"""Schemas of kept rows in the journal, in the form for Spark and for rows on the driver."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pyspark.sql.types import StructType

from rowtime.operators.rows.collected import loose
from rowtime.operators.rows.values import type_text


def schema_of(stored: Mapping[str, Any]) -> StructType:
    """Return a new schema for each caller: Spark modifies what it reads."""
    return _schema(json.dumps(stored))


def fields_of(stored: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return names and types in Spark's words, computed once for each schema."""
    return _fields(json.dumps(stored))


def _schema(text: str) -> StructType:
    schema = loose(StructType.fromJson(json.loads(text)))
    assert isinstance(schema, StructType)
    return schema


@lru_cache(maxsize=1024)
def _fields(text: str) -> tuple[tuple[str, str], ...]:
    return tuple((field.name, type_text(field.dataType)) for field in _schema(text).fields)
