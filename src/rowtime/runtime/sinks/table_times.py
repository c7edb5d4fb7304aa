"""Times for PostgreSQL: as texts, because Java's own dates skip ten days of October 1582.

``java.sql.Timestamp`` and ``java.sql.Date`` use the Julian calendar before 1582-10-15, so Spark's writer shifts the
times of the skipped days. Spark and PostgreSQL both always use the Gregorian calendar.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import ArrayType, DataType, DateType, StructField, TimestampNTZType, TimestampType

_TYPES: Mapping[type[DataType], str] = {
    DateType: "DATE",
    TimestampType: "TIMESTAMP WITH TIME ZONE",
    TimestampNTZType: "TIMESTAMP",
}
_PATTERNS: Mapping[type[DataType], str] = {
    DateType: "yyyy-MM-dd",
    TimestampType: "yyyy-MM-dd HH:mm:ss.SSSSSS",
    TimestampNTZType: "yyyy-MM-dd HH:mm:ss.SSSSSS",
}


def time_type(kind: DataType) -> str | None:
    """Return PostgreSQL's name of a time type, or of an array of one; ``None`` for other types."""
    if isinstance(kind, ArrayType):
        of = _TYPES.get(type(kind.elementType))
        return f"{of}[]" if of else None
    return _TYPES.get(type(kind))


def as_text(field: StructField) -> str:
    """Return Spark SQL of a time column as texts that PostgreSQL can parse, with the era."""
    name = "`" + field.name.replace("`", "``") + "`"
    if isinstance(field.dataType, ArrayType):
        return f"transform({name}, __x -> {_text('__x', field.dataType.elementType)}) AS {name}"
    return f"{_text(name, field.dataType)} AS {name}"


def _text(value: str, kind: DataType) -> str:
    zone = "+00 " if isinstance(kind, TimestampType) else " "
    text = f"trim(LEADING '+' FROM date_format({value}, '{_PATTERNS[type(kind)]}'))"
    return f"concat({text}, '{zone}', date_format({value}, 'G'))"
