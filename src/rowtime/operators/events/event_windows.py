"""Windows and snapshots over events: each contains every event that it overlaps.

Snapshots are the times between two successive changes of a group. An aggregate that can be added to and subtracted from
needs only sums (`Snapshot`). Any other aggregate needs the events: each of them, once for every snapshot in which it is
alive.
"""

from __future__ import annotations

from collections.abc import Sequence

from rowtime.core.columns import (
    CHOICE,
    DUE,
    HIGHEST,
    LIFETIME_END,
    LIFETIME_START,
    LOWEST,
    NEXT_SNAPSHOT,
    SNAPSHOT_AT,
    START,
    STOP,
    WINDOW_END,
)
from rowtime.core.time import END
from rowtime.frames.frame import Frame
from rowtime.operators.contract import passed
from rowtime.operators.rows.lifetimes import TWICE


def first_start(bound: int, size: int, hop: int, offset: int) -> int:
    """Return the start of the first window that ends after a bound."""
    return bound + hop - (bound - offset - size) % hop - size


def clipped(size: int, clips: str) -> list[str]:
    """Return the lifetime in a window, as aggregates see it: its end is at most the window's, because it may change."""
    if not clips:
        return []
    start = f"greatest({START}, {WINDOW_END} - {size}L)" if clips == "both" else START
    times = {LIFETIME_START: start, LIFETIME_END: f"least({STOP}, {WINDOW_END})"}
    return [f"timestamp_micros({micros}) AS {name}" for name, micros in times.items()]


def last_window(size: int, hop: int, offset: int) -> str:
    """Return the end of the last window that overlaps an event; END if there is none."""
    return f"IF({STOP} < {END}L, {STOP} - 1 - pmod({STOP} - 1 - {offset}L, {hop}L) + {size}L, {END}L)"


def in_windows(events: Frame, span: tuple[int, int], size: int, hop: int, offset: int) -> Frame:
    """Return events (with `START`, `STOP`, `DUE`), each once for every window it overlaps that ends in ``span``."""
    before, bound = span
    after = f"greatest({START}, {passed(before, START)})"
    first = f"{after} + {hop}L - pmod({after} - {offset + size}L, {hop}L)"
    events = events.selectExpr("*", f"{first} AS {LOWEST}", f"least({DUE}, {passed(bound, DUE)}) AS {HIGHEST}").where(
        f"{LOWEST} <= {HIGHEST}"
    )
    return events.selectExpr("*", f"explode(sequence({LOWEST}, {HIGHEST}, {hop}L)) AS {WINDOW_END}").drop(
        LOWEST, HIGHEST
    )


def in_snapshots(events: Frame, start: str, by: Sequence[str]) -> Frame:
    """Return events (``start``, `STOP`), each once per snapshot of its group ``by`` (quoted names) that it is in."""
    groups = f"PARTITION BY {', '.join(by)}" if by else ""
    times = events.selectExpr(*by, start, STOP, TWICE)
    times = (
        times.selectExpr(*by, f"IF({CHOICE} = 0L, {start}, {STOP}) AS {SNAPSHOT_AT}")
        .distinct()
        .selectExpr(
            *(f"{name} AS __g{n}" for n, name in enumerate(by)),
            SNAPSHOT_AT,
            f"row_number() OVER ({groups} ORDER BY {SNAPSHOT_AT}) AS __n0",
            f"lead({SNAPSHOT_AT}) OVER ({groups} ORDER BY {SNAPSHOT_AT}) AS {NEXT_SNAPSHOT}",
        )
    )
    same = "".join(f" AND {name} <=> __g{n}" for n, name in enumerate(by))
    hidden = [f"__g{n}" for n in range(len(by))]
    bounded = events
    for time, number in ((start, "__first"), (STOP, "__last")):
        bounded = bounded.joined(times, f"{time} = {SNAPSHOT_AT}{same}", "inner").withColumnRenamed("__n0", number)
        bounded = bounded.drop(SNAPSHOT_AT, NEXT_SNAPSHOT, *hidden)
    each = bounded.selectExpr("*", "explode(sequence(__first, __last - 1)) AS __snapshot").drop("__first", "__last")
    return each.joined(times, f"__snapshot = __n0{same}", "inner").drop("__snapshot", "__n0", *hidden)
