"""Protobuf: compiles the text of a schema to the messages that the kernels read and write.

The compiler is that of grpcio-tools, an extra. It runs in a process of its own, once per schema, on the driver. Workers
get the messages as data, and read and write them with the extra's other packages, protobuf and ptars.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any, Final

from rowtime.core.errors import Failure, Problem
from rowtime.kernels.protobuf_types import Field, Form, Message, Repeats
from rowtime.runtime.schemas.avro import Unreadable
from rowtime.runtime.schemas.registry import Schema

KIND: Final = "PROTOBUF"
MAIN: Final = "rowtime_schema.proto"  # the schema itself, besides those that it imports
SECONDS: Final = 60  # for the compiler
_NEEDED: Final = {"grpc_tools": "Protobuf's compiler (grpcio-tools)", "ptars": "the reader of Protobuf (ptars)"}
_FORMS: Final = {
    "google.protobuf.Timestamp": Form.TIMESTAMP,
    "google.protobuf.Duration": Form.DURATION,
    **{
        f"google.protobuf.{kind}Value": Form.WRAPPER
        for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
    },
}


class File:
    """A compiled schema: its messages by full name and by index, in the order of its text."""

    def __init__(self, descriptor: Any, proto: Any) -> None:
        self.package = str(proto.package)
        self.indexes = dict(_indexes(proto.message_type, self.package))
        self._descriptor, self._messages = descriptor, dict[str, Message]()

    def find(self, name: str) -> str:
        """Return the full name of a message, given with or without its package; the first one by default."""
        for full in (name, f"{self.package}.{name}") if name else list(self.indexes)[:1]:
            if full in self.indexes:
                return full
        if not self.indexes:
            raise Unreadable("the schema has no message")
        raise Unreadable(f"there is no message {name}; there are {', '.join(self.indexes)}")

    def message(self, full: str) -> Message:
        """Return a message, which may contain itself."""
        inside = full[len(self.package) + 1 :] if self.package else full
        first, *others = inside.split(".")
        descriptor = self._descriptor.message_types_by_name[first]
        for nested in others:
            descriptor = descriptor.nested_types_by_name[nested]
        return self._message(descriptor)

    def _message(self, descriptor: Any) -> Message:
        from google.protobuf import descriptor_pb2  # noqa: PLC0415 - an extra

        full = descriptor.full_name
        if full not in self._messages:
            proto = descriptor_pb2.DescriptorProto()
            descriptor.CopyToProto(proto)
            reserved = tuple((part.start, part.end) for part in proto.reserved_range)
            message = self._messages[full] = Message(full, form=_FORMS.get(full, Form.STRUCT), reserved=reserved)
            message.fields.extend(self._field(part, entry=_is_entry(descriptor)) for part in descriptor.fields)
        return self._messages[full]

    def _field(self, field: Any, *, entry: bool) -> Field:
        kind = _KINDS[field.type]
        inner = None if field.message_type is None else self._message(field.message_type)
        repeats = Repeats.MANY if field.is_repeated else Repeats.ONCE
        if repeats is Repeats.MANY and inner is not None and _is_entry(field.message_type):
            repeats = Repeats.MAP
        presence = repeats is Repeats.ONCE and field.has_presence and not entry
        fixed = repeats is Repeats.ONCE and inner is None and (not presence or field.has_default_value)
        names = dict[int, str]()
        for value in () if field.enum_type is None else field.enum_type.values:
            names.setdefault(value.number, value.name)
        return Field(
            field.name,
            field.number,
            kind,
            repeats,
            presence=presence,
            required=field.is_required,
            packed=field.is_packed,
            default=field.default_value if fixed else None,
            oneof=-1 if field.containing_oneof is None else field.containing_oneof.index,
            message=inner,
            names=names,
        )


_KINDS: Final = dict(
    enumerate(
        (
            *("double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string", "group"),
            *("message", "bytes", "uint32", "enum", "sfixed32", "sfixed64", "sint32", "sint64"),
        ),
        1,
    )
)
"""The kinds of fields by Protobuf's numbers for them."""


def _is_entry(descriptor: Any) -> bool:
    return bool(descriptor.GetOptions().map_entry)


def _indexes(messages: Any, above: str, path: tuple[int, ...] = ()) -> Iterator[tuple[str, tuple[int, ...]]]:
    for number, message in enumerate(messages):
        if message.options.map_entry:
            continue
        name = f"{above}.{message.name}" if above else message.name
        yield name, (*path, number)
        yield from _indexes(message.nested_type, name, (*path, number))


def installed() -> None:
    """Raise ``Failure`` (R502) if there is no compiler, or nothing that reads messages."""
    for package, what in _NEEDED.items():
        if find_spec(package) is None:
            hint = "Install it: pip install 'rowtime[protobuf]'."
            raise Failure(Problem("R502", f"{what} is not installed", hint=hint))


@lru_cache(maxsize=256)
def compiled(schema: Schema) -> File:
    """Compile a schema with those that it imports. Raises `Unreadable`, and ``Failure`` (R502) without the compiler."""
    if schema.kind != KIND:
        raise Unreadable(f"it is a schema of {schema.kind}")
    installed()
    from google.protobuf import descriptor_pb2, descriptor_pool  # noqa: PLC0415 - an extra

    with tempfile.TemporaryDirectory() as folder:
        files = descriptor_pb2.FileDescriptorSet.FromString(_compiled(schema, Path(folder)))
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.AddSerializedFile(file.SerializeToString())
    return File(pool.FindFileByName(MAIN), next(file for file in files.file if file.name == MAIN))


def _compiled(schema: Schema, folder: Path) -> bytes:
    import grpc_tools  # noqa: PLC0415 - an extra

    for name, text in (*schema.references, (MAIN, schema.text)):
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts or "\0" in name:
            raise Unreadable(f"the name {name!r} of a reference is no path inside of a folder")
        file = folder / "in" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    google_types = Path(grpc_tools.__file__).parent / "_proto"
    out = folder / "out"
    command = [
        sys.executable,
        "-m",
        "grpc_tools.protoc",
        f"-I{folder / 'in'}",
        f"-I{google_types}",
        "--include_imports",
    ]
    try:
        ran = subprocess.run(  # noqa: S603 - paths of our own
            [*command, f"--descriptor_set_out={out}", MAIN],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unreadable("Protobuf's compiler did not end") from None
    if ran.returncode:
        message = next((line for line in ran.stderr.splitlines() if "warning" not in line), f"status {ran.returncode}")
        raise Unreadable(f"Protobuf's compiler rejects it: {message.replace(MAIN, 'line', 1)}")
    return out.read_bytes()
