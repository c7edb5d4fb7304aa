"""What the fields of a plan's dataclasses are beside their types; who stores, shows or compares a plan goes by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field
from typing import Any, Final

Micros = int
"""A duration in µs. A field of this type is stored as one and shown as one."""
Mark = str
"""The name under which the mark of a running call is known; empty for none. It says nothing of what is computed."""

LATER: Final[Mapping[str, bool]] = {"later": True}
"""Came after plans were stored without it: left out while it has its default, which is what these mean."""
UNSTORED: Final[Mapping[str, bool]] = {"unstored": True}
"""Says nothing of what is computed, or what the inputs say already: it may differ from start to start."""
OPTIONS: Final[Mapping[str, bool]] = {"options": True}
"""Has options, or a format with options: of these only what lasts is stored, and no secret."""


def stored_fields(one: Any, of: tuple[Field[Any], ...]) -> dict[Field[Any], object]:
    """The fields ``of`` a dataclass that a stored plan has, with their values."""
    values = {field: getattr(one, field.name) for field in of if "unstored" not in field.metadata}
    return {f: value for f, value in values.items() if "later" not in f.metadata or value != f.default}


def typed(field: Field[Any], name: str) -> bool:
    """True if the type of a field is of that name, perhaps beside None."""
    return name in str(field.type).split(" | ")
