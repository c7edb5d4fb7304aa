"""Snapshots as such: the times between each two changes of a group, with the events that are alive in them.

What is added and taken away again needs only sums (`Snapshot`). Any other aggregate needs the
events themselves: each of them, once for every snapshot that it lasts through.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rowtime.operators.rows.lifetimes import E

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

AT, NEXT = "__t0", "__t1"  # BIGINT: where a snapshot begins and ends, µs


def in_snapshots(events: DataFrame, start: str, by: Sequence[str]) -> DataFrame:
    """Events (``start``, `E`), each once for every snapshot of its group ``by`` (names in Spark SQL) that it is in."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    groups = f"PARTITION BY {', '.join(by)}" if by else ""
    times = events.selectExpr(*by, f"explode(array({start}, {E})) AS {AT}").distinct()
    times = times.selectExpr(
        *(f"{name} AS __g{n}" for n, name in enumerate(by)),
        AT,
        f"row_number() OVER ({groups} ORDER BY {AT}) AS __n0",
        f"lead({AT}) OVER ({groups} ORDER BY {AT}) AS {NEXT}",
    )
    same = "".join(f" AND {name} <=> __g{n}" for n, name in enumerate(by))
    hidden = [f"__g{n}" for n in range(len(by))]
    found = events
    for time, number in ((start, "__first"), (E, "__last")):
        found = found.join(times, F.expr(f"{time} = {AT}{same}")).withColumnRenamed("__n0", number)
        found = found.drop(AT, NEXT, *hidden)
    each = found.selectExpr("*", "explode(sequence(__first, __last - 1)) AS __snapshot").drop("__first", "__last")
    return each.join(times, F.expr(f"__snapshot = __n0{same}")).drop("__snapshot", "__n0", *hidden)
