"""LEDGER: the counts of a pipeline's gates per tick, as a stream that its own queries can read (semantics 4)."""

from __future__ import annotations

from typing import Final

from rowtime.plan.bind.stream_defs import StreamDef

NAME: Final = "ledger"
REASONS: Final = (
    *("LATE", "EARLY", "OUT_OF_ORDER", "NULL_ROWTIME", "MALFORMED", "BROKEN_ORDER"),
    *("UNMATCHED_EDGE", "NO_PANE", "NO_PERMIT"),
)
"""The reasons why a gate refuses a row; each has a column."""
ADJUSTED: Final = "ADJUSTED"
"""Counts events that were accepted with an adjusted lifetime."""
COLUMNS: Final = (
    ("tick", "BIGINT"),
    ("committed_at", "TIMESTAMP"),
    ("gate", "STRING"),
    ("streams", "STRING"),
    ("rows_in", "BIGINT"),
    ("accepted", "BIGINT"),
    ("refused", "BIGINT"),
    *((reason.lower(), "BIGINT") for reason in REASONS),
    (ADJUSTED.lower(), "BIGINT"),
    ("bound", "TIMESTAMP"),
)
LEDGER: Final = StreamDef(NAME, COLUMNS, NAME)
"""The stream that the name means unless something else has it."""


def system_stream(name: str) -> StreamDef | None:
    """Return a stream that every pipeline has, by name."""
    return LEDGER if name.lower() == NAME else None
