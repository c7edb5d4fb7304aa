"""Values of ours as Spark SQL text."""

from __future__ import annotations


def micros(at: int) -> str:
    """An instant as Spark SQL text of type TIMESTAMP."""
    return f"timestamp_micros({at}L)"


def passed(value: int, column: str) -> str:
    """A BIGINT that differs from tick to tick, as Spark SQL whose compiled code does not.

    Spark compiles numbers into its code, and keeps an array beside it: a comparison with a new number would start cold
    in every tick. The index is 0 whatever is in ``column`` (BIGINT, never null); so nothing is folded.
    """
    return f"get(array({value}L), CAST(pmod({column}, 1L) AS INT))"
