"""Rows that only Spark reads, on their way to the task that computes a tick, in the same job.

Tasks of Spark read and decode them, as many as there are partitions, and one shuffle brings them together. Few rows are
read by the task that computes, without a shuffle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from rowtime.frames.kinds import holds
from rowtime.frames.tables import Column
from rowtime.runtime.intake import Taken
from rowtime.runtime.late_session import NeedsSparkError
from rowtime.runtime.local_rows import fields_of, read_once
from rowtime.runtime.sources.contract import Slice, Source
from rowtime.runtime.sources.scanned import Scanned

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FEW: Final = 20_000
"""Rows of a tick that one task reads and computes."""
_STREAM: Final = "stream"
Read = Mapping[str, Sequence[pa.Table]]
"""What was read of each scanned stream."""


@dataclass(frozen=True)
class Scan:
    """The rows of one stream, as Spark reads them; ``most``: how many there may be, if known."""

    stream: str
    rows: DataFrame
    fields: Sequence[Column]
    most: int | None


def scans_of(spark: SparkSession, taken: Mapping[str, Taken]) -> list[Scan]:
    """Return the ranges of a tick that only Spark reads.

    Raises ``NeedsSparkError`` if one of them has a column that only Spark can hold.
    """
    return [
        _scan(spark, name, of.source, of.part)
        for name, of in taken.items()
        if of.part.rows != 0 and not of.part.empty and not reads_itself(of.source, of.part)
    ]


def reads_itself(source: Source, part: Slice) -> bool:
    """Return True if any process can read a range of the source without Spark."""
    given = getattr(source, "given", None)
    read = None if given is None else given(part)
    return read is not None and all(holds(kind) for _, kind in read[0])


def _scan(spark: SparkSession, name: str, source: Source, part: Slice) -> Scan:
    rows = read_once(spark, source, part)
    fields = fields_of(rows)
    unheld = [f"{column} {kind}" for column, kind in fields if not holds(kind)]
    if unheld:
        raise NeedsSparkError(f"the column {unheld[0]} of {name}")
    return Scan(name, rows, fields, part.rows)


def without_sources(taken: Mapping[str, Taken], scans: Sequence[Scan]) -> dict[str, Taken]:
    """Return the ranges of a tick, with what the task has in the place of the sources that Spark reads."""

    def scanned(of: Taken, fields: Sequence[Column]) -> Taken:
        return replace(of, source=Scanned.of(of.source, fields))

    return {**taken, **{one.stream: scanned(taken[one.stream], one.fields) for one in scans}}


def with_read(taken: Mapping[str, Taken], read: Read) -> dict[str, Taken]:
    """Return the ranges of a tick with the rows that were read of them."""

    def holding(of: Taken, tables: Sequence[pa.Table]) -> Taken:
        assert isinstance(of.source, Scanned)
        return replace(of, source=of.source.holding(tables))

    return {name: holding(of, read[name]) if name in read else of for name, of in taken.items()}


def in_one_task(spark: SparkSession, scans: Sequence[Scan]) -> DataFrame:
    """Return the rows of all scans in one partition, with the number of their scan.

    Each scan has columns of its own. A row of no scan lets the task run in any case.
    """
    parts = [
        one.rows.toDF(*_columns(number, one)).selectExpr(f"{number} AS {_STREAM}", "*")
        for number, one in enumerate(scans)
    ]
    first = spark.range(0, 1, 1, 1).selectExpr(f"-1 AS {_STREAM}")
    whole = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), [first, *parts])
    few = sum(FEW + 1 if one.most is None else one.most for one in scans) <= FEW
    return whole.coalesce(1) if few else whole.repartition(1)


def apart(streams: Mapping[str, Sequence[Column]], batches: Iterable[pa.RecordBatch]) -> Read:
    """Return the rows of `in_one_task` by stream; ``streams``: the scans' names and columns, in their order."""
    tables: dict[str, list[pa.Table]] = {name: [] for name in streams}
    for batch in batches:
        whole = pa.Table.from_batches([batch])
        for number, (name, fields) in enumerate(streams.items()):
            rows = whole.filter(pc.equal(whole[_STREAM], number))
            if rows.num_rows:
                columns = [rows[f"c{number}_{nth}"] for nth in range(len(fields))]
                tables[name].append(pa.table(columns, names=[column for column, _ in fields]))
    return tables


def read_here(scans: Sequence[Scan]) -> Read:
    """Return the rows in this process, as a task would have them."""
    return {one.stream: [one.rows.toArrow()] for one in scans}


def _columns(number: int, scan: Scan) -> list[str]:
    return [f"c{number}_{nth}" for nth in range(len(scan.fields))]
