"""The columns of a Protobuf message: the Spark type of each field, and which fields have none."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sqlglot import exp

from rowtime.expr.store_assignment import type_of
from rowtime.kernels.protobuf_types import Field, Form, Message, Repeats, Wanted
from rowtime.operators.contract import quoted
from rowtime.runtime.schemas.fitting import Misfit

TYPES: Final = {
    **dict.fromkeys(("int32", "sint32", "sfixed32"), "INT"),
    **dict.fromkeys(("int64", "sint64", "sfixed64", "uint32", "fixed32"), "BIGINT"),
    **dict.fromkeys(("uint64", "fixed64"), "DECIMAL(20, 0)"),
    "bool": "BOOLEAN",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "STRING",
    "enum": "STRING",
    "bytes": "BINARY",
}
_ENDLESS: Final = tuple(f"google.protobuf.{name}" for name in ("Struct", "Value", "ListValue"))
_TIMES: Final = {Form.TIMESTAMP: "TIMESTAMP", Form.DURATION: "INTERVAL DAY TO SECOND"}


@dataclass(frozen=True)
class Shape:
    """The fields of a message that have a type, and how to read them.

    ``endless``: by the path of fields, with dots between them, the message that would contain itself there.
    """

    types: Mapping[str, str] = field(default_factory=dict)
    wanted: Wanted = field(default_factory=Wanted)
    endless: Mapping[str, str] = field(default_factory=dict)

    def only(self, message: Message, names: Container[str]) -> Shape:
        """Return the same for some fields of the message."""
        numbers = {field.number for field in message.fields if field.name in names}
        wanted = Wanted({number: inner for number, inner in self.wanted.fields.items() if number in numbers})
        return Shape({name: kind for name, kind in self.types.items() if name in names}, wanted, self.endless)


def shape_of(message: Message, above: tuple[str, ...] = ()) -> Shape:
    """Return the types of a message's fields; a message that contains itself, or has no fields, has none."""
    types, wanted, endless = dict[str, str](), dict[int, Wanted](), dict[str, str]()
    inside = (*above, message.name)
    for member in message.fields:
        inner = (
            member.message
            if member.repeats is not Repeats.MAP or member.message is None
            else member.message.fields[1].message
        )
        if inner is not None and inner.name in (*inside, *_ENDLESS):
            endless[member.name] = inner.name
            continue
        kind, below = _kind(member, inside)
        endless |= {f"{member.name}.{path}": name for path, name in below.endless.items()}
        if kind:
            types[member.name], wanted[member.number] = kind, below.wanted
    return Shape(types, Wanted(wanted), endless)


def _kind(field: Field, above: tuple[str, ...]) -> tuple[str, Shape]:
    """Return the type of a field, empty if it has none, and how to read its message."""
    if field.repeats is Repeats.MAP:
        assert field.message is not None
        key, value = field.message.fields
        (first, one_wanted), (second, below) = _value(key, above), _value(value, above)
        wanted = Wanted({key.number: one_wanted.wanted, value.number: below.wanted})
        return f"MAP<{first}, {second}>" if second else "", Shape({}, wanted, below.endless)
    kind, below = _value(field, above)
    return f"ARRAY<{kind}>" if kind and field.repeats is Repeats.MANY else kind, below


def _value(field: Field, above: tuple[str, ...]) -> tuple[str, Shape]:
    message = field.message
    if message is None:
        return TYPES[field.kind], Shape()
    if message.form is Form.STRUCT:
        below = shape_of(message, above)
        return struct_text(below.types) if below.types else "", below
    wanted = Wanted({part.number: Wanted() for part in message.fields})
    kind = TYPES[message.fields[0].kind] if message.form is Form.WRAPPER else _TIMES[message.form]
    return kind, Shape({}, wanted)


def struct_text(types: Mapping[str, str]) -> str:
    """Return the struct type of some fields."""
    return f"STRUCT<{', '.join(f'{quoted(name)}: {kind}' for name, kind in types.items())}>"


def endless_misfits(columns: Sequence[tuple[str, str]], shape: Shape) -> Iterator[Misfit]:
    """Yield the declared columns that need a field in which a message contains itself."""
    for name, kind in columns:
        declared = type_of(kind)
        for path in (name, *(f"{name}.{below}" for below in _paths(declared))):
            if path in shape.endless:
                what = f"the field {path} is a {shape.endless[path]} in a {shape.endless[path]}, and so on without end"
                hint = f"Declare {name} without it, or read the topic with format 'raw', as bytes."
                yield Misfit(name, what, hint if "." in path else "Leave the column out, or read with format 'raw'.")
                break


def _paths(kind: exp.DataType | None) -> Iterator[str]:
    """Yield the members of structs, also of those in arrays and maps, with dots between them."""
    if kind is None:
        return
    for part in kind.expressions:
        if isinstance(part, exp.ColumnDef):
            yield part.name
            yield from (f"{part.name}.{below}" for below in _paths(part.args["kind"]))
        elif isinstance(part, exp.DataType):
            yield from _paths(part)
