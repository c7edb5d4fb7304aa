"""Encodes a pump's rows as records with a schema id: chooses the schema, and writes rows with it.

The schema is derived from the columns and registered, or it is the registry's newest one. It is chosen once and stored
in the checkpoint, so that later starts and ticks need no registry.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has no types
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from rowtime.core.errors import Problem, Refused, refuse
from rowtime.core.stores import Place
from rowtime.expr.store_assignment import always_fits
from rowtime.frames.kinds import type_text
from rowtime.operators.contract import quoted
from rowtime.operators.sinks.sink import Sink as SinkNode
from rowtime.plan.bind.sink_options import CHANGE
from rowtime.plan.formats.registry import REGISTERS, RegistryOptions
from rowtime.runtime.schemas.avro import Unreadable, framed, types_of, whole_schema
from rowtime.runtime.schemas.json_schema import KIND as JSON
from rowtime.runtime.schemas.json_schema import json_misfits, schema_of_columns
from rowtime.runtime.schemas.protobuf import KIND as PROTOBUF
from rowtime.runtime.schemas.protobuf import compiled
from rowtime.runtime.schemas.protobuf_text import message_name, proto_of
from rowtime.runtime.schemas.registry import Registry, Schema
from rowtime.runtime.sinks.protobuf_framing import ProtobufFraming, protobuf_misfits
from rowtime.state.files import make_folder, write_over

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType
    from sqlglot import exp

# Spark's default format of a timestamp in JSON has only milliseconds.
JSON_OPTIONS: Final = {
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "ignoreNullFields": "false",
}
CHOSEN: Final = "schema.json"
_ID_BYTES: Final = 4


@dataclass(frozen=True)
class Framing:
    """The schema of records: its id, its text, and in Avro the types of its fields in Spark."""

    number: int
    schema: str
    types: Mapping[str, str]
    kind: str = "AVRO"

    def value(self, columns: Mapping[str, Column]) -> Column:
        """Return columns, by their names, as the bytes of a record."""
        head = F.lit(bytearray(b"\0" + self.number.to_bytes(_ID_BYTES, "big")))
        if self.kind == JSON:
            struct = F.struct(*(column.alias(name) for name, column in columns.items()))
            return F.concat(head, F.to_json(struct, JSON_OPTIONS).cast("binary"))
        from pyspark.sql.avro.functions import to_avro  # noqa: PLC0415 - only with Avro

        members = (column.cast(self.types[name]).alias(name) for name, column in columns.items())
        return F.concat(head, to_avro(F.struct(*members), self.schema))

    def written(self, records: DataFrame) -> DataFrame:
        """Return records as they are written: their values are bytes already."""
        return records


def schema_of(spark: SparkSession, columns: StructType, name: str) -> Schema:
    """Return the schema of some columns, all nullable with the default NULL. Raises ``Refused`` (R549)."""
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 - PySpark has no way to Spark's own schemas
    kind = jvm.org.apache.spark.sql.types.DataType.fromJson(columns.json())
    record = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in name)
    try:
        schema = jvm.org.apache.spark.sql.avro.SchemaConverters.toAvroType(kind, False, f"t_{record}", "rowtime")  # noqa: FBT003 - Java
    except Py4JJavaError as error:
        what = f"Avro has no schema for these columns: {error.java_exception.getMessage()}"
        raise refuse(
            "R549", what, "Give each column a name of letters, digits and _, and a type that Avro has."
        ) from None
    return Schema(json.dumps(_null_first(json.loads(schema.toString()))))


def _null_first(node: Any) -> Any:
    if isinstance(node, list):
        return [_null_first(part) for part in sorted(node, key=lambda one: one != "null")]
    if not isinstance(node, dict):
        return node
    ordered = {key: _null_first(value) if key in ("type", "items", "values") else value for key, value in node.items()}
    if "fields" in ordered:
        ordered["fields"] = [_field(part) for part in ordered["fields"]]
    return ordered


def _field(field: Mapping[str, Any]) -> dict[str, Any]:
    typed = {**field, "type": _null_first(field["type"])}
    return {**typed, "default": None} if isinstance(typed["type"], list) else typed


@dataclass(frozen=True)
class Choice:
    """Chooses the schema of a topic's records, of a ``kind``: AVRO, JSON or PROTOBUF."""

    registry: Registry
    options: RegistryOptions
    topic: str
    kind: str = "AVRO"

    def _own(self, spark: SparkSession, columns: StructType) -> Schema:
        if self.kind == JSON:
            return schema_of_columns(columns, self.topic)
        return schema_of(spark, columns, self.topic)

    def _types(self, spark: SparkSession, schema: Schema) -> Mapping[str, str]:
        """Return the types of the fields in Avro. Also raises `Unreadable` for a schema of another kind."""
        if schema.kind != self.kind:
            raise Unreadable(f"it is one of {schema.kind}")
        return {} if self.kind == JSON else types_of(spark, framed(schema))

    def framing_for(
        self,
        spark: SparkSession,
        columns: StructType,
        required: Sequence[str] | None = None,
        checks: Sequence[exp.Expr] = (),
    ) -> Framing | ProtobufFraming:
        """Choose it; raises ``Refused`` (R549) if the registry does not accept it, or if it does not fit the columns.

        ``required``: the columns that are never NULL, if that is to be checked; ``checks``: the conditions on them.
        """
        if self.kind == PROTOBUF:
            return self._message(columns, required, checks)[0]
        own, subject = self._own(spark, columns), self.options.subject_of(self.topic)
        schema = own if self.options.registers else self.registry.latest(subject) or own
        number = self.registry.id_of(subject, schema, register=self.options.registers)
        try:
            types = self._types(spark, schema)
        except Unreadable as error:
            raise self._unusable(subject, error) from None
        if self.kind == JSON:
            given = [(field.name, type_text(field.dataType)) for field in columns]
            wrong = [] if schema is own else list(json_misfits(given, None, schema))
            _refuse_misfits(subject, [(misfit.what, misfit.hint) for misfit in wrong])
            return Framing(number, schema.text, types, JSON)
        if schema is not own:
            kinds = {name.name: text for name, text in zip(columns, types_of(spark, framed(own)).values(), strict=True)}
            _refuse_misfits(subject, list(_misfits(kinds, types, whole_schema(schema), required)))
        return Framing(number, json.dumps(whole_schema(schema)), types)

    def _unusable(self, subject: str, error: Unreadable) -> Exception:
        what = f"the schema of {subject} in {self.options.called} cannot be used for writing: {error}"
        hint = f"Set {REGISTERS} 'true', with another subject: schema.registry.subject '…'."
        return refuse("R549", what, hint)

    def _message(
        self, columns: StructType, required: Sequence[str] | None, checks: Sequence[exp.Expr] = ()
    ) -> tuple[ProtobufFraming, Schema]:
        """Return a message of the newest schema, or one of the columns, with the numbers of the newest schema."""
        subject, name = self.options.subject_of(self.topic), self.options.message
        newest = self.registry.latest(subject)
        try:
            if newest is not None and not self.options.registers:
                number = self.registry.id_of(subject, newest, register=False)
                framing = ProtobufFraming.of(number, newest, name, columns)
                _refuse_misfits(subject, list(protobuf_misfits(framing, required, checks)))
                return framing, newest
            before = None
            if newest is not None and newest.kind == PROTOBUF:
                file = compiled(newest)
                before = file.message(file.find(name)) if not name or name in file.indexes else None
            own = Schema(proto_of(columns, name or message_name(self.topic), before), PROTOBUF)
            compiled(own)  # it refuses two names that are equal in JSON
            number = self.registry.id_of(subject, own, register=self.options.registers)
            return ProtobufFraming.of(number, own, name, columns), own
        except Unreadable as error:
            raise self._unusable(subject, error) from None

    def _kept_message(self, columns: StructType, folder: Place) -> ProtobufFraming:
        """Do the same as `kept`."""
        key = [columns.json(), self.options.registers, self.options.message]
        file = folder / CHOSEN
        if file.exists():
            stored = json.loads(file.read_text())
            if stored["of"] == key:
                return ProtobufFraming.of(stored["id"], Schema.of_json(stored["schema"]), self.options.message, columns)
        framing, schema = self._message(columns, None)
        make_folder(folder)
        write_over(file, json.dumps({"of": key, "id": framing.number, "schema": schema.as_json()}).encode())
        return framing

    def kept(self, spark: SparkSession, columns: StructType, folder: Place) -> Framing | ProtobufFraming:
        """Return the choice for these columns stored in ``folder``; otherwise choose now, and store it."""
        if self.kind == PROTOBUF:
            return self._kept_message(columns, folder)
        key = [self._own(spark, columns).text, self.options.registers]
        file = folder / CHOSEN
        if file.exists():
            stored = json.loads(file.read_text())
            if stored["of"] == key:
                return Framing(stored["id"], stored["schema"], stored["types"], self.kind)
        framing = self.framing_for(spark, columns)
        assert isinstance(framing, Framing)
        make_folder(folder)
        content = {"of": key, "id": framing.number, "schema": framing.schema, "types": dict(framing.types)}
        write_over(file, json.dumps(content).encode())
        return framing


def _refuse_misfits(subject: str, wrong: Sequence[tuple[str, str]]) -> None:
    if wrong:
        raise Refused(*(Problem("R549", f"in the schema of {subject} {what}", hint=hint) for what, hint in wrong))


def _misfits(
    given: Mapping[str, str], types: Mapping[str, str], schema: Any, required: Sequence[str] | None
) -> Iterator[tuple[str, str]]:
    """Yield the columns that a schema of others does not accept, and the reasons."""
    nullable = {
        field_of["name"]
        for field_of in schema["fields"]
        if isinstance(field_of["type"], list) and "null" in field_of["type"]
    }
    for name, kind in given.items():
        if name not in types:
            yield f"there is no field {name}", f"Leave the column out; there are {', '.join(types)}."
        elif not always_fits(kind, types[name]):
            yield (
                f"the field {name} is {types[name]}, which does not take every {kind}",
                f"Declare {name} {types[name]}.",
            )
        elif name not in nullable and required is not None and name not in required:
            yield f"the field {name} is never null", f"Declare {name} NOT NULL."
    for name in types:
        if name not in given and name not in nullable:
            yield (
                f"the field {name} is never null, and no column has it",
                f"Declare a column {name} {types[name]} NOT NULL.",
            )


def record_of(node: SinkNode, types: Mapping[str, DataType]) -> StructType:
    """Return the columns of the records that a sink writes; ``types`` are those of its rows."""
    from pyspark.sql.types import StructType, TimestampType  # noqa: PLC0415 - not for those who only plan

    names = [name for name in node.emits().names if name in types]
    if dict(node.options).get("mode", "").lower() == "changes":
        names = [name for name in names if name != CHANGE]
    record = StructType()
    for name in names:
        record = record.add(name, types[name])
    return record.add(node.rowtime, TimestampType()) if node.rowtime and node.rowtime not in names else record


def row_columns(names: Sequence[str], rowtime: Column | None, rowtime_name: str | None) -> dict[str, Column]:
    """Return the members of a record: the columns, then the rowtime under its name."""
    members = {name: F.col(quoted(name)) for name in names}
    if rowtime is not None and rowtime_name is not None and rowtime_name not in members:
        members[rowtime_name] = rowtime
    return members
