"""Types: their names in frames, and in Spark, Arrow and DuckDB."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import SqlglotError

from rowtime.core.capabilities import arrow_type
from rowtime.frames.words import Untranslated, quoted
from rowtime.sql.generate import quoted as spark_name

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

WHOLE: Final = {"tinyint": "TINYINT", "smallint": "SMALLINT", "int": "INTEGER", "bigint": "BIGINT"}
PLAIN: Final = {
    **WHOLE, "float": "FLOAT", "double": "DOUBLE", "boolean": "BOOLEAN", "string": "VARCHAR", "date": "DATE",
    "timestamp": "TIMESTAMP", "timestamp_ntz": "TIMESTAMP",
}  # fmt: skip
"""Types that expressions may use, besides decimals, with DuckDB's types. A TIMESTAMP is UTC there."""
TIMES: Final = ("timestamp", "timestamp_ntz")
DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")
MOST_DIGITS: Final = 38
COLLATE: Final = " collate "
KINDS: Final = {
    exp.DType.TINYINT: "tinyint", exp.DType.SMALLINT: "smallint", exp.DType.INT: "int", exp.DType.BIGINT: "bigint",
    exp.DType.FLOAT: "float", exp.DType.DOUBLE: "double", exp.DType.BOOLEAN: "boolean", exp.DType.TEXT: "string",
    exp.DType.DATE: "date", exp.DType.TIMESTAMPTZ: "timestamp", exp.DType.TIMESTAMPNTZ: "timestamp_ntz",
}  # fmt: skip
_READ: Final = ("decimal", "binary", "array", "map", "struct")  # types of columns that expressions cannot use
_CARRIED: Final = (*_READ, "interval", "variant", "time(", f"string{COLLATE}")
_LEFT_OUT: Final = re.compile(r"interval (?:year|month)|\binterval\b(?! (?:day|hour|minute|second))|\bvoid\b|geo")
_NOT_READ: Final = re.compile(rf"interval|{COLLATE}|variant|\btime\(")
_PARTS: Final = ("day", "hour", "minute", "second")
_NAMES: Final = {
    "integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint", "real": "float",
    "timestamp_ltz": "timestamp", "time": "time(6)",
}  # fmt: skip
_KNOWN_WORDS: Final = {
    *PLAIN, *_NAMES, *_READ, "interval", "day", "hour", "minute", "second", "to", "variant", "time", "collate",
}  # fmt: skip
_FIELD_NAME: Final = re.compile(r"`(?:[^`]|``)*`|\w+(?=\s*:)")
_WORD: Final = re.compile(r"[a-z_]\w*")
_COLLATED: Final = re.compile(rf"string{COLLATE}(\w+)", re.IGNORECASE)
_ALL_UPPER: Final = ("UTF8_", "UNICODE")  # how collations begin that are no language's
_COLLATION: Final = re.compile(rf"{COLLATE}\w+", re.IGNORECASE)


def named(kind: str) -> str:
    """Return a declared type by its name in frames."""
    name = re.sub(r"\s*,\s*", ",", kind.strip().lower())
    if collated := _COLLATED.fullmatch(name):
        return f"string{COLLATE}{_collation(kind.strip()[-len(collated[1]) :])}"
    return _NAMES.get(name, name)


def _collation(name: str) -> str:
    """Return the name of a collation as Spark shows it; the one of a language has to be given so."""
    return name.upper() if name.upper().startswith(_ALL_UPPER) else name


def holds(kind: str) -> bool:
    """Return True if a column of a frame may have this type."""
    low = kind.lower()
    return kind in PLAIN or (low.startswith(_CARRIED) and not _LEFT_OUT.search(_FIELD_NAME.sub("", low)))


def is_read(kind: str) -> bool:
    """Return True if readers of files without Spark give values of this type."""
    low = kind.lower()
    return holds(kind) and (kind in PLAIN or (low.startswith(_READ) and not _NOT_READ.search(_FIELD_NAME.sub("", low))))


def is_plain(kind: str) -> bool:
    """Return True for a type whose equal values have the same bytes."""
    return (
        (kind in PLAIN and kind not in ("float", "double")) or kind == "binary" or DECIMAL.fullmatch(kind) is not None
    )


def is_collated(kind: str) -> bool:
    """Return True if a type is, or contains, text that is not compared by its bytes."""
    return COLLATE in _FIELD_NAME.sub("", kind.lower())


def without_collation(kind: str, instead: str = "string") -> str:
    """Return a type with another one in the place of text with a collation."""
    return _COLLATED.sub(instead, kind)


def decimal(precision: int, scale: int) -> str:
    """Return the type of a decimal; Spark rounds beyond 38 digits."""
    if precision > MOST_DIGITS:
        raise Untranslated("a decimal that is rounded")
    return f"decimal({precision},{scale})"


def struct_text(fields: Mapping[str, str]) -> str:
    """Return the type of a struct with these fields."""
    inside = ", ".join(f"`{name.replace('`', '``')}`: {kind}" for name, kind in fields.items())
    return f"STRUCT<{inside}>"


@lru_cache(maxsize=1024)
def fields_of(kind: str) -> dict[str, str]:
    """Return the fields of a struct, by its type; none for another type."""
    if not kind.upper().startswith("STRUCT<"):
        return {}
    try:
        struct = exp.DataType.build(kind, dialect="spark")
    except (SqlglotError, ValueError):
        return {}
    return {part.name: _type_of_field(part) for part in struct.expressions}


def array_text(element: str) -> str:
    """Return the type of an array with elements of this type."""
    return f"ARRAY<{element}>"


@lru_cache(maxsize=1024)
def element_of(kind: str) -> str:
    """Return the type of the elements of an array; raises ``Untranslated`` for another type."""
    if not kind.upper().startswith("ARRAY<"):
        raise Untranslated(kind)
    try:
        array = exp.DataType.build(kind, dialect="spark")
    except (SqlglotError, ValueError):
        raise Untranslated(kind) from None
    return type_of(array.expressions[0])


@lru_cache(maxsize=1024)
def entry_of(kind: str) -> str:
    """Return the type of the entries of a map: structs; raises ``Untranslated`` for another type."""
    if not kind.upper().startswith("MAP<"):
        raise Untranslated(kind)
    try:
        key, value = exp.DataType.build(kind, dialect="spark").expressions
    except (SqlglotError, ValueError):
        raise Untranslated(kind) from None
    return struct_text({"key": type_of(key), "value": type_of(value)})


def type_of(node: exp.DataType) -> str:
    """Return a parsed type in the notation of frames."""
    if node.this == exp.DType.STRUCT:
        return struct_text({part.name: _type_of_field(part) for part in node.expressions})
    if node.this == exp.DType.ARRAY:
        return array_text(type_of(node.expressions[0]))
    if node.this == exp.DType.MAP and node.expressions:
        return f"MAP<{', '.join(map(type_of, node.expressions))}>"
    if node.this in KINDS and not node.expressions:
        collation = node.args.get("collate")
        return KINDS[node.this] if collation is None else f"{KINDS[node.this]}{COLLATE}{collation.name}"
    if node.this == exp.DType.TIME:
        return f"time({node.expressions[0].name if node.expressions else 6})"
    return re.sub(r"\s*,\s*", ",", node.sql("spark").lower())


def _type_of_field(field: exp.ColumnDef) -> str:
    """Return the type of a field of a struct; sqlglot reads its collation as a constraint of a column."""
    kind = type_of(field.args["kind"])
    kinds = (constraint.args["kind"] for constraint in field.args.get("constraints") or ())
    collations = [of.this.name for of in kinds if isinstance(of, exp.CollateColumnConstraint)]
    return COLLATE.join([kind, *collations])


def sql_type(kind: str, *, bits: bool = False) -> str:
    """Return a type in DuckDB's notation; raises ``Untranslated`` for any other type.

    ``bits``: the type to which values are cast where DuckDB would lose the sign of a zero.
    """
    fields = fields_of(kind)
    if fields:
        return f"STRUCT({', '.join(f'{quoted(name)} {sql_type(of, bits=bits)}' for name, of in fields.items())})"
    if kind.upper().startswith("ARRAY<"):
        return f"{sql_type(element_of(kind), bits=bits)}[]"
    if bits and kind in ("float", "double"):
        return "BIT"
    if kind not in PLAIN and not DECIMAL.fullmatch(kind):
        raise Untranslated(kind)
    return PLAIN.get(kind, kind)


@lru_cache(maxsize=1024)
def held_type(kind: str) -> str:
    """Return the type of a column of DuckDB that has values of a type which frames hold."""
    low = kind.lower()
    if low.startswith("map<"):
        node = exp.DataType.build(kind, dialect="spark")
        return f"MAP({', '.join(held_type(type_of(part)) for part in node.expressions)})"
    if low.startswith("array<"):
        return f"{held_type(element_of(kind))}[]"
    if fields := fields_of(kind):
        return f"STRUCT({', '.join(f'{quoted(name)} {held_type(of)}' for name, of in fields.items())})"
    if low.startswith(("interval ", "time(")):
        return "BIGINT"
    if low == "variant":
        return 'STRUCT("value" BLOB, "metadata" BLOB)'
    return "BLOB" if low == "binary" else "VARCHAR" if is_collated(kind) else sql_type(kind)


def type_text(kind: DataType) -> str:
    """Return a Spark type as SQL text that Spark can parse, whatever the names of struct fields."""
    from pyspark.sql.types import ArrayType, MapType, StructType  # noqa: PLC0415 - `check` does without Spark

    if isinstance(kind, StructType):
        return f"STRUCT<{', '.join(f'{spark_name(field.name)}: {type_text(field.dataType)}' for field in kind)}>"
    if isinstance(kind, ArrayType):
        return f"ARRAY<{type_text(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"MAP<{type_text(kind.keyType)}, {type_text(kind.valueType)}>"
    return kind.simpleString()


@lru_cache(maxsize=1024)
def spark_type(kind: str) -> DataType:
    """Return a type as Spark's; Spark itself is only needed for types that frames do not know by name."""
    from pyspark.sql import types as t  # noqa: PLC0415 - Spark

    words = _WORD.findall(_COLLATION.sub("", _FIELD_NAME.sub("", kind.lower())))
    if _KNOWN_WORDS.issuperset(words):  # the parser takes more than Spark
        with suppress(Untranslated, SqlglotError, ValueError):
            return _named(kind) or _composed(exp.DataType.build(kind, dialect="spark"))
    return t._parse_datatype_string(kind)  # noqa: SLF001 - no public reader of types; it needs Spark


def _named(kind: str) -> DataType | None:
    """Return a type that is no composed one, if it has no class of its own among `PLAIN` ones."""
    from pyspark.sql import types as t  # noqa: PLC0415 - Spark

    low = kind.lower()
    if low.startswith(f"string{COLLATE}"):
        return t.StringType(_collation(kind[len(f"string{COLLATE}") :]))
    if low.startswith("interval "):
        first, _, last = low.removeprefix("interval ").partition(" to ")
        return t.DayTimeIntervalType(_PARTS.index(first), _PARTS.index(last or first))
    if low.startswith("time("):
        return t.TimeType(int(low[len("time(") : -1]))
    return t.VariantType() if low == "variant" else None


def _composed(node: exp.DataType) -> DataType:
    """Return a parsed type; raises ``Untranslated`` if it is, or contains, one that frames do not know by name."""
    from pyspark.sql import types as t  # noqa: PLC0415 - Spark

    parts = node.expressions
    if (single := _named(type_of(node))) is not None:
        return single
    if node.this == exp.DType.STRUCT:
        kinds = ((part, spark_type(_type_of_field(part))) for part in parts)
        return t.StructType([t.StructField(part.name, kind) for part, kind in kinds])
    if node.this == exp.DType.ARRAY:
        return t.ArrayType(_composed(parts[0]))
    if node.this == exp.DType.MAP:
        key, value = map(_composed, parts)
        return t.MapType(key, value)
    if match := DECIMAL.fullmatch(kind := named(type_of(node))):
        return t.DecimalType(int(match[1]), int(match[2]))
    if parts:
        raise Untranslated(kind)
    plain = {
        "boolean": t.BooleanType, "tinyint": t.ByteType, "smallint": t.ShortType, "int": t.IntegerType,
        "bigint": t.LongType, "float": t.FloatType, "double": t.DoubleType, "string": t.StringType,
        "date": t.DateType, "timestamp": t.TimestampType, "timestamp_ntz": t.TimestampNTZType, "binary": t.BinaryType,
    }  # fmt: skip
    if kind not in plain:
        raise Untranslated(kind)
    return plain[kind]()


@lru_cache(maxsize=1024)
def arrow_of(kind: str) -> pa.DataType:
    """Return a type in Arrow, as Spark delivers it; the parts of a VARIANT may be NULL, because it may be."""
    delivered = arrow_type(spark_type(kind))
    return _nullable(delivered) if "variant" in kind.lower() else delivered


def _nullable(kind: pa.DataType) -> pa.DataType:
    """Return an Arrow type whose parts may be NULL."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_nullable(field.type)).with_nullable(nullable=True) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_nullable(kind.value_type)))
    return pa.map_(kind.key_type, _nullable(kind.item_type)) if pa.types.is_map(kind) else kind


def without_zones(kind: pa.DataType) -> pa.DataType:
    """Return an Arrow type for columns of DuckDB: times have no zone (they are UTC) and count µs.

    Intervals and times of a day are whole numbers, because DuckDB has other types of them.
    """
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us")
    if pa.types.is_duration(kind) or pa.types.is_time(kind):
        return pa.int64()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(without_zones(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(without_zones(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(without_zones(kind.key_type), without_zones(kind.item_type))
    return kind
