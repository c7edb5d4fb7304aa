"""Values as Spark SQL text."""

from __future__ import annotations


def micros(at: int) -> str:
    """Return an instant as Spark SQL text of type TIMESTAMP."""
    return f"timestamp_micros({at}L)"


def passed(value: int, column: str) -> str:
    """Return a BIGINT that differs from tick to tick as Spark SQL whose compiled code stays the same.

    Spark compiles numbers into its code, but passes an array to it: a comparison with a new number would be compiled
    again in every tick. The index is 0 whatever is in ``column`` (BIGINT, never null), so nothing is folded.
    """
    return f"get(array({value}L), CAST(pmod({column}, 1L) AS INT))"
