"""Metadata of a plan's dataclass fields; code that stores, shows or compares a plan uses it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field
from typing import Any, Final

Micros = int
"""A duration in µs. A field of this type is stored and shown as a duration."""
Mark = str
"""The name under which the mark of a running call is stored; empty for none. It does not affect results."""

LATER: Final[Mapping[str, bool]] = {"later": True}
"""The field was added after plans were stored without it: it is left out while it has its default."""
UNSTORED: Final[Mapping[str, bool]] = {"unstored": True}
"""The field does not affect results, or the inputs imply it: it may differ from start to start."""
OPTIONS: Final[Mapping[str, bool]] = {"options": True}
"""The field has options, or a format with options: only the lasting ones are stored, and no secret."""


def stored_fields(instance: Any, of: tuple[Field[Any], ...]) -> dict[Field[Any], object]:
    """Return those of the fields ``of`` a dataclass that a stored plan has, with their values."""
    values = {field: getattr(instance, field.name) for field in of if "unstored" not in field.metadata}
    return {f: value for f, value in values.items() if "later" not in f.metadata or value != f.default}


def typed(field: Field[Any], name: str) -> bool:
    """Return True if a field's type has that name, or that name or None."""
    return name in str(field.type).split(" | ")
