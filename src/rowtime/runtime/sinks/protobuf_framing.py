"""Encodes a pump's rows as Protobuf after a schema id: which fields the columns go to, and how."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.types import BinaryType, StructField, StructType
from sqlglot import exp

from rowtime.expr.store_assignment import always_fits, is_nested, type_of
from rowtime.frames.kinds import type_text
from rowtime.kernels.protobuf_encoding import Writer
from rowtime.kernels.protobuf_types import Field, Message, Repeats
from rowtime.operators.contract import quoted
from rowtime.plan.bind.declared import declared
from rowtime.runtime.schemas.fitting import converted, fits
from rowtime.runtime.schemas.protobuf import compiled
from rowtime.runtime.schemas.protobuf_shape import shape_of
from rowtime.runtime.schemas.registry import Schema
from rowtime.runtime.sources.protobuf_rows import heads_of
from rowtime.sql.generate import to_rowtime
from rowtime.sql.script import parse_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

UNWRITTEN: Final = ("enum", "group", "uint32", "fixed32", "uint64", "fixed64")
"""Kinds of fields that accept only some values of each possible column type."""
_LARGEST: Final = dict.fromkeys(("uint32", "fixed32"), 2**32 - 1) | dict.fromkeys(("uint64", "fixed64"), 2**64 - 1)
_OF_TYPE: Final = {"TINYINT": 2**7 - 1, "SMALLINT": 2**15 - 1, "INT": 2**31 - 1, "BIGINT": 2**63 - 1}
VALUE: Final = "value"  # the column of a record's value
_ID_BYTES: Final = 4


@dataclass(frozen=True)
class ProtobufFraming:
    """The schema of records: its id, and the message of each record. ``given``: the types of the columns.

    ``schema`` and ``types`` are stored in a checkpoint.
    """

    number: int
    schema: str
    types: Mapping[str, str]
    head: bytes
    message: Message
    given: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, number: int, schema: Schema, name: str, columns: StructType) -> ProtobufFraming:
        """Return the framing for a message of a schema. Raises `Unreadable`."""
        file = compiled(schema)
        full = file.find(name)
        message = file.message(full)
        kinds = ((column.name, type_text(column.dataType)) for column in columns)
        given = {column: kind if "<" in kind else kind.upper() for column, kind in kinds}
        types = dict(shape_of(message).types)
        head = b"\0" + number.to_bytes(_ID_BYTES, "big") + heads_of(file.indexes[full])[0]
        return cls(number, schema.text, types, head, message, given)

    def value(self, columns: Mapping[str, Column]) -> Column:
        """Return columns, by their names, as a struct, which `written` encodes."""
        members = []
        for name, column in columns.items():
            kind = self.types[name]
            nested = is_nested(kind) and F.expr(converted(quoted(name), self.given[name], kind))
            members.append((nested if isinstance(nested, Column) else column.cast(kind)).alias(name))
        return F.struct(*members)

    def written(self, records: DataFrame) -> DataFrame:
        """Return records with their values as bytes."""
        fields = [
            StructField(field.name, BinaryType()) if field.name == VALUE else field for field in records.schema.fields
        ]
        return records.mapInArrow(_Encoder(self.head, self.message), StructType(fields))


@dataclass(frozen=True)
class _Encoder:
    """Runs in Spark's workers."""

    head: bytes
    message: Message

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        writer = None
        for batch in batches:
            place = batch.schema.get_field_index(VALUE)
            rows, arrays = batch.column(place), list(batch.columns)
            writer = writer or Writer(self.message, rows.type)
            bodies = writer.write(rows)
            framed = pc.binary_join_element_wise(pa.scalar(self.head, pa.binary()), bodies, pa.scalar(b"", pa.binary()))
            arrays[place] = pc.if_else(rows.is_null(), pa.scalar(None, pa.binary()), framed)
            yield pa.RecordBatch.from_arrays(arrays, batch.schema.names)


def protobuf_misfits(
    framing: ProtobufFraming, required: Sequence[str] | None, checks: Sequence[exp.Expr]
) -> Iterator[tuple[str, str]]:
    """Yield the columns that a message of others does not accept, and the fixes.

    ``checks``: the conditions on the columns, which limit their values to those of an enum or an unsigned number.
    """
    fields = {field.name: field for field in framing.message.fields}
    for name, kind in framing.given.items():
        field, given = fields.get(name), framing.types.get(name)
        if field is None:
            yield f"there is no field {name}", f"Leave the column out; there are {', '.join(fields)}."
        elif given is None:
            yield f"the field {name} is a message that contains itself, or one without fields", "Leave the column out."
        elif not _is_limited(field) and (odd := next(_unwritten(field), None)) is not None:
            yield f"the field {name} is {odd}, of which no type has just the values", "Leave the column out."
        elif not _takes(kind, given):
            hint = f"Declare {name} {given}."
            yield f"the field {name} is {given}, which does not take every {kind}", hint
        elif _has_zero(field) and required is not None and name not in required:
            yield f"the field {name} is never null, as NULL would be read as zero", f"Declare {name} NOT NULL."
        elif _is_limited(field) and required is not None:
            yield from _beyond(field, kind, checks)
    for name, field in fields.items():
        if name not in framing.given and field.required:
            hint = f"Declare a column {name} {framing.types.get(name, '')} NOT NULL."
            yield f"the field {name} is never null, and no column has it", hint


def _is_limited(field: Field) -> bool:
    """Return True if a CHECK can limit a column to the values of the field."""
    return field.repeats is Repeats.ONCE and (bool(field.names) or field.kind in _LARGEST)


def _beyond(field: Field, kind: str, checks: Sequence[exp.Expr]) -> Iterator[tuple[str, str]]:
    """Yield the values that a column may have beside those of the field, and the CHECK that excludes them."""
    own = [check for check in checks if {column.name for column in check.find_all(exp.Column)} == {field.name}]
    if field.names:
        names = list(dict.fromkeys(field.names.values()))
        if not any(values and values <= set(names) for values in map(_listed, own)):
            listed = ", ".join(f"'{name}'" for name in names)
            hint = f"Declare {field.name} STRING CHECK ({field.name} IN ({listed}))."
            yield f"the field {field.name} is an enum, and the column may have other values", hint
        return
    fact = declared(
        parse_column(" ".join([quoted(field.name), kind, *(f"CHECK ({to_rowtime(field)})" for field in own)]))
    )
    largest, most = _LARGEST[field.kind], _OF_TYPE.get(kind)
    limits = [most if fact.high is None else fact.high, *([] if most is None else [most])]
    high = min((limit for limit in limits if limit is not None), default=None)
    if fact.low is None or fact.low < 0 or high is None or high > largest:
        upper = "" if most is not None and most <= largest else f" AND {field.name} <= {largest}"
        hint = f"Declare {field.name} {kind} CHECK ({field.name} >= 0{upper})."
        yield f"the field {field.name} is of the kind {field.kind}, and the column may have other values", hint


def _listed(check: exp.Expr) -> set[str]:
    """Return the texts that a condition on a column allows; none if it is not a list of texts."""
    test = check.unnest()
    if isinstance(test, exp.In) and isinstance(test.this, exp.Column):
        values = test.expressions
    elif isinstance(test, exp.EQ) and isinstance(test.this, exp.Column):
        values = [test.expression]
    else:
        return set()
    plain = all(isinstance(value, exp.Literal) and value.is_string for value in values)
    return {value.name for value in values} if plain else set()


def _has_zero(field: Field) -> bool:
    return field.repeats is Repeats.ONCE and (field.required or not field.presence)


def _takes(kind: str, given: str) -> bool:
    """Return whether a field accepts every value of a column; struct members by name."""
    if not is_nested(kind) and not is_nested(given):
        return always_fits(kind, given)
    column_type, field_type = type_of(kind), type_of(given)
    return (
        column_type is not None
        and field_type is not None
        and _has_members(column_type, field_type)
        and fits(kind, given)
    )


def _has_members(column_type: exp.DataType, field_type: exp.DataType) -> bool:
    """Return whether all members of a struct are in another one, also nested ones."""
    if column_type.this is not field_type.this:
        return False
    if column_type.this is exp.DType.STRUCT:
        kinds = {part.name: part.args["kind"] for part in field_type.expressions}
        return all(
            part.name in kinds and _has_members_if_nested(part.args["kind"], kinds[part.name])
            for part in column_type.expressions
        )
    return all(
        _has_members_if_nested(*pair) for pair in zip(column_type.expressions, field_type.expressions, strict=False)
    )


def _has_members_if_nested(column_type: exp.DataType, field_type: exp.DataType) -> bool:
    nested = (exp.DType.ARRAY, exp.DType.MAP, exp.DType.STRUCT)
    return column_type.this not in nested or _has_members(column_type, field_type)


def _unwritten(field: Field, above: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the parts of a field, or of its message, that are not written."""
    if field.kind in UNWRITTEN:
        yield f"of the kind {field.kind}"
    message = field.message
    if message is not None and message.name not in above:
        for part in message.fields:
            yield from _unwritten(part, (*above, message.name))
