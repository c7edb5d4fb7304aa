"""JSON Schema: the schema of columns, and which columns fit the properties of one.

A record is read like all JSON, by the declared types; the schema says what to expect. Its demands beyond types
(lengths, patterns, ranges) concern the writer of the record.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from rowtime.expr.store_assignment import type_of
from rowtime.runtime.schemas.fitting import Misfit, absent
from rowtime.runtime.schemas.registry import Schema

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

KIND: Final = "JSON"
_D: Final = exp.DType
_WHOLE: Final = (_D.TINYINT, _D.SMALLINT, _D.INT, _D.BIGINT)
_NUMBERS: Final = (*_WHOLE, _D.FLOAT, _D.DOUBLE, _D.DECIMAL)
_TIMES: Final = (_D.TIMESTAMPTZ, _D.TIMESTAMPLTZ)  # a number of them is one of seconds
_TEXTS: Final = (_D.TEXT, _D.VARCHAR, _D.CHAR)
_TAKEN: Final = {
    "string": (*_TIMES, _D.TIMESTAMPNTZ, _D.DATE, _D.TIME, _D.BINARY),
    "integer": (*_NUMBERS, *_TIMES),
    "number": (*_NUMBERS, *_TIMES),
    "boolean": (_D.BOOLEAN,),
    "object": (_D.STRUCT, _D.MAP),
    "array": (_D.ARRAY,),
}
"""The types of columns that values of JSON can become, besides texts, which all can."""
_SHOWN: Final = {"integer": "BIGINT", "number": "DOUBLE", "boolean": "BOOLEAN"}


def properties_of(schema: Schema) -> Mapping[str, Any] | None:
    """Return the properties of an object schema; ``None`` if it does not list them."""
    try:
        content = json.loads(schema.text)
    except ValueError:
        return None
    properties = content.get("properties") if isinstance(content, dict) else None
    return properties if isinstance(properties, dict) else None


def json_misfits(columns: Sequence[tuple[str, str]], rowtime: str | None, schema: Schema) -> Iterator[Misfit]:
    """Yield the declared columns that a schema's properties lack, or have with types that never fit."""
    properties = properties_of(schema)
    if properties is None:  # a combination of other schemas, which may allow anything
        return
    yield from absent(columns, rowtime, dict.fromkeys(properties, ""))
    for name, kind in columns:
        given, wanted = _types(properties.get(name)), type_of(kind)
        kinds = given & {*_TAKEN}
        if not kinds or name == rowtime or wanted is None or wanted.this in _TEXTS:
            continue
        if not any(wanted.this in _TAKEN[kind_of] for kind_of in kinds):
            shown = " or ".join(sorted(kinds))
            better = _SHOWN.get(next(iter(kinds)), "STRING")
            what = f"{name} is of the type {shown}, which does not fit {kind}"
            yield Misfit(name, what, f"Declare {name} {better}, and cast in the query.")


def _types(node: Any) -> set[str]:
    """Return the types of a property without null; nothing if they are not stated plainly."""
    if not isinstance(node, dict):
        return set()
    given = node.get("type")
    if given is None:
        parts = [_types(part) for key in ("oneOf", "anyOf") for part in node.get(key, ())]
        nulls = [part for key in ("oneOf", "anyOf") for part in node.get(key, ()) if part == {"type": "null"}]
        return set().union(*parts) if sum(map(bool, parts)) + len(nulls) == len(parts) else set()
    return {part for part in ([given] if isinstance(given, str) else given) if part != "null"}


def schema_of_columns(columns: StructType, name: str) -> Schema:
    """Return the schema of some columns, all of which may be null or missing; nothing else is allowed."""
    members = {field.name: {"oneOf": [{"type": "null"}, _schema(field.dataType)], "default": None} for field in columns}
    whole = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": name,
        "type": "object",
        "additionalProperties": False,
        "properties": members,
    }
    return Schema(json.dumps(whole), KIND)


def _schema(kind: DataType) -> dict[str, Any]:
    """Return the schema of values of a type, as `to_json` writes them."""
    from pyspark.sql import types as T  # noqa: N812, PLC0415 - the customary name; not for those who only plan

    if isinstance(kind, T.StructType):
        return {"type": "object", "properties": {field.name: _nullable(field.dataType) for field in kind}}
    if isinstance(kind, T.ArrayType):
        return {"type": "array", "items": _nullable(kind.elementType)}
    if isinstance(kind, T.MapType):
        return {"type": "object", "additionalProperties": _nullable(kind.valueType)}
    return _plain(kind)


def _plain(kind: DataType) -> dict[str, Any]:
    """Return the schema of a type without parts."""
    from pyspark.sql import types as T  # noqa: N812, PLC0415 - as above

    if isinstance(kind, T.BooleanType):
        return {"type": "boolean"}
    if isinstance(kind, T.IntegralType):
        return {"type": "integer"}
    if isinstance(kind, T.DecimalType):
        return {"type": "number"}
    if isinstance(kind, T.FractionalType):
        return {"type": ["number", "string"]}  # NaN and the infinities are texts
    shape = "date-time" if isinstance(kind, T.TimestampType) else "date" if isinstance(kind, T.DateType) else ""
    return {"type": "string", **({"format": shape} if shape else {})}


def _nullable(kind: DataType) -> dict[str, Any]:
    return {"oneOf": [{"type": "null"}, _schema(kind)]}
