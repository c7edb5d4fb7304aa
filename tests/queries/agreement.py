"""Compares the rows of a stream with those of a batch, and two streams with each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pyarrow as pa

NINE_DIGITS: Final = 1e-9
"""How far a DOUBLE may differ, relative to its size: the order of additions is not fixed."""

SHOWN: Final = 4

Row = tuple[Any, ...]


def differences(found: pa.Table, expected: pa.Table) -> list[str]:
    """The differences between a stream, with its rowtimes, and the batch in order of time; empty if there are none.

    The columns have the same names and types. The rows are the same, as often, in any order of the batch. A stream
    without rows so far has no columns yet.
    """
    if not found.num_rows:
        return [f"only in batch: {row}" for row in _rows(expected)[:SHOWN]]
    times, values = found["rowtime"].to_pylist(), found.drop_columns("rowtime")
    said = [] if times == sorted(times) else ["the rows are not in the order of rowtime"]
    if _columns(values) != _columns(expected):
        return [*said, f"the columns are {_columns(values)}, in batch {_columns(expected)}"]
    only_found, only_expected = _unmatched(_rows(values), _rows(expected))
    said += [f"only streaming: {row}" for row in only_found[:SHOWN]]
    return said + [f"only in batch: {row}" for row in only_expected[:SHOWN]]


def same_stream(one: pa.Table, other: pa.Table) -> bool:
    """True for the same rows and rowtimes in the same order."""
    return _columns(one) == _columns(other) and alike(_rows(one), _rows(other))


def alike(one: Any, other: Any) -> bool:
    """True for values of one type that are equal; floats may differ in their last nine digits."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(alike(value, other[name]) for name, value in one.items())
    if isinstance(one, float):
        return math.isclose(one, other, rel_tol=NINE_DIGITS) or (math.isnan(one) and math.isnan(other))
    return bool(one == other)


def _columns(table: pa.Table) -> list[tuple[str, str]]:
    return [(field.name.lower(), str(field.type)) for field in table.schema]


def _rows(table: pa.Table) -> list[Row]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _unmatched(found: Sequence[Row], expected: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """The rest of each after all equal rows are removed in pairs."""
    left, extra = list(expected), []
    for row in found:
        place = next((place for place, other in enumerate(left) if alike(row, other)), None)
        if place is None:
            extra.append(row)
        else:
            del left[place]
    return extra, left
