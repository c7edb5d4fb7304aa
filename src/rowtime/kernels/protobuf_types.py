"""Protobuf's messages for the kernels: the fields of each, and its Arrow form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

TEXTS: Final = ("string", "bytes")
"""The kinds of fields whose values are neither numbers nor messages."""


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
    ``oneof``: the one it is a member of, -1 for none. ``names``: of the numbers of an enum.
    """

    name: str
    number: int
    kind: str
    repeats: Repeats = Repeats.ONCE
    presence: bool = False
    required: bool = False
    packed: bool = True
    default: Any = None
    oneof: int = -1
    message: Message | None = None
    names: Mapping[int, str] = field(default_factory=dict)


@dataclass(eq=False)
class Message:
    """A message: its full name and its fields. Messages may contain themselves, so they are compared by identity.

    ``reserved``: numbers that no field may have, from the first to before the second.
    """

    name: str
    fields: list[Field] = field(default_factory=list)
    form: Form = Form.STRUCT
    reserved: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Wanted:
    """The wanted fields of a message, by their numbers, each with the wanted fields of its own message."""

    fields: Mapping[int, Wanted] = field(default_factory=dict)
