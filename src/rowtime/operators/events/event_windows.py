"""Windows over events as such: a window holds every event that it overlaps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowtime.core.time import END
from rowtime.operators.contract import passed
from rowtime.operators.events.event_groups import FROM
from rowtime.operators.rows.lifetimes import E, N

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WINDOW = "__z"  # the end of a window, µs


def first_start(bound: int, size: int, hop: int, offset: int) -> int:
    """Where the first window begins that ends behind a bound."""
    return bound + hop - (bound - offset - size) % hop - size


def clipped(size: int, clips: str) -> list[str]:
    """The lifetime in a window, as aggregates see it: its end is never beyond that of the window, for it may change."""
    if not clips:
        return []
    start = f"greatest({FROM}, {WINDOW} - {size}L)" if clips == "both" else FROM
    times = {"__lifetime_start": start, "__lifetime_end": f"least({E}, {WINDOW})"}
    return [f"timestamp_micros({micros}) AS {name}" for name, micros in times.items()]


def last_window(size: int, hop: int, offset: int) -> str:
    """The end of the last window that overlaps an event; END of one that has none."""
    return f"IF({E} < {END}L, {E} - 1 - pmod({E} - 1 - {offset}L, {hop}L) + {size}L, {END}L)"


def in_windows(events: DataFrame, span: tuple[int, int], size: int, hop: int, offset: int) -> DataFrame:
    """Events (`FROM`, `E`, `N` as in `last_window`), each once for every window it overlaps that ends in ``span``."""
    before, bound = span
    after = f"greatest({FROM}, {passed(before, FROM)})"
    first = f"{after} + {hop}L - pmod({after} - {offset + size}L, {hop}L)"
    events = events.selectExpr("*", f"{first} AS __lo", f"least({N}, {passed(bound, N)}) AS __hi").where("__lo <= __hi")
    return events.selectExpr("*", f"explode(sequence(__lo, __hi, {hop}L)) AS {WINDOW}").drop("__lo", "__hi")
