"""Arrow types of declared columns: Spark SQL's type text, read without a JVM.

The grammar is the part of Spark's that can be in a stored stream:
``BIGINT``, ``DECIMAL(10, 2)``, ``ARRAY<T>``, ``MAP<K, V>``, ``STRUCT<a: T, b: T>``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NoReturn

import pyarrow as pa

from rowtime.client.text_sizes import NESTED, Sizes
from rowtime.core.errors import refuse
from rowtime.core.types import LONGEST_TEXT

INSTANT: Final = pa.timestamp("us", tz="UTC")

PLAIN_TYPES: Final[Mapping[str, pa.DataType]] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "BYTE": pa.int8(),
    "SMALLINT": pa.int16(),
    "SHORT": pa.int16(),
    "INT": pa.int32(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "LONG": pa.int64(),
    "FLOAT": pa.float32(),
    "REAL": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": INSTANT,
    "TIMESTAMP_LTZ": INSTANT,
    "TIMESTAMP_NTZ": pa.timestamp("us"),
}
MOST: Final = b"rowtime.characters"
PADDED: Final = b"rowtime.padded"
_SIZED: Final = re.compile(r"\s*(VAR)?CHAR(?:ACTER)?\s*\(\s*(\d+)\s*\)\s*", re.IGNORECASE)
_DECIMALS: Final = frozenset({"DECIMAL", "DEC", "NUMERIC"})
_TEXTS: Final = frozenset({"VARCHAR", "CHAR", "CHARACTER"})
_MAX_PRECISION: Final = 38

_TOKEN: Final = re.compile(r"\s*(`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'|\w+|[<>(),:])", re.UNICODE)


def arrow_type(text: str) -> pa.DataType:
    """Return the Arrow type of a Spark SQL type; ``Refused`` (R208) if a log cannot store it.

    ``STRING COLLATE c`` is a string; so are ``VARCHAR(n)`` and ``CHAR(n)``, whose length is in the metadata of a field
    (`MOST`, `PADDED`).
    """
    return _TypeText(text).whole()


def arrow_schema(definition: Mapping[str, Any]) -> pa.Schema:
    """Return the Arrow schema of the columns of a stream's definition (see ``home``)."""
    return pa.schema(
        [
            pa.field(c["name"], arrow_type(c["type"]), nullable=c.get("nullable", True), metadata=_length(c["type"]))
            for c in definition["columns"]
        ]
    )


def _length(text: str) -> dict[bytes, bytes] | None:
    """Return the metadata of a CHAR or VARCHAR field: the length of its texts."""
    match = _SIZED.fullmatch(text)
    if match is not None:
        return {MOST: match[2].encode(), **({PADDED: b"1"} if match[1] is None else {})}
    sizes = _Sizes(text).whole()
    return None if sizes is None else {NESTED: json.dumps(sizes).encode()}


class _TypeText:
    """A type text and the position of its reader: one method per production, no backtracking."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = self._split()

    def _split(self) -> list[str]:
        """Return the tokens, last one first, above an end marker."""
        tokens, at = [], 0
        text = self.text.rstrip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                self._refuse()
            tokens.append(match[1])
            at = match.end()
        return ["", *reversed(tokens)]

    def whole(self) -> Any:
        whole = self._type()
        if self.tokens != [""]:
            self._refuse()
        return whole

    def _type(self) -> Any:
        word = self._next().upper()
        if word in PLAIN_TYPES:
            if word == "STRING" and self._skip("COLLATE"):  # comparison does not affect storage
                self._next()
            return PLAIN_TYPES[word]
        if word in _DECIMALS:
            return self._decimal()
        if word in _TEXTS:
            if max(self._numbers(), default=0) > LONGEST_TEXT:
                self._refuse()
            return pa.string()
        if word in {"ARRAY", "MAP", "STRUCT"}:
            return self._nested(word)
        return self._refuse()

    def _nested(self, word: str) -> Any:
        self._expect("<")
        if word == "ARRAY":
            nested = pa.list_(self._type())
        elif word == "MAP":
            key = self._type()
            self._expect(",")
            nested = pa.map_(key, self._type())
        else:
            nested = pa.struct(self._fields())
        self._expect(">")
        return nested

    def _fields(self) -> list[Any]:
        fields = [self._field()]  # Parquet has no struct without fields
        while self._skip(","):
            fields.append(self._field())
        return fields

    def _field(self) -> Any:
        name = self._next()
        if not (name.startswith("`") or name[:1].isalnum() or name[:1] == "_"):
            self._refuse()
        self._skip(":")
        kind = self._type()
        required = self._skip("NOT") and self._expect("NULL")
        if self._skip("COMMENT"):
            self._next()
        name = name[1:-1].replace("``", "`") if name.startswith("`") else name
        return self._named(name, kind, nullable=not required)

    def _named(self, name: str, kind: Any, *, nullable: bool) -> Any:
        return pa.field(name, kind, nullable=nullable)

    def _decimal(self) -> pa.DataType:
        numbers = self._numbers()
        precision, scale, *surplus = {0: [10, 0], 1: [*numbers, 0]}.get(len(numbers), numbers)
        if surplus or not (1 <= precision <= _MAX_PRECISION and 0 <= scale <= precision):
            self._refuse()
        return pa.decimal128(precision, scale)

    def _numbers(self) -> list[int]:
        """Return ``(10, 2)`` as a list; empty without a parenthesis."""
        numbers: list[int] = []
        while self._skip("," if numbers else "("):
            word = self._next()
            numbers.append(int(word) if word.isdecimal() else self._refuse())
        if numbers:
            self._expect(")")
        return numbers

    def _next(self) -> str:
        return self.tokens.pop() if len(self.tokens) > 1 else self._refuse()

    def _skip(self, wanted: str) -> bool:
        matches = self.tokens[-1].upper() == wanted
        if matches:
            self.tokens.pop()
        return matches

    def _expect(self, wanted: str) -> bool:
        return self._skip(wanted) or self._refuse()

    def _refuse(self) -> NoReturn:
        raise refuse(
            "R208",
            f"{self.text!r} is not a type of a stream's column",
            f"Types are {', '.join(sorted(PLAIN_TYPES))}, DECIMAL(p, s), VARCHAR(n), CHAR(n), "
            "ARRAY<...>, MAP<..., ...> and STRUCT<name: ..., ...>.",
        )


class _Sizes(_TypeText):
    """Parses the lengths of texts in a type instead of its Arrow type; ``None`` if there are none."""

    def whole(self) -> Sizes:
        return self._type()

    def _type(self) -> Sizes:
        word = self._next().upper()
        if word == "STRING" and self._skip("COLLATE"):
            self._next()
        if word in _DECIMALS or word in _TEXTS:
            numbers = self._numbers()
            return [numbers[0], word != "VARCHAR"] if numbers and word in _TEXTS else None
        return self._nested(word) if word in {"ARRAY", "MAP", "STRUCT"} else None

    def _nested(self, word: str) -> Sizes:
        self._expect("<")
        if word == "STRUCT":
            sizes = {"fields": dict(self._fields())}
            parts = list(sizes["fields"].values())
        else:
            parts = [self._type()]
            while self._skip(","):
                parts.append(self._type())
            sizes = dict(zip(("key", "value") if word == "MAP" else ("item",), parts, strict=False))
        self._expect(">")
        return sizes if any(part is not None for part in parts) else None

    def _named(self, name: str, kind: Sizes, *, nullable: bool) -> Any:  # noqa: ARG002 - as of Arrow
        return name, kind
