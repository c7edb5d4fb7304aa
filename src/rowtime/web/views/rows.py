"""Rows of an output or rejected by a gate, the newest first, filtered, and one page at a time."""

from __future__ import annotations

import operator
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

from rowtime.core.errors import refuse
from rowtime.core.time import to_micros, to_text
from rowtime.operators.contract import quoted
from rowtime.web.kept_rows import Kept

PAGE: Final = 50
BUDGET: Final = 0.6  # seconds in which a page is searched
LONGEST: Final = 400  # characters of a cell

Cells = Mapping[str, str | None]
Fits = Callable[[Cells], bool]
_CONDITION: Final = re.compile(r"\s*([^=<>!~]+?)\s*(<=|>=|!=|=|<|>|~)\s*(.*?)\s*")
_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Row:
    """One row; ``number``: its place among all, from 0."""

    number: int
    cells: Cells


@dataclass(frozen=True)
class Page:
    """Rows, the newest first. ``older``: where the next page begins; ``looked``: how many rows have been examined."""

    columns: Sequence[str]
    rows: Sequence[Row]
    older: int | None
    looked: int
    total: int
    numbered: bool


def page_of_rows(kept: Kept, before: int | None, condition: str, budget: float = BUDGET) -> Page:
    """Return a page of rows with numbers below ``before`` that match a condition.

    If few match, it stops after a while, and ``older`` continues from there. Raises ``Refused`` (R706) for a condition
    on an unknown column.
    """
    fits, until = fitting(condition), 0.0
    first = kept.total if before is None else min(before, kept.total)
    end, rows, columns, looked, reached = kept.total, list[Row](), dict[str, None](), 0, first
    for part in reversed(kept.parts):
        if part.count is not None and end - part.count >= first:
            end -= part.count
            continue
        table = part.read()
        start = end - table.num_rows
        columns |= dict.fromkeys(table.column_names)
        taken = max(0, min(first, end) - start)
        for number, values in reversed([*enumerate(table.slice(0, taken).to_pylist(), start)]):
            looked, reached = looked + 1, number
            cells = {name: shown(value) for name, value in values.items()}
            if fits(cells):
                rows.append(Row(number, cells))
            if len(rows) == PAGE:
                break
        end = start
        until = until or time.monotonic() + budget  # the first part may load libraries
        if len(rows) == PAGE or time.monotonic() > until:
            break
    older = reached if reached > 0 and (len(rows) == PAGE or end > 0) and kept.parts else None
    return Page([*columns], rows, older, looked, kept.total, kept.numbered)


def row_at(kept: Kept, number: int) -> Mapping[str, Any]:
    """Return the values of the row with a number. Raises ``Refused`` (R704) if there is none."""
    end = kept.total
    for part in reversed(kept.parts):
        if part.count is None or end - part.count <= number:
            table = part.read()
            start = end - table.num_rows
            if start <= number < end:
                row: Mapping[str, Any] = table.slice(number - start, 1).to_pylist()[0]
                return row
            end = start
        else:
            end -= part.count
    raise refuse("R704", f"row {number} no longer exists", "The page Rows lists the rows.")


def condition_of(values: Mapping[str, Any]) -> str:
    """Return a condition of Spark SQL that matches a row with these values; on columns whose values can be written."""
    parts = [f"{quoted(name)} <=> {text}" for name, value in values.items() if (text := _literal(value))]
    return " AND ".join(parts) or "true"


def _literal(value: Any) -> str:
    """Return a value as Spark SQL; empty if it is better not compared: floating point, and nested values."""
    if value is None:
        return "NULL"
    if isinstance(value, bool | int | Decimal):
        return str(value)
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{to_text(to_micros(value))}'"
    return f"DATE '{value}'" if isinstance(value, date) else ""


def fitting(condition: str) -> Fits:
    """Parse a condition: ``column = value``, ``column > value``, ``column ~ part``, or a text in any column.

    Numbers are compared as numbers, everything else as text.
    """
    parsed = _CONDITION.fullmatch(condition)
    if not condition.strip():
        return lambda _cells: True
    if parsed is None:
        wanted = condition.strip().lower()
        return lambda cells: any(wanted in cell.lower() for cell in cells.values() if cell is not None)
    name, sign, value = parsed[1], parsed[2], parsed[3].strip("'")
    return lambda cells: _fits(cells, name, sign, value)


def _fits(cells: Cells, name: str, sign: str, value: str) -> bool:
    if name not in cells:
        raise refuse("R706", f"there is no column {name}", f"There are {', '.join(cells)}.")
    cell = cells[name]
    if value.upper() == "NULL" and sign in ("=", "!="):
        return (cell is None) == (sign == "=")
    if cell is None:
        return False
    if sign == "~":
        return value.lower() in cell.lower()
    numbers = _number(cell), _number(value)
    if None not in numbers:
        return _COMPARE[sign](*numbers)
    return _COMPARE[sign](cell, value)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def shown(value: Any) -> str | None:
    """Return a value as the text of a cell."""
    if value is None:
        return None
    text = to_text(to_micros(value)) if isinstance(value, datetime) else str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
