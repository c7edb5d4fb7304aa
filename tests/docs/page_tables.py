"""Rows as the tables that pages show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

MOST, NESTED = 10, 60  # rows of a table, and characters of a nested value

Row = Mapping[str, Any]


def table(rows: Sequence[Row]) -> str:
    """Return rows as a table: the names, and a line a row."""
    if not rows:
        return "(no rows)"
    most = MOST if len(rows) > MOST + 1 else len(rows)
    cells = [list(rows[0]), *([_short(value) for value in row.values()] for row in rows[:most])]
    widths = [max(len(line[place]) for line in cells) for place in range(len(cells[0]))]
    right = [isinstance(value, int | float | Decimal) and not isinstance(value, bool) for value in _filled(rows)]
    lines = [
        "  ".join(
            text.rjust(width) if to_right else text.ljust(width)
            for text, width, to_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in cells
    ]
    return "\n".join([*lines, *([f"… {len(rows) - most} more rows"] if len(rows) > most else [])])


def _filled(rows: Sequence[Row]) -> Iterator[Any]:
    """Return the first value of each column that is not NULL."""
    for name in rows[0]:
        yield next((row[name] for row in rows if row[name] is not None), None)


def _short(value: Any) -> str:
    """Return a value as text; a long one that is nested is cut."""
    text = cell(value)
    return f"{text[:NESTED]}…" if isinstance(value, dict | list) and len(text) > NESTED else text


def cell(value: Any) -> str:
    """Return a value as text."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case datetime():
            return str(value.replace(tzinfo=None))
        case dict():
            return "{" + ", ".join(f"{name}: {cell(one)}" for name, one in value.items()) + "}"
        case list():
            return "[" + ", ".join(cell(one) for one in value) + "]"
    return str(value)
