"""Protobuf by Google's own package: the tests send with it, and read back with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.protobuf import message_factory

from rowtime.runtime.schemas.protobuf import compiled
from rowtime.runtime.schemas.registry import MockRegistry, Schema

WELL_KNOWN = "".join(
    f'import "google/protobuf/{name}.proto"; ' for name in ("timestamp", "duration", "wrappers", "any", "struct")
)


def proto(text: str, syntax: str = "proto3") -> str:
    """The text of a schema with the schemas that it may import."""
    return f'syntax = "{syntax}"; {WELL_KNOWN}{text}'


def registered(home: Path, subject: str, text: str, registry: str = "test", **more: Any) -> int:
    """The id of a schema in a registry for tests."""
    return MockRegistry(home / "schema-registry" / registry).add(subject, Schema(text, "PROTOBUF", **more))


def class_of(text: str, name: str, **more: Any) -> Any:
    """Google's class for a message of a schema."""
    found = compiled(Schema(text, "PROTOBUF", **more))._descriptor
    first, *others = name.split(".")
    descriptor = found.message_types_by_name[first]
    for one in others:
        descriptor = descriptor.nested_types_by_name[one]
    return message_factory.GetMessageClass(descriptor)


def framed(number: int, message: Any, indexes: bytes = b"\0") -> bytes:
    """A record's value in Confluent's wire format."""
    body = message if isinstance(message, bytes) else message.SerializeToString()
    return b"\0" + number.to_bytes(4, "big") + indexes + body
