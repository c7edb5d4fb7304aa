"""RESYNC AFTER n ROWS: how many rows near a jump let it count, of a stream's guard or a T-sort's (SPEC 7.2)."""

from __future__ import annotations

from rowtime.core.errors import Place, refuse
from rowtime.operators.streams.stream import Stream

MOST_ROWS = 1000  # fewer than twice as many are kept a writer


def rows_of(given: str, place: Place) -> int:
    """The number, 0 for no text; raises ``Refused`` (R122)."""
    count = int(given) if given.isdigit() else 0
    if given and not 0 < count <= MOST_ROWS:
        what = f"RESYNC AFTER counts 1 to {MOST_ROWS} rows"
        raise refuse("R122", what, "For example RESYNC AFTER 3 ROWS.", place)
    return count


def check_resync(stream: Stream) -> None:
    """What RESYNC of a stream does not go with yet. Raises ``Refused`` (R190)."""
    why, hint = "", "Keep the time in a column, and write RESYNC in a T-sort: ORDER BY t WITHIN … EARLY BEYOND …."
    if stream.batched:
        why, hint = "whose rows come in sets without an order", "Name a position column."
    elif stream.event_bounds or stream.column_bounds:
        why = "with bounds of an event time" if stream.event_bounds else "with columns of declared order"
    if why:
        raise refuse("R190", f"RESYNC of a stream {why} is not supported yet", hint)
