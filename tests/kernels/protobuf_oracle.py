"""Protobuf read by Google's own package: random schemas and messages, and the values of their bytes."""

from __future__ import annotations

import itertools
import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, duration_pb2, message_factory, timestamp_pb2, wrappers_pb2
from google.protobuf.message import DecodeError

from rowtime.kernels.protobuf_types import Form, Message, Repeats, Wanted
from rowtime.runtime.schemas.protobuf import File

F = descriptor_pb2.FieldDescriptorProto
SCALARS = [
    F.TYPE_DOUBLE, F.TYPE_FLOAT, F.TYPE_INT64, F.TYPE_UINT64, F.TYPE_INT32, F.TYPE_FIXED64, F.TYPE_FIXED32,
    F.TYPE_BOOL, F.TYPE_STRING, F.TYPE_BYTES, F.TYPE_UINT32, F.TYPE_SFIXED32, F.TYPE_SFIXED64, F.TYPE_SINT32,
    F.TYPE_SINT64,
]  # fmt: skip
KEYS = [one for one in SCALARS if one not in (F.TYPE_DOUBLE, F.TYPE_FLOAT, F.TYPE_BYTES)]
KNOWN = ["Timestamp", "Duration", "Int32Value", "UInt64Value", "StringValue", "BoolValue", "BytesValue", "DoubleValue"]
WIRES = {
    **dict.fromkeys(("int32", "int64", "uint32", "uint64", "sint32", "sint64", "bool", "enum"), 0),
    **dict.fromkeys(("fixed64", "sfixed64", "double"), 1),
    **dict.fromkeys(("string", "bytes", "message"), 2),
    "group": 3,
    **dict.fromkeys(("fixed32", "sfixed32", "float"), 5),
}
REFUSED = object()
OTHER = object()  # Google's package hides the unknown numbers of closed enums, which rowtime shows


def schema(random: Random) -> descriptor_pb2.FileDescriptorProto:
    """A file with a message M and some others."""
    file = descriptor_pb2.FileDescriptorProto(
        name="m.proto", package="t", syntax=random.choice(["proto2", "proto3"]),
        dependency=[f"google/protobuf/{name}.proto" for name in ("timestamp", "duration", "wrappers")],
    )  # fmt: skip
    enum = file.enum_type.add(name="E")
    for name, number in [("A", 0), ("B", 1), ("C", -7), ("D", 300)]:
        enum.value.add(name=name, number=number)
    _message(random, file, file.message_type.add(name="M"), 2)
    return file


def _message(random: Random, file: Any, message: Any, depth: int) -> None:
    numbers = random.sample([1, 2, 3, 4, 5, 15, 16, 17, 2047, 2048, 536870911], random.randint(1, 7))
    if random.random() < 0.5:
        message.oneof_decl.add(name="choice")
    for index, number in enumerate(numbers):
        one = message.field.add(name=f"f{index}", number=number, label=F.LABEL_OPTIONAL)
        _typed(random, file, message, one, depth)
        if one.label == F.LABEL_REPEATED:
            if one.type not in (F.TYPE_STRING, F.TYPE_BYTES, F.TYPE_MESSAGE, F.TYPE_GROUP) and random.random() < 0.5:
                one.options.packed = random.random() < 0.5
            continue
        if message.oneof_decl and random.random() < 0.5:
            one.oneof_index = 0
        elif file.syntax == "proto2":
            one.label = F.LABEL_REQUIRED if random.random() < 0.15 else F.LABEL_OPTIONAL
            if random.random() < 0.3 and one.type in (F.TYPE_INT32, F.TYPE_STRING, F.TYPE_SINT64, F.TYPE_FIXED32):
                one.default_value = "7"
        elif random.random() < 0.3:
            one.proto3_optional = True
    if message.oneof_decl and not any(one.HasField("oneof_index") for one in message.field):
        del message.oneof_decl[:]
    for one in message.field:
        if one.proto3_optional:
            one.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{one.name}")


def _typed(random: Random, file: Any, message: Any, one: Any, depth: int) -> None:
    what = random.choice(
        ["scalar"] * 5 + ["enum", "known", "message", "map", "self"] + ["group"] * (file.syntax == "proto2")
    )
    if what != "map" and random.random() < 0.35:
        one.label = F.LABEL_REPEATED
    inner = f"{message.name}_{one.number}"
    if what in ("message", "map", "group") and not depth:
        what = "scalar"
    if what == "scalar":
        one.type = random.choice(SCALARS)
    elif what == "enum":
        one.type, one.type_name = F.TYPE_ENUM, ".t.E"
    elif what == "known":
        one.type, one.type_name = F.TYPE_MESSAGE, f".google.protobuf.{random.choice(KNOWN)}"
    elif what == "self":
        one.type, one.type_name = F.TYPE_MESSAGE, ".t.M"
    elif what in ("message", "group"):
        _message(random, file, file.message_type.add(name=inner), depth - 1)
        one.type, one.type_name = (F.TYPE_MESSAGE if what == "message" else F.TYPE_GROUP), f".t.{inner}"
        if what == "group":  # its message has the name of the field
            one.name = inner.lower()
    else:
        _map(random, file, message, one, depth)


def _map(random: Random, file: Any, message: Any, one: Any, depth: int) -> None:
    name = f"F{one.name[1:]}Entry"
    entry = message.nested_type.add(name=name)
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=F.LABEL_OPTIONAL, type=random.choice(KEYS))
    value = entry.field.add(name="value", number=2, label=F.LABEL_OPTIONAL)
    kind = random.choice(["scalar", "enum", "known", "message"])
    if kind == "scalar":
        value.type = random.choice(SCALARS)
    elif kind == "enum":
        value.type, value.type_name = F.TYPE_ENUM, ".t.E"
    elif kind == "known":
        value.type, value.type_name = F.TYPE_MESSAGE, f".google.protobuf.{random.choice(KNOWN)}"
    else:
        inner = f"{message.name}V{one.number}"
        _message(random, file, file.message_type.add(name=inner), depth - 1)
        value.type, value.type_name = F.TYPE_MESSAGE, f".t.{inner}"
    above = message.name
    one.label, one.type, one.type_name = F.LABEL_REPEATED, F.TYPE_MESSAGE, f".t.{above}.{name}"


def variant(random: Random, file: descriptor_pb2.FileDescriptorProto) -> descriptor_pb2.FileDescriptorProto:
    """The same schema with fields that are packed differently, missing or added, as in another version."""
    made = descriptor_pb2.FileDescriptorProto.FromString(file.SerializeToString())
    for message in made.message_type:
        for one in message.field:
            if one.label == F.LABEL_REQUIRED:
                one.label = F.LABEL_OPTIONAL
            if one.options.HasField("packed"):
                one.options.packed = not one.options.packed
            if one.type == F.TYPE_ENUM and random.random() < 0.3:
                one.type = F.TYPE_INT32
                one.ClearField("type_name")
        for number in (6, 99):
            added = message.field.add(name=f"more{number}", number=number, label=F.LABEL_REPEATED)
            added.type = random.choice(SCALARS)
        if made.syntax == "proto2":
            message.field.add(
                name="grouped", number=98, label=F.LABEL_REPEATED, type=F.TYPE_GROUP, type_name=".t.Grouped"
            )
    if made.syntax == "proto2":
        _message(random, made, made.message_type.add(name="Grouped"), 0)
        for one in made.message_type[-1].field:
            one.name = f"g_{one.name}"
    return made


def pool_of(file: descriptor_pb2.FileDescriptorProto) -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.DescriptorPool()
    for known in (timestamp_pb2, duration_pb2, wrappers_pb2):
        pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(file.SerializeToString())
    return pool


def ours(file: descriptor_pb2.FileDescriptorProto) -> tuple[Message, Any]:
    """The message M for rowtime and for Google's package."""
    found = pool_of(file).FindFileByName("m.proto")
    return File(found, file).message("t.M"), message_factory.GetMessageClass(found.message_types_by_name["M"])


def theirs(file: descriptor_pb2.FileDescriptorProto) -> Any:
    return message_factory.GetMessageClass(pool_of(file).FindMessageTypeByName("t.M"))


# -- messages ---------------------------------------------------------------------------


def fill(random: Random, message: Any, depth: int = 3) -> Any:
    """Random values for some of a message's fields."""
    for one in message.DESCRIPTOR.fields:
        if random.random() < 0.35:
            continue
        if one.message_type is not None and one.message_type.GetOptions().map_entry:
            _fill_map(random, getattr(message, one.name), one.message_type, depth)
        elif one.is_repeated:
            many = getattr(message, one.name)
            for _ in range(random.choice([0, 1, 2, 3, 20])):
                if one.message_type is not None:
                    if depth > 0:
                        fill(random, many.add(), depth - 2)
                    continue
                many.append(_value(random, one))
        elif one.message_type is not None:
            if depth > 0:
                inner = getattr(message, one.name)
                inner.SetInParent()
                fill(random, inner, depth - 1)
        else:
            setattr(message, one.name, _value(random, one))
    if message.DESCRIPTOR.full_name in ("google.protobuf.Timestamp", "google.protobuf.Duration"):
        message.seconds %= random.choice([300_000_000_000, 1000])
        message.nanos %= 1_000_000_000
    return message


def _fill_map(random: Random, found: Any, entry: Any, depth: int) -> None:
    key, value = entry.fields_by_name["key"], entry.fields_by_name["value"]
    for _ in range(random.choice([0, 1, 3])):
        name = _value(random, key)
        if value.message_type is not None:
            fill(random, found[name], max(0, depth - 2))
        else:
            found[name] = _value(random, value)


def _value(random: Random, one: Any) -> Any:  # noqa: PLR0911 - a type each
    bits = random.choice([1, 7, 8, 14, 21, 31, 32, 35, 50, 62, 63, 64])
    number = random.getrandbits(bits)
    match one.type:
        case F.TYPE_STRING:
            return "".join(random.choices(["a", "é", "語", "🙂", "\0", "xyz" * 9], k=random.choice([0, 1, 5])))
        case F.TYPE_BYTES:
            return random.randbytes(random.choice([0, 1, 300]))
        case F.TYPE_DOUBLE | F.TYPE_FLOAT:
            return random.choice([0.0, -0.0, 1.5, math.inf, -2.25e10, math.nan])
        case F.TYPE_BOOL:
            return random.random() < 0.5
        case F.TYPE_ENUM:
            return random.choice([0, 1, -7, 300])
        case F.TYPE_UINT64 | F.TYPE_FIXED64:
            return number
        case F.TYPE_UINT32 | F.TYPE_FIXED32:
            return number & 0xFFFFFFFF
        case F.TYPE_INT64 | F.TYPE_SINT64 | F.TYPE_SFIXED64:
            return (number ^ 1 << 63) - (1 << 63) if bits == 64 else number * random.choice([1, -1])
    return (number & 0x7FFFFFFF) * random.choice([1, -1])


def mangled(random: Random, data: bytes) -> bytes:
    """Mostly bytes with an error in them."""
    for _ in range(random.choice([1, 1, 2, 5])):
        at = random.randrange(len(data) + 1)
        match random.randrange(5):
            case 0:
                data = data[:at]
            case 1:
                data = data[:at] + data[at + random.choice([1, 3]) :]
            case 2:
                data = data[:at] + random.randbytes(random.choice([1, 2, 12])) + data[at:]
            case 3 if at < len(data):
                data = data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]
            case _:
                some = random.choice(
                    [b"\x80" * 9, b"\xff" * 10, b"\x00", b"\x07", b"\x0b", b"\x0c", b"\xff\xff\xff\xff\x0f"]
                )
                data = data[:at] + some + data[at:]
    return data


# -- expected values --------------------------------------------------------------------


def expected(made: Any, message: Message, wanted: Wanted, data: bytes) -> Any:
    """The values that rowtime reads from bytes; `REFUSED` if malformed, `OTHER` if Google's package cannot tell."""
    try:
        found = made.FromString(data)
    except DecodeError:
        return REFUSED
    try:
        looks = {_odd(data, message, wires=False), _odd(found.SerializePartialToString(), message)}
        odd = True if True in looks else None if None in looks else False
        if odd or (odd is not None and not found.IsInitialized()):
            return REFUSED
        value = _struct(found, message, wanted)
    except _Refused:
        return REFUSED
    return OTHER if odd is None else value


class _Refused(Exception):
    pass


def _struct(found: Any, message: Message, wanted: Wanted) -> dict[str, Any]:
    made = {}
    for one in message.fields:
        if one.number not in wanted.fields:
            continue
        given, inner = getattr(found, one.name), wanted.fields[one.number]
        if one.repeats is Repeats.MAP:
            key, value = one.message.fields
            pairs = [
                (_plain(name, key, inner.fields[1]), _plain(given[name], value, inner.fields[2])) for name in given
            ]
            made[one.name] = sorted(pairs, key=lambda pair: repr(pair[0]))
        elif one.repeats is Repeats.MANY:
            made[one.name] = [_plain(element, one, inner) for element in given]
        else:
            there = not one.presence or found.HasField(one.name) or one.default is not None
            made[one.name] = _plain(given, one, inner) if there else None
    return made


def _plain(given: Any, one: Any, wanted: Wanted) -> Any:
    message = one.message
    if message is None:
        if one.kind == "enum":
            return one.names.get(given, str(given))
        return Decimal(given) if one.kind in ("uint64", "fixed64") else given
    if message.form is Form.WRAPPER:
        return _plain(given.value, message.fields[0], wanted)
    if message.form is Form.STRUCT:
        return _struct(given, message, wanted)
    seconds, nanos = given.seconds, given.nanos
    if message.form is Form.TIMESTAMP:
        if not (-62135596800 <= seconds <= 253402300799 and 0 <= nanos < 1_000_000_000):
            raise _Refused
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds, microseconds=nanos // 1000)
    if abs(seconds) > 315576000000 or abs(nanos) >= 1_000_000_000 or seconds * nanos < 0:
        raise _Refused
    return timedelta(seconds=seconds, microseconds=int(math.copysign(abs(nanos) // 1000, nanos)))


def _odd(data: bytes, message: Message, *, entry: bool = False, wires: bool = True) -> bool | None:
    """True if a known field has another wire type or is not UTF-8; None if Google's package hides some fields.

    Other wire types are found in what Google's package writes again: only there all values count.
    """
    known, at, found = {one.number: one for one in message.fields}, 0, False
    while at < len(data):
        tag, at = _varint(data, at)
        start = at
        value, at = _skipped(data, at, tag)
        one = known.get(tag >> 3)
        if one is None:
            found = None if entry else found  # Google's package drops an entry of a map that has an unknown field
            continue
        packs = one.repeats is Repeats.MANY and one.kind not in ("string", "bytes", "message", "group")
        if tag & 7 != WIRES[one.kind] and not (packs and tag & 7 == 2):
            if wires:
                return True
            continue
        if one.kind == "string" and value.decode(errors="replace").encode() != value:
            # fields that are invisible because another one follows, or because in proto2 nothing reads them
            return True
        if one.kind == "enum":
            numbers = [value]
            if tag & 7 == 2:
                body, place, numbers = value, 0, []
                while place < len(body):
                    number, place = _varint(body, place)
                    numbers.append(number)
            numbers = [(number & 0xFFFFFFFF ^ 1 << 31) - (1 << 31) for number in numbers]
            if any(number not in one.names for number in numbers):
                found = None
        if one.message is not None:
            below = _odd(
                data[start : at - len(_tag(tag + 1))] if tag & 7 == 3 else value,
                one.message,
                entry=one.repeats is Repeats.MAP,
                wires=wires,
            )
            if below:
                return True
            found = None if below is None else found
    return found


def _tag(tag: int) -> bytes:
    out = b""
    while tag > 0x7F:
        out, tag = out + bytes([tag & 0x7F | 0x80]), tag >> 7
    return out + bytes([tag])


def _skipped(data: bytes, at: int, tag: int) -> tuple[Any, int]:
    match tag & 7:
        case 0:
            return _varint(data, at)
        case 1:
            return None, at + 8
        case 5:
            return None, at + 4
        case 2:
            size, at = _varint(data, at)
            return data[at : at + size], at + size
    while True:
        inner, at = _varint(data, at)
        if inner & 7 == 4:
            return None, at
        _, at = _skipped(data, at, inner)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in itertools.count():
        value |= (data[at + place] & 0x7F) << 7 * place
        if data[at + place] < 0x80:
            return value & 2**64 - 1, at + place + 1
    raise AssertionError
