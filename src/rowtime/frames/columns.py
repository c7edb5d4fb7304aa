"""Parts of a select list that Arrow can compute directly: columns, constants, and times as numbers.

A query of DuckDB takes 2 ms whatever it does, which for few rows is most of the time of a tick; with many rows it
copies each column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_COLUMN: Final = re.compile(r"c(\d+)")
_MICROS: Final = re.compile(r"epoch_us\(c(\d+)\)")
_NUMBER: Final = re.compile(r"CAST\((-?\d{1,19}) AS (BIGINT|INTEGER)\)")
_NUMBER_BESIDE: Final = re.compile(r"CASE WHEN c(\d+) IS NOT NULL THEN xor\((CAST\(.*\)), 0\) END")
_FIRST_KNOWN: Final = re.compile(r"coalesce\(c(\d+), ")
_TIME: Final = re.compile(r"make_timestamp\((?:c(\d+)|least\(c(\d+), CAST\((\d{1,18}) AS BIGINT\)\))\)")
_ONE_COLUMN: Final = re.compile(r"(?P<before>|epoch_us\(|make_timestamp\()c(?P<number>\d+)(?P<after>\)?)")
_OTHER_ROWS: Final = re.compile(r"\bunnest\(|\bOVER\b", re.IGNORECASE)
_TEXT: Final = re.compile(r"'([^']*)'")
_SORTED: Final = frozenset({"bigint", "int", "smallint", "tinyint", "string", "timestamp", "date", "boolean"})
_BEYOND: Final = {"BIGINT": 2**63, "INTEGER": 2**31}
_TIMES: Final = 2**62  # µs from 1970 in both directions, which both can hold
_WIDTH: Final = {"BIGINT": pa.int64(), "INTEGER": pa.int32()}


def selected(table: pa.Table, texts: Sequence[str]) -> pa.Table | None:
    """Return a select list in DuckDB's SQL over a table with columns ``c0``, …; ``None`` if it needs a query."""
    arrays = []
    for text in texts:
        array = _column(table, text)
        if array is None:
            return None
        arrays.append(array)
    return pa.Table.from_arrays(arrays, names=[f"c{n}" for n in range(len(arrays))])


@dataclass(frozen=True)
class Projection:
    """A select list over a table: for each column the text over the table, ``None`` if only a query computes it."""

    table: pa.Table
    texts: tuple[str | None, ...]

    @classmethod
    def of(cls, table: pa.Table) -> Projection:
        """Return the list of all columns."""
        return cls(table, tuple(f"c{n}" for n in range(table.num_columns)))

    def over(self, texts: Sequence[str]) -> Projection | None:
        """Return the list of a query over these columns; ``None`` if it may have other rows, or in another order."""
        if any(_OTHER_ROWS.search(text) for text in texts):
            return None
        return replace(self, texts=tuple(map(self._text, texts)))

    def _text(self, text: str) -> str | None:
        match = _ONE_COLUMN.fullmatch(text)
        if match is None:
            return text if _NUMBER.fullmatch(text) or _TEXT.fullmatch(text) else None
        below = self.texts[int(match["number"])]
        is_column = below is not None and _COLUMN.fullmatch(below) is not None
        if not match["before"]:
            return below
        return f"{match['before']}{below}{match['after']}" if is_column else None

    def arrays(self) -> list[pa.Array | pa.ChunkedArray | None]:
        """Return the columns that need no query."""
        return [None if text is None else _column(self.table, text) for text in self.texts]


def sorted_alike(kinds: Iterable[str]) -> bool:
    """Return True if Arrow sorts values of all these types as Spark does."""
    return _SORTED.issuperset(kinds)


def places_in(table: pa.Table, kinds: Mapping[int, str]) -> pa.Array | None:
    """Return the place, from 0 on, of each row in ascending order of columns, NULLs first.

    ``kinds``: Spark's types, by the columns' numbers. ``None`` for a type that Arrow may sort differently from Spark.
    """
    if not sorted_alike(kinds.values()):
        return None
    keys = {}
    for n in kinds:
        if table.column(n).null_count:
            keys[f"valid{n}"] = table.column(n).is_valid()  # false is before true
        keys[f"c{n}"] = table.column(n)
    at = pc.sort_indices(pa.table(keys), [(name, "ascending") for name in keys])
    places = np.empty(table.num_rows, np.int64)
    places[at.to_numpy()] = np.arange(table.num_rows)
    return pa.array(places)


def _column(table: pa.Table, text: str) -> pa.Array | pa.ChunkedArray | None:
    if match := _COLUMN.fullmatch(text):
        return table.column(int(match[1]))
    if (match := _FIRST_KNOWN.match(text)) and not table.column(int(match[1])).null_count and _is_one_call(text):
        return table.column(int(match[1]))
    if match := _TIME.fullmatch(text):
        return _instants(table.column(int(match[1] or match[2])), None if match[3] is None else int(match[3]))
    if (match := _MICROS.fullmatch(text)) and table.column(int(match[1])).type == pa.timestamp("us"):
        return table.column(int(match[1])).cast(pa.int64())
    return _constant(table, text)


def _is_one_call(text: str) -> bool:
    """Return True if the first parenthesis closes at the end of the text."""
    depth = 0
    for n, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if sign in "'\"" or (sign == ")" and not depth):
            return n == len(text) - 1 and sign == ")"
    return False


def _constant(table: pa.Table, text: str) -> pa.Array | None:
    if (match := _NUMBER.fullmatch(text)) and abs(int(match[1])) < _BEYOND[match[2]]:
        return pa.repeat(pa.scalar(int(match[1]), _WIDTH[match[2]]), table.num_rows)
    if (match := _NUMBER_BESIDE.fullmatch(text)) and not table.column(int(match[1])).null_count:
        return _constant(table, match[2])
    if match := _TEXT.fullmatch(text):
        return pa.repeat(match[1], table.num_rows)
    return None


def _instants(micros: pa.ChunkedArray, most: int | None) -> pa.ChunkedArray | None:
    """Return numbers as times, and those above a limit as the limit; ``None`` if some may not be times in DuckDB."""
    if micros.type != pa.int64():
        return None
    edges = pc.min_max(micros)
    low, high = edges["min"].as_py(), edges["max"].as_py()
    if low is not None and (low < -_TIMES or (most is None and high > _TIMES)):
        return None
    if most is not None and (high is None or high > most or micros.null_count):
        micros = pc.min_element_wise(micros, pa.scalar(most, pa.int64()))  # the least of NULL and a number is that
    return micros.cast(pa.timestamp("us"))
