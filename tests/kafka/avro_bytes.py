"""Avro written by hand, from the specification: the tests send with it, and read back with it."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rowtime.runtime.schemas.registry import MockRegistry, Schema


def encoded(value: Any, schema: Any) -> bytes:  # noqa: PLR0911 - a type each
    """A value as bytes of Avro; in a union, the first branch that is NULL or accepts a value is used."""
    if isinstance(schema, list):
        branch = next(n for n, one in enumerate(schema) if (one == "null") == (value is None))
        return _long(branch) + encoded(value, schema[branch])
    kind = schema["type"] if isinstance(schema, dict) else schema
    if isinstance(kind, dict | list):
        return encoded(value, kind)
    match kind:
        case "null":
            return b""
        case "boolean":
            return bytes([value])
        case "int" | "long":
            return _long(value)
        case "float" | "double":
            return struct.pack("<f" if kind == "float" else "<d", value)
        case "string" | "bytes":
            data = value.encode() if isinstance(value, str) else value
            return _long(len(data)) + data
        case "fixed":
            return bytes(value)
        case "enum":
            return _long(schema["symbols"].index(value))
        case "array":
            return _blocks([encoded(one, schema["items"]) for one in value])
        case "map":
            return _blocks([encoded(k, "string") + encoded(v, schema["values"]) for k, v in value.items()])
        case "record":
            return b"".join(encoded(value.get(field["name"]), field["type"]) for field in schema["fields"])
    raise AssertionError(kind)


def decoded(data: bytes, schema: Any) -> Any:
    """The value of bytes that contain nothing after it."""
    value, at = _decoded(data, 0, schema)
    assert at == len(data)
    return value


def _decoded(data: bytes, at: int, schema: Any) -> tuple[Any, int]:  # noqa: PLR0911 - a type each
    if isinstance(schema, list):
        branch, at = _read_long(data, at)
        return _decoded(data, at, schema[branch])
    kind = schema["type"] if isinstance(schema, dict) else schema
    if isinstance(kind, dict | list):
        return _decoded(data, at, kind)
    match kind:
        case "null":
            return None, at
        case "boolean":
            return bool(data[at]), at + 1
        case "int" | "long":
            return _read_long(data, at)
        case "double":
            return struct.unpack_from("<d", data, at)[0], at + 8
        case "string" | "bytes":
            size, at = _read_long(data, at)
            found = data[at : at + size]
            return found.decode() if kind == "string" else found, at + size
        case "record":
            made = {}
            for field in schema["fields"]:
                made[field["name"]], at = _decoded(data, at, field["type"])
            return made, at
        case "array":
            found_items = []
            count, at = _read_long(data, at)
            while count:
                for _ in range(count):
                    one, at = _decoded(data, at, schema["items"])
                    found_items.append(one)
                count, at = _read_long(data, at)
            return found_items, at
    raise AssertionError(kind)


def framed(number: int, value: Any, schema: Any) -> bytes:
    """A record's value in Confluent's wire format."""
    return b"\0" + struct.pack(">I", number) + encoded(value, schema)


def record(name: str, /, **fields: Any) -> dict[str, Any]:
    """The schema of a record."""
    return {"type": "record", "name": name, "fields": [{"name": n, "type": kind} for n, kind in fields.items()]}


def registered(home: Path, subject: str, schema: Any, registry: str = "test", **more: Any) -> int:
    """The id of a schema in a registry for tests."""
    folder = home / "schema-registry" / registry
    return MockRegistry(folder).add(subject, Schema(json.dumps(schema), **more))


def _blocks(items: Sequence[bytes]) -> bytes:
    return (_long(len(items)) + b"".join(items) if items else b"") + _long(0)


def _long(value: int) -> bytes:
    zigzag = (value << 1) ^ (value >> 63)
    out = bytearray()
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    return bytes([*out, zigzag])


def _read_long(data: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return (value >> 1) ^ -(value & 1), at
