"""Streams whose rowtime is the arrival time (semantics 2.4): recorded by the source, without a declared column."""

from __future__ import annotations

from typing import Final

RECORDED: Final = frozenset({"csv", "json", "parquet", "kafka", "rate", "delta", "iceberg", "ledger", "dataframe"})
"""Formats whose rows have no rowtime of their own, unless the stream declares a column for it. A log is not one."""
FILES: Final = frozenset({"csv", "json", "parquet"})
_NAMED_BY: Final = ("rowtime.column", "rowtime")  # the latter is that of a Frame


def is_timed_by_arrival(source: tuple[str, tuple[tuple[str, str], ...]]) -> bool:
    """Return True if every rowtime of a stream is its row's arrival time; ``source``: format and options."""
    return source[0] in RECORDED and not named_rowtime(source)


def named_rowtime(source: tuple[str, tuple[tuple[str, str], ...]]) -> str:
    """Return the name of the column or field that gives the rowtimes of a recorded stream; empty if there is none."""
    kind, options = source
    names = (value for name, value in options if name.lower() in _NAMED_BY) if kind in RECORDED else iter(())
    return next(filter(None, names), "")


def is_timed_by_files(source: tuple[str, tuple[tuple[str, str], ...]]) -> bool:
    """Return True if every rowtime of a stream is the time of change of a file."""
    return source[0] in FILES and is_timed_by_arrival(source)
