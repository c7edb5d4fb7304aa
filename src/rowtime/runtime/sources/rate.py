"""Spark's ``rate`` source over direct ranges: row n at start + n / rowsPerSecond.

The start is journaled with the first tick, so a row's timestamp is a function of its number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from rowtime.core.columns import ARRIVAL, POSITION, ROWTIME, WRITER
from rowtime.core.errors import refuse
from rowtime.core.time import SECOND
from rowtime.runtime.sources.contract import Limits, Offsets, Slice, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

THE_WRITER = "rate"


class RateSource(Source):
    """Columns ``timestamp`` and ``value``, as in Spark's source; option ``rowsPerSecond``."""

    in_band = False
    decodes = False
    gives_rowtime = False
    steady = True

    def __init__(self, options: Mapping[str, str], clock: Callable[[], int]) -> None:
        try:
            self._rate = int(options.get("rowsPerSecond", options.get("rowspersecond", "1")))
        except ValueError:
            self._rate = 0
        if self._rate < 1:
            raise refuse("R207", "rowsPerSecond must be a whole number above 0")
        self._clock = clock

    def discover(self, start: Offsets, limits: Limits, state: Mapping[str, Any]) -> tuple[Slice, Mapping[str, Any]]:
        """Return the rows that are due by now."""
        now, first = self._clock(), start.get(THE_WRITER, 0)
        origin = state.get("origin", now)
        due = max(first, (now - origin) * self._rate // SECOND)
        end = due if limits.rows is None else min(due, first + limits.rows)
        clock = now if end == due else self._time(origin, end)
        part = Slice(
            {THE_WRITER: first},
            {THE_WRITER: end},
            arrived={THE_WRITER: clock},
            rows=end - first,
            detail={"origin": origin},
        )
        return part, {"origin": origin}

    def between(self, start: Offsets, end: Offsets, state: Mapping[str, Any]) -> Slice:
        """Return the rows between two numbers."""
        return Slice(
            dict(start), dict(end), rows=end[THE_WRITER] - start.get(THE_WRITER, 0), detail={"origin": state["origin"]}
        )

    def read(self, spark: SparkSession, part: Slice) -> DataFrame:
        """Return the rows of a range of numbers."""
        rows = spark.range(part.start[THE_WRITER], part.end[THE_WRITER])
        time = f"timestamp_micros({part.detail['origin']}L + (id * {SECOND}L) DIV {self._rate})"
        return rows.selectExpr(
            f"{time} AS timestamp",
            "id AS value",
            f"CAST(NULL AS TIMESTAMP) AS {ROWTIME}",
            f"'{THE_WRITER}' AS {WRITER}",
            f"id AS {POSITION}",
            f"{time} AS {ARRIVAL}",
        )

    def finished(self, at: Offsets) -> bool:  # noqa: ARG002
        """Return False: there is always a next row."""
        return False

    def _time(self, origin: int, number: int) -> int:
        return origin + number * SECOND // self._rate
