"""Values as Spark SQL text."""

from __future__ import annotations


def micros(at: int) -> str:
    """Return an instant as Spark SQL text of type TIMESTAMP."""
    return f"timestamp_micros({at}L)"


def passed(value: int, column: str) -> str:
    """Return a BIGINT that differs from tick to tick as Spark SQL whose prepared query stays the same.

    It becomes a parameter (`frames.prepared`). In Spark, the index is 0 whatever is in ``column`` (BIGINT, never null).
    """
    return f"get(array({value}L), CAST(pmod({column}, 1L) AS INT))"
