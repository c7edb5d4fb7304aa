"""How many of several ascending positions a row has reached, as Spark SQL: a binary search in a literal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from rowtime.core.columns import POSITION


def reached(positions: str, most: int, way: Literal["<", "<="] = "<=") -> str:
    """Return how many of the ascending ``positions`` (ARRAY<BIGINT>, ``most`` at most) a row has reached."""
    halves = ", ".join(str(1 << n) for n in reversed(range(most.bit_length()))) or "0"
    fresh = f"coalesce(get({positions}, i + half - 1) {way} {POSITION}, false)"
    return f"aggregate(array({halves}), 0, (i, half) -> IF({fresh}, i + half, i))"


def array(numbers: Iterable[int]) -> str:
    """Return numbers as one text literal, which Spark parses faster than many numbers."""
    return f"CAST(split('{','.join(map(str, numbers))}', ',') AS ARRAY<BIGINT>)"


def value_at(values: Sequence[int], positions: Sequence[int], way: Literal["<", "<="] = "<=") -> str:
    """Return the value for the number of ascending positions that the row has reached."""
    return f"get({array(values)}, {reached(array(positions), len(positions), way)})"
