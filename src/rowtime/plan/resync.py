"""RESYNC AFTER n ROWS: how many rows near a jump let it count, of a stream's guard or a T-sort's (SPEC 7.2)."""

from __future__ import annotations

from rowtime.core.errors import Place, Problem

MOST_ROWS = 1000  # fewer than twice as many are kept a writer


def rows_of(given: str, place: Place) -> tuple[int, Problem | None]:
    """The number, 0 for no text; what is wrong with it (R122)."""
    if not given:
        return 0, None
    count = int(given) if given.isdigit() else 0
    if 0 < count <= MOST_ROWS:
        return count, None
    what = f"RESYNC AFTER counts 1 to {MOST_ROWS} rows"
    return 0, Problem("R122", what, place, "For example RESYNC AFTER 3 ROWS.")
