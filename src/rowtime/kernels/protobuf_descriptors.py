"""The descriptors of a message for the libraries that read and write it: Google's package, and ptars.

Both know a field by its number: ``f7``. An enum is its number. Google's package checks texts and required fields of
every syntax, and finds a message among many of a batch. ptars turns that batch into columns; it gets only the wanted
fields, and no groups, which it does not know.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from rowtime.kernels.protobuf_types import TEXTS, Field, Message, Repeats, Wanted

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

ROWS: Final = "f1"  # the field of a batch that has the messages
_FILE: Final = "rowtime.proto"
_MESSAGE: Final = "M0"
_BATCH: Final = "Batch"


def named(number: int) -> str:
    """Return the name of a field in the descriptors."""
    return f"f{number}"


def classes_of(message: Message, *, groups: bool = True) -> tuple[Any, Any]:
    """Return Google's classes for a message and for a batch of messages; ``groups=False``: groups are messages."""
    from google.protobuf import message_factory  # noqa: PLC0415 - an extra

    file = _file(strict=True)
    _Strict(file, groups=groups).message(message)
    single, batch = _described(file)
    return message_factory.GetMessageClass(single), message_factory.GetMessageClass(batch)


def columns_of(message: Message, wanted: Wanted) -> tuple[Any, Any]:
    """Return ptars' handlers for the wanted fields of a message, and for a batch of such messages."""
    file = _file(strict=False)
    _Columns(file).message(message, wanted)
    return _handlers(file)


def frames() -> Any:
    """Return ptars' handler for a batch of messages that are bytes."""
    file = _file(strict=False)
    file.message_type.add(name=_MESSAGE)
    file.message_type.add(name=_BATCH).field.add(name=ROWS, number=1, label="LABEL_REPEATED", type="TYPE_BYTES")
    return _handlers(file)[1]


def fields_in(message: Message) -> Iterator[Field]:
    """Yield the fields of a message, and of all messages inside of it."""
    known, ahead = {message}, [message]
    while ahead:
        for field in ahead.pop().fields:
            yield field
            if field.message is not None and field.message not in known:
                known.add(field.message)
                ahead.append(field.message)


def _file(*, strict: bool) -> FileDescriptorProto:
    from google.protobuf import descriptor_pb2  # noqa: PLC0415 - an extra

    declared = descriptor_pb2.FileDescriptorProto(name=_FILE, syntax="editions" if strict else "proto3")
    if strict:
        declared.edition = descriptor_pb2.EDITION_2023
    return declared


def _described(file: FileDescriptorProto) -> tuple[Any, Any]:
    """Return the descriptors of a message and of a batch."""
    from google.protobuf import descriptor_pool  # noqa: PLC0415 - an extra

    if file.message_type[-1].name != _BATCH:
        batch = file.message_type.add(name=_BATCH).field.add(name=ROWS, number=1, label="LABEL_REPEATED")
        batch.type, batch.type_name = batch.TYPE_MESSAGE, f".{_MESSAGE}"
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return pool.FindMessageTypeByName(_MESSAGE), pool.FindMessageTypeByName(_BATCH)


def _handlers(file: FileDescriptorProto) -> tuple[Any, Any]:
    import ptars  # noqa: PLC0415 - an extra

    single, batch = _described(file)
    pool = ptars.HandlerPool([single.file])
    return pool.get_for_message(single), pool.get_for_message(batch)


class _Strict:
    """Writes messages with all fields, as their schemas declare them."""

    def __init__(self, file: FileDescriptorProto, *, groups: bool) -> None:
        self._file, self._groups = file, groups
        self._names: dict[Message, str] = {}

    def message(self, message: Message) -> str:
        """Add a message with those inside of it; return its name."""
        if message in self._names:
            return self._names[message]
        into = _added(self._file)
        self._names[message] = into.name
        oneofs = _oneofs(message)
        for name in oneofs.values():
            into.oneof_decl.add(name=name)
        for field in message.fields:
            declared = _field(into, field)
            features = declared.options.features
            if field.repeats is Repeats.MAP:
                assert field.message is not None
                for part, one in _entry(into, declared, field.message):
                    self._value(one, part)
                continue
            self._value(declared, field)
            if field.required:
                features.field_presence = features.LEGACY_REQUIRED
            elif field.oneof in oneofs:
                declared.oneof_index = list(oneofs).index(field.oneof)
            elif field.repeats is Repeats.ONCE and field.message is None and not field.presence:
                features.field_presence = features.IMPLICIT
            if _packs(field) and not field.packed:
                features.repeated_field_encoding = features.EXPANDED
        return str(into.name)

    def _value(self, declared: FieldDescriptorProto, field: Field) -> None:
        _typed(declared, field, "" if field.message is None else self.message(field.message))
        if field.kind == "group" and self._groups:
            declared.options.features.message_encoding = declared.options.features.DELIMITED


class _Columns:
    """Writes messages with the wanted fields. The entries of a map are messages, so that -0.0 stays in them."""

    def __init__(self, file: FileDescriptorProto) -> None:
        self._file = file

    def message(self, message: Message, wanted: Wanted, *, entry: bool = False) -> str:
        """Add a message with those inside of it; return its name."""
        into = _added(self._file)
        for field in message.fields:
            inner = wanted.fields.get(field.number)
            if inner is None:
                continue
            declared, below = _field(into, field), field.message
            _typed(
                declared, field, "" if below is None else self.message(below, inner, entry=field.repeats is Repeats.MAP)
            )
            if _packs(field):
                declared.options.packed = field.packed
            elif below is None and field.repeats is Repeats.ONCE and (entry or _shows_zero(field)):
                declared.proto3_optional = True
                declared.oneof_index = len(into.oneof_decl)
                into.oneof_decl.add(name=f"_{declared.name}")
        return str(into.name)


def _shows_zero(field: Field) -> bool:
    """Return whether a field shows that it is set; ptars takes -0.0 for zero unless it does."""
    return field.presence or field.required or field.kind in ("float", "double")


def _packs(field: Field) -> bool:
    return field.repeats is Repeats.MANY and field.message is None and field.kind not in TEXTS


def _oneofs(message: Message) -> dict[int, str]:
    """Return the names of the oneofs that have several members."""
    numbers = [field.oneof for field in message.fields]
    return {number: f"o{number}" for number in sorted({*numbers} - {-1}) if numbers.count(number) > 1}


def _added(file: FileDescriptorProto) -> DescriptorProto:
    return file.message_type.add(name=f"M{len(file.message_type)}")


def _field(into: DescriptorProto, field: Field) -> FieldDescriptorProto:
    label = "LABEL_OPTIONAL" if field.repeats is Repeats.ONCE else "LABEL_REPEATED"
    return into.field.add(name=named(field.number), number=field.number, label=label)


def _entry(
    into: DescriptorProto, declared: FieldDescriptorProto, entry: Message
) -> Iterator[tuple[Field, FieldDescriptorProto]]:
    """Add the message of a map's entries; yield its fields, which have no types yet."""
    inner = into.nested_type.add(name=f"{declared.name.capitalize()}Entry")
    inner.options.map_entry = True
    declared.type, declared.type_name = declared.TYPE_MESSAGE, f".{into.name}.{inner.name}"
    for field, name in zip(entry.fields, ("key", "value"), strict=True):
        yield field, inner.field.add(name=name, number=field.number, label="LABEL_OPTIONAL")


def _typed(declared: FieldDescriptorProto, field: Field, name: str) -> None:
    kind = {"enum": "int32", "group": "message"}.get(field.kind, field.kind)
    declared.type = declared.Type.Value(f"TYPE_{kind.upper()}")
    if name:
        declared.type_name = f".{name}"
