"""Windows over events as such: a window holds every event that it overlaps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowtime.core.columns import DUE, HIGHEST, LIFETIME_END, LIFETIME_START, LOWEST, START, STOP, WINDOW_END
from rowtime.core.time import END
from rowtime.operators.contract import passed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def first_start(bound: int, size: int, hop: int, offset: int) -> int:
    """Where the first window begins that ends behind a bound."""
    return bound + hop - (bound - offset - size) % hop - size


def clipped(size: int, clips: str) -> list[str]:
    """The lifetime in a window, as aggregates see it: its end is never beyond that of the window, for it may change."""
    if not clips:
        return []
    start = f"greatest({START}, {WINDOW_END} - {size}L)" if clips == "both" else START
    times = {LIFETIME_START: start, LIFETIME_END: f"least({STOP}, {WINDOW_END})"}
    return [f"timestamp_micros({micros}) AS {name}" for name, micros in times.items()]


def last_window(size: int, hop: int, offset: int) -> str:
    """The end of the last window that overlaps an event; END of one that has none."""
    return f"IF({STOP} < {END}L, {STOP} - 1 - pmod({STOP} - 1 - {offset}L, {hop}L) + {size}L, {END}L)"


def in_windows(events: DataFrame, span: tuple[int, int], size: int, hop: int, offset: int) -> DataFrame:
    """Events (with `START`, `STOP`, `DUE`), each once for every window it overlaps that ends in ``span``."""
    before, bound = span
    after = f"greatest({START}, {passed(before, START)})"
    first = f"{after} + {hop}L - pmod({after} - {offset + size}L, {hop}L)"
    events = events.selectExpr("*", f"{first} AS {LOWEST}", f"least({DUE}, {passed(bound, DUE)}) AS {HIGHEST}").where(
        f"{LOWEST} <= {HIGHEST}"
    )
    return events.selectExpr("*", f"explode(sequence({LOWEST}, {HIGHEST}, {hop}L)) AS {WINDOW_END}").drop(
        LOWEST, HIGHEST
    )
