"""The rows of a DataFrame of the user's for a profile, in the order in which Spark gives them."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

from rowtime.core.errors import refuse
from rowtime.operators.contract import quoted
from rowtime.profiling.reading import Input, by_spark
from rowtime.profiling.stretches import Counted, Reading
from rowtime.runtime.session import active, derive
from rowtime.runtime.sources.batches import rehomed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WRITER = "rows"


class FrameReader:
    """Reads the rows of a DataFrame: one writer, whose positions ascend with the partitions of Spark and in them."""

    def __init__(self, frame: DataFrame, time: str | None, also: Input) -> None:
        if frame.isStreaming:
            hint = "Read the same source with spark.read, or profile its files, table or topic."
            raise refuse("R124", "the DataFrame is streaming, so it has no end", hint)
        self.time = _time_of(frame, time)
        for name in filter(None, (also.writer, *also.key)):
            _check_column(frame, name)
        self.also, self.session = also, derive(frame.sparkSession)
        self.rows = rehomed(frame, self.session).selectExpr(*self._columns())

    def _columns(self) -> list[str]:
        time = f"unix_micros(CAST({quoted(self.time)} AS TIMESTAMP))"
        columns = ["monotonically_increasing_id() AS p", f"{time} AS t"]
        writer = f"CAST({quoted(self.also.writer)} AS STRING)" if self.also.writer else "''"
        columns += [f"{writer} AS k"] if self.also.writer else []
        key = [quoted(name) for name in self.also.key]
        return columns + ([f"xxhash64({writer}, {time}, {', '.join(key)}) AS h"] if key else [])

    def read(self, *, ordered: bool = False, early: int | None = None) -> list[Counted]:
        """Return what each task has counted; ``ordered``: all rows in one task, behind a guard ``early`` (µs)."""
        reading = Reading(WRITER, ordered=ordered, early=early)
        with active(self.session):
            reports = by_spark(self.rows, reading, 1).toArrow()["report"].to_pylist()
        return [pickle.loads(report) for report in reports]  # noqa: S301 - our own


def _time_of(frame: DataFrame, time: str | None) -> str:
    """Return the column of times. Raises ``Refused``: R103, R621."""
    kinds = {field.name: field.dataType.typeName() for field in frame.schema.fields}
    if time is not None:
        _check_column(frame, time)
        kind = next(of for name, of in kinds.items() if name.lower() == time.lower())
        if not kind.startswith("timestamp"):
            raise refuse("R621", f"the column {time} has the type {kind.upper()}", "Convert it to a timestamp.")
        return time
    times = [name for name, kind in kinds.items() if kind.startswith("timestamp")]
    if len(times) != 1:
        have = f"the timestamps {', '.join(times)}" if times else "no timestamp"
        raise refuse("R621", f"the DataFrame has {have}, so it is not known which time to profile", 'Give time="…".')
    return times[0]


def _check_column(frame: DataFrame, name: str) -> None:
    if name.lower() not in {column.lower() for column in frame.columns}:
        raise refuse("R103", f"the DataFrame has no column {name}", f"Its columns are {', '.join(frame.columns)}.")
