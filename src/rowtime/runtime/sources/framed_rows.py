"""Records that begin with a schema id, as items: each is read with the schema of its id.

The bytes are a zero, the id (four bytes, the greatest first), and the value: Confluent's wire format. The ids in a
range are found before it is read, so that the schemas are known (`runtime.schemas.pinned`); the rest is an expression
of Spark SQL, as in `kafka_rows`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from rowtime.core.columns import SCHEMA_ID
from rowtime.core.log import LOG
from rowtime.operators.rows.calendar import in_calendar
from rowtime.runtime.schemas.avro import END_MARK, MARK, RECORD, Unreadable, decoded, framed, types_of
from rowtime.runtime.schemas.fitting import converted, field_of, misfits
from rowtime.runtime.schemas.json_schema import KIND as JSON
from rowtime.runtime.schemas.protobuf import KIND as PROTOBUF
from rowtime.runtime.schemas.protobuf import compiled
from rowtime.runtime.schemas.protobuf_shape import endless_misfits, shape_of, struct_text
from rowtime.runtime.sources.envelopes import NAMED, OPERATION
from rowtime.runtime.sources.kafka_rows import BOUND_HEADER, Columns, Field, instant, items_of, prepared
from rowtime.runtime.sources.protobuf_rows import Decoding, heads_of, with_decoded

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rowtime.runtime.schemas.registry import Schema

HEAD: Final = 5  # bytes before the value
ID: Final = (
    f"CASE WHEN octet_length({{0}}) >= {HEAD} AND hex(substring({{0}}, 1, 1)) = '00'"
    " THEN CAST(conv(hex(substring({0}, 2, 4)), 16, 10) AS BIGINT) END"
)


@dataclass(frozen=True)
class Reading:
    """How records of one schema are read: its frame, and the types of their fields; no frame if they cannot be read.

    ``decoding``: for Protobuf, where the frame is the name of the message.
    """

    number: int
    frame: str = ""
    types: Mapping[str, str] | None = None
    decoding: Decoding | None = None

    @property
    def record(self) -> str:
        """Return SQL: the record; NULL if the bytes are none."""
        return _column(self.number) + ("" if self.decoding is not None else f".{RECORD}")

    @property
    def fault(self) -> str:
        """Return SQL: whether the value is not one record."""
        broken = f"{self.record} IS NULL"
        if self.decoding is not None:
            return broken
        return f"{broken} OR coalesce({_column(self.number)}.{MARK} <> X'{END_MARK.hex()}', TRUE)"


@dataclass(frozen=True)
class Declared:
    """The records that a stream expects: its columns, and the field for the rowtime, if any.

    ``envelope``: they are changes of a database table; ``kind``: that of the schemas with which they can be read;
    ``message``: in Protobuf the message of each record, empty for the first one of its schema.
    """

    columns: Columns
    rowtime: str | None
    envelope: bool = False
    kind: str = "AVRO"
    message: str = ""


def ids_in(records: DataFrame) -> list[int]:
    """Return the schema ids of records that are not bounds: one job."""
    rows = records.where(f"NOT coalesce(exists(headers, h -> h.key = '{BOUND_HEADER}'), FALSE)")
    ids = rows.select(F.expr(ID.format("value")).alias("id")).where("id IS NOT NULL").distinct().collect()
    return sorted(row["id"] for row in ids)


def reading_of(spark: SparkSession, number: int, schema: Schema | None, declared: Declared, topic: str) -> Reading:
    """Return how records with an id are read; if they cannot be, the log says why, once."""
    why = ""
    if schema is None:
        why = "the schema registry does not know it"
    elif schema.kind != declared.kind:
        why = f"it is a schema of {schema.kind}"
    elif declared.kind == JSON:
        return Reading(number, schema.text)
    else:
        try:
            if declared.kind == PROTOBUF:
                return _protobuf(number, schema, declared)
            frame = framed(schema)
            types = types_of(spark, frame)
            wrong = next(misfits(declared.columns, declared.rowtime, types), None)
            if declared.envelope and types.get(OPERATION) != "STRING":
                why = "it is no envelope of Debezium"
            elif wrong is None:
                return Reading(number, frame, types)
            else:
                why = wrong.what
        except Unreadable as error:
            why = str(error)
    warning = "records of %s with the schema %s are MALFORMED: %s"
    LOG.warning(warning, topic, number, why, extra={"event": "topic"})
    return Reading(number)


def _protobuf(number: int, schema: Schema, declared: Declared) -> Reading:
    """Return how records of a message are read. Raises `Unreadable`."""
    file = compiled(schema)
    name = file.find(declared.message)
    message = file.message(name)
    shape = shape_of(message)
    wrong = next(endless_misfits(declared.columns, shape), None)
    wrong = wrong or next(misfits(declared.columns, declared.rowtime, shape.types), None)
    if wrong is not None:
        raise Unreadable(wrong.what)
    read = shape.only(message, {*(name for name, _ in declared.columns), declared.rowtime or ""})
    heads = heads_of(file.indexes[name])
    decoding = Decoding(number, heads, message, read.wanted, _column(number), struct_text(read.types))
    return Reading(number, name, read.types, decoding)


def _column(number: int) -> str:
    """Return the column of the decoded records of one schema."""
    return f"__d{number}"


def text_behind(readings: Sequence[Reading]) -> str:
    """Return SQL: the text of a record if its schema can be read, else NULL."""
    able = ", ".join(f"{reading.number}L" for reading in readings if reading.frame)
    text = f"try_validate_utf8(CAST(substring(__k.value, {HEAD + 1}) AS STRING))"
    return f"CASE WHEN ({ID.format('__k.value')}) IN ({able}) THEN {text} END" if able else "CAST(NULL AS STRING)"


def framed_items(records: DataFrame, declared: Declared, readings: Sequence[Reading]) -> DataFrame:
    """Return items of records."""
    columns = declared.columns
    frame = prepared(records, texts=False).withColumn(SCHEMA_ID, F.expr(ID.format("__k.value")))
    able = [reading for reading in readings if reading.frame]
    frame = with_decoded(frame, [one.decoding for one in able if one.decoding is not None])
    for one in (one for one in able if one.decoding is None):
        value = F.expr(f"substring(__k.value, {HEAD + 1})")
        frame = frame.withColumn(_column(one.number), F.when(F.col(SCHEMA_ID) == one.number, decoded(value, one.frame)))
    parts = "".join(f" WHEN {SCHEMA_ID} = {one.number} THEN {_record_sql(one, declared)}" for one in able)
    kinds = ", ".join(f"c{number}: {kind}" for number, (_, kind) in enumerate(columns))
    empty = f"CAST(NULL AS STRUCT<{kinds}{', ' * bool(kinds)}t: BIGINT, ok: BOOLEAN>)"
    whole = f"CASE{parts} ELSE {empty} END" if able else empty
    parsed = frame.withColumn("__e", F.expr(whole))
    fields = [Field(name, f"__e.c{number}", f"__e.c{number}") for number, (name, _) in enumerate(columns)]
    return items_of(parsed, fields, ["NOT coalesce(__e.ok, FALSE)"], "timestamp_micros(__e.t)", text=False)


def _record_sql(reading: Reading, declared: Declared) -> str:
    """Return SQL: the columns and the rowtime (µs) of a record of one schema, and whether it was read completely."""
    columns, rowtime = declared.columns, declared.rowtime
    types, record = reading.types or {}, reading.record
    given = field_of(record, rowtime or "")
    kind = types.get(rowtime or "") if rowtime is not None else None
    micros = in_calendar(_micros(given, kind)) if kind is not None else "CAST(NULL AS BIGINT)"
    values, faults = [], [reading.fault]
    if kind is not None:
        faults.append(f"({given} IS NOT NULL AND ({micros}) IS NULL)")
    if declared.envelope:
        faults.append(f"coalesce(NOT {field_of(record, OPERATION)} {NAMED}, TRUE)")
    for number, (name, wanted) in enumerate(columns):
        known_kind, path = types.get(name), field_of(record, name)
        if known_kind is None:
            value = f"CAST(NULL AS {wanted})"
        elif name == rowtime and wanted.strip().upper() == "TIMESTAMP":
            value = f"timestamp_micros({micros})"
        else:
            value = converted(path, known_kind, wanted)
            if value.startswith("try_cast"):
                faults.append(f"({path} IS NOT NULL AND {value} IS NULL)")
        values.append(f"'c{number}', CAST({value} AS {wanted})")
    values += [f"'t', {micros}", f"'ok', NOT ({' OR '.join(faults)})"]
    return f"named_struct({', '.join(values)})"


def _micros(path: str, kind: str) -> str:
    """Return SQL: the µs of a field that gives the rowtime."""
    if kind == "TIMESTAMP":
        return f"unix_micros({path})"
    return f"CAST({path} AS BIGINT)" if kind in ("BIGINT", "INT") else instant(path)
