"""Lengths of CHAR and VARCHAR in a client's value: texts of n characters, or of at most n (semantics 10).

Trailing blanks beyond the length are cut off, a longer text does not fit, and a shorter CHAR is padded with blanks. For
texts inside other values this is done value by value, in Python.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

Sizes: TypeAlias = Any
"""JSON: null; ``[n, is CHAR]`` of a text; ``{"item": …}``, ``{"key": …, "value": …}`` or ``{"fields": {name: …}}``."""

NESTED: Final = b"rowtime.texts"
"""In the metadata of a field: the `Sizes` of a column with such nested texts."""

Fit: TypeAlias = Callable[[Any], Any]


def fitting(sizes: bytes) -> Fit:
    """Return a function that trims or pads the texts of a value; it raises ``ValueError`` for one that is too long."""
    return _fit(json.loads(sizes))


def _fit(sizes: Sizes) -> Fit:
    if sizes is None:
        return lambda value: value
    if isinstance(sizes, list):
        return lambda text: _text(text, *sizes)
    if "item" in sizes:
        item = _fit(sizes["item"])
        return lambda value: None if value is None else [item(element) for element in value]
    if "key" in sizes:
        key, item = _fit(sizes["key"]), _fit(sizes["value"])
        return lambda value: _map(value, key, item)
    fields = {name: _fit(of) for name, of in sizes["fields"].items()}
    return lambda value: _struct(value, fields)


def _text(text: str | None, most: int, padded: bool) -> str | None:  # noqa: FBT001 - as it is in the sizes
    if text is None:
        return None
    if text[most:].strip(" "):
        raise ValueError(f"{text!r} has more than {most} characters")
    return text[:most].ljust(most) if padded else text[:most]


def _map(value: Any, key: Fit, item: Fit) -> list[tuple[Any, Any]] | None:
    if value is None:
        return None
    pairs = [(key(one), item(other)) for one, other in value]
    if len({one for one, _ in pairs}) < len(pairs):
        raise ValueError("two of its keys are equal at their declared length")
    return pairs


def _struct(value: Mapping[str, Any] | None, fields: Mapping[str, Fit]) -> dict[str, Any] | None:
    return None if value is None else {name: fields[name](part) for name, part in value.items()}
