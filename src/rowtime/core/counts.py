"""Counts in messages: ``1 tick``, ``2,000 ticks``."""

from __future__ import annotations


def counted(count: int, things: str) -> str:
    """Return a count of things, given in the plural: ``counted(1, "rows of a")`` is ``1 row of a``."""
    noun, space, rest = things.partition(" ")
    return f"{count:,} {noun.removesuffix('s') if count == 1 else noun}{space}{rest}"
