"""Avro: a registry's schema in the form for Spark's reader, and the resulting types.

Spark decodes (`docs/design/schema-registry.md` says why). It decodes a frame of two fields: the record, and a mark that
is appended to its bytes. Avro bytes have no length, so a record that is cut off, or followed by other bytes, would pass
for another; in the frame the mark is then not in its place.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]  # py4j has no types
from pyspark.errors import PySparkException
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from rowtime.core.errors import Failure, Problem
from rowtime.frames.kinds import type_text
from rowtime.runtime.schemas.registry import Schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORD, MARK = "v", "m"  # the fields of the frame
END_MARK: Final = b"rowtime\xff\xfe\x00end!!"
_NAMED: Final = ("record", "error", "enum", "fixed")
_CLASS: Final = "org/apache/spark/sql/avro/AvroFileFormat.class"


class Unreadable(Exception):
    """A schema with which no record can be read, in words."""


def loaded(spark: SparkSession) -> None:
    """Raise ``Failure`` (R502) if the session was started without Spark's Avro reader."""
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 - PySpark has no public way to ask for a class
    loader = jvm.Thread.currentThread().getContextClassLoader()
    if loader.getResource(_CLASS) is None:
        hint = "Start the session with spark.jars set to [*kafka_jars(), *avro_jars()] of rowtime.runtime.jars."
        raise Failure(Problem("R502", "Spark's reader of Avro (spark-avro) is not on its class path", hint=hint))


def framed(schema: Schema) -> str:
    """Return the schema of the frame around a record. Raises `Unreadable`."""
    whole = whole_schema(schema)
    if not isinstance(whole, dict) or whole.get("type") != "record":
        kind = whole.get("type") if isinstance(whole, dict) else "a union" if isinstance(whole, list) else whole
        raise Unreadable(f"a record is expected, and the schema is {kind}")
    mark = {"type": "fixed", "name": "rowtime_mark", "size": len(END_MARK)}
    fields = [{"name": RECORD, "type": whole}, {"name": MARK, "type": mark}]
    return json.dumps({"type": "record", "name": "rowtime_frame", "fields": fields})


def whole_schema(schema: Schema) -> Any:
    """Return the schema with the schemas that it references, each at its first use. Raises `Unreadable`."""
    try:
        named = {name: json.loads(text) for name, text in schema.references}
        content = json.loads(schema.text)
    except ValueError:
        raise Unreadable("the schema is not JSON") from None
    return _inlined(content, named, "")


def _inlined(node: Any, named: dict[str, Any], space: str) -> Any:
    if isinstance(node, str):
        full = node if "." in node or not space else f"{space}.{node}"
        name = next((part for part in (full, node) if part in named), None)
        return node if name is None else _inlined(named.pop(name), named, "")
    if isinstance(node, list):
        return [_inlined(part, named, space) for part in node]
    if not isinstance(node, dict):
        return node
    if node.get("type") in _NAMED:
        full = str(node.get("name", ""))
        space = full.rpartition(".")[0] if "." in full else node.get("namespace", space)
    inner = {"type", "items", "values"} - ({"type"} if node.get("type") in _NAMED else set())
    inlined = {key: _inlined(value, named, space) if key in inner else value for key, value in node.items()}
    if isinstance(fields := inlined.get("fields"), list):
        inlined["fields"] = [{**part, "type": _inlined(part["type"], named, space)} for part in fields]
    return inlined


def decoded(value: Column, frame: str) -> Column:
    """Return the frame of bytes; its fields are NULL if the bytes are no such record."""
    from pyspark.sql.avro.functions import from_avro  # noqa: PLC0415 - only with Avro

    return from_avro(F.concat(value, F.lit(bytearray(END_MARK))), frame, {"mode": "PERMISSIVE"})


def types_of(spark: SparkSession, frame: str) -> dict[str, str]:
    """Return the fields of a record with their types, as Spark reads them. Raises `Unreadable`."""
    try:
        shown = spark.range(0).select(decoded(F.lit(None).cast("binary"), frame).alias("e")).schema
    except (PySparkException, Py4JError) as error:
        raise Unreadable(_message(error)) from error
    record: Any = shown["e"].dataType
    record = record[RECORD].dataType
    return {field.name: _text(type_text(field.dataType)) for field in record.fields}


def _text(kind: str) -> str:
    """Return a type as people write it; names of nested fields stay."""
    return kind if "<" in kind else kind.upper()


def _message(error: Exception) -> str:
    """Return the message of the innermost exception, on one line."""
    if isinstance(error, Py4JJavaError):
        inner = error.java_exception
        while inner.getCause() is not None:
            inner = inner.getCause()
        return f"Spark cannot read it: {inner.getMessage()}".splitlines()[0]
    return f"Spark cannot read it: {error}".splitlines()[0]
