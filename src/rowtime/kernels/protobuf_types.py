"""Protobuf's messages for the kernels: the wire format of each field, and its Arrow form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any, Final

from rowtime.kernels.wire_tokens import FIXED32, FIXED64, GROUP, LENGTH, VARINT

WIRE_OF: Final = {
    **dict.fromkeys(("int32", "int64", "uint32", "uint64", "sint32", "sint64", "bool", "enum"), VARINT),
    **dict.fromkeys(("fixed64", "sfixed64", "double"), FIXED64),
    **dict.fromkeys(("fixed32", "sfixed32", "float"), FIXED32),
    **dict.fromkeys(("string", "bytes", "message"), LENGTH),
    "group": GROUP,
}
"""The wire type of each kind of field."""


class Form(Enum):
    """The Arrow form of a message."""

    STRUCT = "a struct of its fields"
    TIMESTAMP = "google.protobuf.Timestamp"
    DURATION = "google.protobuf.Duration"
    WRAPPER = "a value that may be NULL"


class Repeats(Enum):
    """How often a field occurs in a message."""

    ONCE = "once"
    MANY = "many"
    MAP = "entries of a map"


@dataclass(frozen=True)
class Field:
    """A field.

    ``presence``: a message shows whether the field is set; else it has its ``default`` (for an enum a number).
    ``filled``: a missing message counts as an empty one (the value of a map entry). ``oneof``: the one it is a member
    of, -1 for none. ``names``: of the numbers of an enum.
    """

    name: str
    number: int
    kind: str
    repeats: Repeats = Repeats.ONCE
    presence: bool = False
    required: bool = False
    filled: bool = False
    packed: bool = True
    default: Any = None
    oneof: int = -1
    message: Message | None = None
    names: Mapping[int, str] = field(default_factory=dict)

    @property
    def wire(self) -> int:
        """Return the wire type of one value."""
        return WIRE_OF[self.kind]


@dataclass(eq=False)
class Message:
    """A message: its full name and its fields. Messages may contain themselves, so they are compared by identity.

    ``reserved``: numbers that no field may have, from the first to before the second.
    """

    name: str
    fields: list[Field] = field(default_factory=list)
    form: Form = Form.STRUCT
    reserved: tuple[tuple[int, int], ...] = ()

    @cached_property
    def oneofs(self) -> dict[int, list[Field]]:
        """Return the members of each oneof with several."""
        by_number: dict[int, list[Field]] = {}
        for member in self.fields:
            if member.oneof >= 0:
                by_number.setdefault(member.oneof, []).append(member)
        return {number: members for number, members in by_number.items() if len(members) > 1}


@dataclass(frozen=True)
class Wanted:
    """The wanted fields of a message, by their numbers, each with the wanted fields of its own message."""

    fields: Mapping[int, Wanted] = field(default_factory=dict)
