"""The Protobuf schema of columns, as text: proto3, each field with presence, so that NULL is a missing field.

Numbers are permanent: a field that an earlier schema of the topic has with the same name and type keeps its number, and
the numbers of removed fields are reserved.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rowtime.core.errors import refuse
from rowtime.frames.kinds import type_text
from rowtime.kernels.protobuf_types import Field, Form, Message, Repeats

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

_PLAIN: Final = {
    **dict.fromkeys(("tinyint", "smallint", "int"), "int32"),
    "bigint": "int64",
    "boolean": "bool",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "bytes",
}
_TIMES: Final = {"timestamp": "Timestamp", "interval day to second": "Duration"}
_KEYS: Final = ("int32", "int64", "bool", "string")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_NAMES_HINT: Final = "Give each column a name of letters, digits and _, which begins with no digit."
_NOT_FOR_USE: Final = range(19_000, 20_000)  # Protobuf reserves these numbers


def message_name(topic: str) -> str:
    """Return the full name of the message of a topic's rows, unless the stream names it."""
    return f"rowtime.{_camel(topic)}"


def proto_of(columns: StructType, name: str, before: Message | None = None) -> str:
    """Return the schema text of some columns, a message with a full name. Raises ``Refused`` (R549) for other types."""
    package, _, short = name.rpartition(".")
    writer = _Writer()
    lines = writer.message(short, columns, before, "")
    imports = [f'import "google/protobuf/{name}.proto";' for name in sorted(writer.imports)]
    head = ['syntax = "proto3";', *([f"package {package};"] if package else []), *imports]
    return "\n".join([*head, "", *lines, ""])


def _camel(name: str) -> str:
    """Return a name in the style of messages."""
    parts = re.split(r"[^A-Za-z0-9]+", name)
    camel = "".join(part[:1].upper() + part[1:] for part in parts)
    return camel if camel[:1].isalpha() else f"T{camel}"


@dataclass
class _Writer:
    """Writes messages; ``imports``: the files of well-known types that they name."""

    imports: set[str] = field(default_factory=set)

    def message(self, name: str, columns: StructType, before: Message | None, indent: str) -> list[str]:
        fields_before = {field.name: field for field in before.fields} if before is not None else {}
        kept = {
            column.name: field
            for column in columns
            if (field := fields_before.get(column.name)) and _same(column.dataType, field)
        }
        fresh = _unused(before)
        gone = sorted(field.number for field in fields_before.values() if field not in kept.values())
        reserved = [*(before.reserved if before is not None else ()), *((number, number + 1) for number in gone)]
        lines, inner = [], list[str]()
        names = {name.lower()}  # of nested messages; Java does not allow a nested class with the name of its outer one
        for column in columns:
            if not _NAME.fullmatch(column.name):
                raise refuse("R549", f"Protobuf has no field called {column.name!r}", _NAMES_HINT)
            old = kept.get(column.name)
            kind, below = self._kind(column.name, column.dataType, old, names, indent + "  ")
            inner += below
            number = next(fresh) if old is None else old.number
            lines.append(f"{indent}  {kind} {column.name} = {number};")
        held = [f"{indent}  reserved {', '.join(map(_span, sorted(set(reserved))))};"] if reserved else []
        return [f"{indent}message {name} {{", *held, *lines, *inner, f"{indent}}}"]

    def _kind(
        self, name: str, kind: DataType, old: Field | None, names: set[str], indent: str
    ) -> tuple[str, list[str]]:
        """Return a field's label and type, and the lines of the messages that it needs."""
        from pyspark.sql import types as T  # noqa: N812, PLC0415 - the customary name; not for those who only plan

        if isinstance(kind, T.ArrayType):
            text, below = self._value(name, kind.elementType, old, names, indent)
            return f"repeated {text}", below
        if isinstance(kind, T.MapType):
            key = _PLAIN.get(type_text(kind.keyType), "")
            if key not in _KEYS:
                raise _no_type(name, f"a map with keys of type {type_text(kind.keyType).upper()}")
            value = old.message.fields[1] if old is not None and old.message is not None else None
            text, below = self._value(name, kind.valueType, value, names, indent)
            return f"map<{key}, {text}>", below
        text, below = self._value(name, kind, old, names, indent)
        return f"optional {text}", below

    def _value(
        self, name: str, kind: DataType, old: Field | None, names: set[str], indent: str
    ) -> tuple[str, list[str]]:
        from pyspark.sql import types as T  # noqa: N812, PLC0415 - as above

        if isinstance(kind, T.StructType):
            name_of_message = _camel(name)
            while name_of_message.lower() in names:
                name_of_message += "_"
            names.add(name_of_message.lower())
            return name_of_message, self.message(
                name_of_message, kind, old.message if old is not None else None, indent
            )
        text = type_text(kind)
        if text in _TIMES:
            self.imports.add(_TIMES[text].lower())
            return f"google.protobuf.{_TIMES[text]}", []
        if text not in _PLAIN:
            raise _no_type(name, text if "<" in text else text.upper())
        return _PLAIN[text], []


def _no_type(name: str, kind: str) -> Exception:
    what = f"Protobuf has no type for {name}, which is {kind}"
    return refuse(
        "R549", what, f"Declare {name} STRING, and write it as text: CAST({name} AS STRING), or to_json({name})."
    )


def _unused(before: Message | None) -> Iterator[int]:
    """Yield the numbers after all that were ever used."""
    used = (
        [] if before is None else [*(field.number + 1 for field in before.fields), *(end for _, end in before.reserved)]
    )
    number = max(used, default=1)
    while True:
        if number not in _NOT_FOR_USE:
            yield number
        number += 1


def _span(numbers: tuple[int, int]) -> str:
    first, end = numbers
    return str(first) if end == first + 1 else f"{first} to {end - 1}"


def _same(kind: DataType, old: Field) -> bool:
    """Return whether a field fits a column of a type unchanged."""
    from pyspark.sql import types as T  # noqa: N812, PLC0415 - as above

    if isinstance(kind, T.ArrayType):
        return old.repeats is Repeats.MANY and _same_value(kind.elementType, old)
    if isinstance(kind, T.MapType):
        if old.repeats is not Repeats.MAP or old.message is None:
            return False
        key, value = old.message.fields
        return _same_value(kind.keyType, key) and _same_value(kind.valueType, value)
    return old.repeats is Repeats.ONCE and old.presence and not old.required and _same_value(kind, old)


def _same_value(kind: DataType, old: Field) -> bool:
    from pyspark.sql import types as T  # noqa: N812, PLC0415 - as above

    if isinstance(kind, T.StructType):
        return old.kind == "message" and old.message is not None and old.message.form is Form.STRUCT
    if (text := type_text(kind)) in _TIMES:
        return old.message is not None and old.message.name == f"google.protobuf.{_TIMES[text]}"
    return old.message is None and old.kind == _PLAIN.get(text)
