"""Snapshots as such: the times between each two changes of a group, with the events that are alive in them.

What is added and taken away again needs only sums (`Snapshot`). Any other aggregate needs the
events themselves: each of them, once for every snapshot that it lasts through.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rowtime.core.columns import NEXT_SNAPSHOT, SNAPSHOT_AT, STOP
from rowtime.operators.contract import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def in_snapshots(events: DataFrame, start: str, by: Sequence[str]) -> DataFrame:
    """Events (``start``, `STOP`), each once for every snapshot of its group ``by`` (quoted names) that it is in."""
    groups = f"PARTITION BY {', '.join(by)}" if by else ""
    times = events.selectExpr(*by, f"explode(array({start}, {STOP})) AS {SNAPSHOT_AT}").distinct()
    times = times.selectExpr(
        *(f"{name} AS __g{n}" for n, name in enumerate(by)),
        SNAPSHOT_AT,
        f"row_number() OVER ({groups} ORDER BY {SNAPSHOT_AT}) AS __n0",
        f"lead({SNAPSHOT_AT}) OVER ({groups} ORDER BY {SNAPSHOT_AT}) AS {NEXT_SNAPSHOT}",
    )
    same = "".join(f" AND {name} <=> __g{n}" for n, name in enumerate(by))
    hidden = [f"__g{n}" for n in range(len(by))]
    found = events
    for time, number in ((start, "__first"), (STOP, "__last")):
        found = found.join(times, F.expr(f"{time} = {SNAPSHOT_AT}{same}")).withColumnRenamed("__n0", number)
        found = found.drop(SNAPSHOT_AT, NEXT_SNAPSHOT, *hidden)
    each = found.selectExpr("*", "explode(sequence(__first, __last - 1)) AS __snapshot").drop("__first", "__last")
    return each.join(times, F.expr(f"__snapshot = __n0{same}")).drop("__snapshot", "__n0", *hidden)
