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
KINDS: Final = {
    exp.DType.TINYINT: "tinyint", exp.DType.SMALLINT: "smallint", exp.DType.INT: "int", exp.DType.BIGINT: "bigint",
    exp.DType.FLOAT: "float", exp.DType.DOUBLE: "double", exp.DType.BOOLEAN: "boolean", exp.DType.TEXT: "string",
    exp.DType.DATE: "date", exp.DType.TIMESTAMPTZ: "timestamp", exp.DType.TIMESTAMPNTZ: "timestamp_ntz",
}  # fmt: skip
_CARRIED: Final = ("decimal", "binary", "array", "map", "struct")  # types of columns that expressions cannot use
_LEFT_OUT: Final = ("interval", " collate ", "variant")
_NAMES: Final = {
    "integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint", "real": "float",
    "timestamp_ltz": "timestamp",
}  # fmt: skip
_KNOWN_WORDS: Final = {*PLAIN, *_NAMES, *_CARRIED}
_FIELD_NAME: Final = re.compile(r"`(?:[^`]|``)*`|\w+(?=\s*:)")
_WORD: Final = re.compile(r"[a-z_]\w*")


def named(kind: str) -> str:
    """Return a declared type by its name in frames."""
    name = re.sub(r"\s*,\s*", ",", kind.strip().lower())
    return _NAMES.get(name, name)


def holds(kind: str) -> bool:
    """Return True if a column of a frame may have this type."""
    low = kind.lower()
    if kind in PLAIN or not low.startswith(_CARRIED):
        return kind in PLAIN
    left_out = any(word in low for word in _LEFT_OUT)
    return not left_out and ("void" not in low or "void" not in _WORD.findall(_FIELD_NAME.sub("", low)))


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
    if node.this in KINDS and not node.expressions and not node.args.get("collate"):
        return KINDS[node.this]
    return re.sub(r"\s*,\s*", ",", node.sql("spark").lower())


def _type_of_field(field: exp.ColumnDef) -> str:
    """Return the type of a field of a struct; sqlglot reads its collation as a constraint of a column."""
    kind = type_of(field.args["kind"])
    kinds = (constraint.args["kind"] for constraint in field.args.get("constraints") or ())
    collations = [of.this.name.lower() for of in kinds if isinstance(of, exp.CollateColumnConstraint)]
    return " collate ".join([kind, *collations])


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

    if _KNOWN_WORDS.issuperset(_WORD.findall(_FIELD_NAME.sub("", kind.lower()))):  # the parser takes more than Spark
        with suppress(Untranslated, SqlglotError, ValueError):
            return _composed(exp.DataType.build(kind, dialect="spark"))
    return t._parse_datatype_string(kind)  # noqa: SLF001 - no public reader of types; it needs Spark


def _composed(node: exp.DataType) -> DataType:
    """Return a parsed type; raises ``Untranslated`` if it is, or contains, one that frames do not know by name."""
    from pyspark.sql import types as t  # noqa: PLC0415 - Spark

    parts = node.expressions
    if node.this == exp.DType.STRUCT:
        return t.StructType([t.StructField(part.name, _composed(part.args["kind"])) for part in parts])
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
    """Return a type in Arrow, as Spark delivers it."""
    return arrow_type(spark_type(kind))


def without_zones(kind: pa.DataType) -> pa.DataType:
    """Return an Arrow type whose times have no zone (they are UTC) and count µs."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us")
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(without_zones(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(without_zones(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(without_zones(kind.key_type), without_zones(kind.item_type))
    return kind
