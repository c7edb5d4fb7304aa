"""Rows that only Spark reads, on their way to the task that computes a tick, in the same job.

Tasks of Spark read and decode them, as many as there are partitions, and one shuffle brings them together. Few rows are
read by the task that computes, without a shuffle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from rowtime.core.columns import SCAN
from rowtime.frames.kinds import holds
from rowtime.frames.tables import Column, handed_out
from rowtime.runtime.intake import Taken
from rowtime.runtime.late_session import NeedsSparkError
from rowtime.runtime.local_rows import fields_of
from rowtime.runtime.sources.contract import Decoding, Scan, Slice, Source
from rowtime.runtime.sources.files import FilesSource
from rowtime.runtime.sources.scanned import Scanned
from rowtime.runtime.sources.tick_copies import TickCopies

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FEW: Final = 20_000
"""Rows of a tick that one task reads and computes."""
Read = Mapping[str, Sequence[pa.Table]]
"""What was read of each scanned stream."""


class Undecoded(Exception):
    """Rows that only Spark can decode were left to a task."""


@dataclass(frozen=True)
class StreamScan:
    """The scan of one stream; ``most``: how many rows there may be, if known."""

    stream: str
    scan: Scan
    most: int | None

    @property
    def form(self) -> Form:
        """The names of the columns that Spark reads, and what decodes them."""
        return self.scan.rows.columns, self.scan.decoding


Form = tuple[Sequence[str], Decoding | None]


def scans_of(spark: SparkSession, taken: Mapping[str, Taken]) -> list[StreamScan]:
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
    if isinstance(source, FilesSource) and source.waits and source.constants(part) is not None:
        return all(holds(kind) for _, kind in source.fields)
    read = source.given(part)
    return read is not None and all(holds(kind) for _, kind in read[0])


def waiting(source: Source) -> TickCopies | None:
    """Return the copies of a source's files that the process that computes is to make, if there are any."""
    return source.copied if isinstance(source, FilesSource) and source.waits else None


def copy_in(folder: Path, taken: Mapping[str, Taken]) -> None:
    """Make the copies that are waiting; raises ``Undecoded`` if that cannot be done for all files."""
    for number, of in enumerate(taken.values()):
        copied = waiting(of.source)
        if copied is not None and not copied.make(folder / str(number)) and of.source.decodes:
            raise Undecoded


def _scan(spark: SparkSession, name: str, source: Source, part: Slice) -> StreamScan:
    scan = source.scan(spark, part)
    unheld = [f"{column} {kind}" for column, kind in fields_of(scan) if not holds(kind)]
    if unheld:
        raise NeedsSparkError(f"the column {unheld[0]} of {name}")
    return StreamScan(name, scan, part.rows)


def by_spark(spark: SparkSession, taken: Mapping[str, Taken]) -> list[StreamScan]:
    """Return the scans of a tick of which Spark decodes all rows."""
    for of in taken.values():
        copied = waiting(of.source)
        if copied is not None:
            copied.leave()
    return [replace(one, scan=one.scan.by_spark) for one in scans_of(spark, taken)]


def without_sources(taken: Mapping[str, Taken], scans: Sequence[StreamScan]) -> dict[str, Taken]:
    """Return the ranges of a tick, with what the task has in the place of the sources that Spark reads."""

    def scanned(of: Taken, fields: Sequence[Column]) -> Taken:
        return replace(of, source=Scanned.of(of.source, fields))

    return {**taken, **{one.stream: scanned(taken[one.stream], fields_of(one.scan)) for one in scans}}


def without_rows(spark: SparkSession, taken: Mapping[str, Taken]) -> dict[str, Taken]:
    """Return the ranges of a tick with sources that have the same columns, and no rows."""

    def empty(of: Taken) -> Taken:
        read = None if waiting(of.source) else of.source.given(of.part)
        if isinstance(of.source, FilesSource) and waiting(of.source):
            fields: Sequence[Column] = of.source.fields
        else:
            fields = fields_of(of.source.scan(spark, of.part)) if read is None else read[0]
        return replace(of, source=Scanned.of(of.source, fields))

    return {name: empty(of) if of.part.rows != 0 and not of.part.empty else of for name, of in taken.items()}


def with_read(taken: Mapping[str, Taken], read: Read) -> dict[str, Taken]:
    """Return the ranges of a tick with the rows that were read of them."""

    def holding(of: Taken, tables: Sequence[pa.Table]) -> Taken:
        assert isinstance(of.source, Scanned)
        return replace(of, source=of.source.holding(tables))

    return {name: holding(of, read[name]) if name in read else of for name, of in taken.items()}


def in_one_task(spark: SparkSession, scans: Sequence[StreamScan]) -> DataFrame:
    """Return the rows of all scans in one partition."""
    few = sum(FEW + 1 if one.most is None else one.most for one in scans) <= FEW
    return united(spark, scans).coalesce(1) if few else united(spark, scans).repartition(1)


def united(spark: SparkSession, scans: Sequence[StreamScan]) -> DataFrame:
    """Return the rows of all scans, with the number of their scan.

    Each scan has columns of its own. A row of no scan lets a task run in any case.
    """
    parts = [
        one.scan.rows.toDF(*_columns(number, one.form)).selectExpr(f"{number} AS {SCAN}", "*")
        for number, one in enumerate(scans)
    ]
    first = spark.range(0, 1, 1, 1).selectExpr(f"-1 AS {SCAN}")
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), [first, *parts])


def apart(streams: Mapping[str, Form], batches: Iterable[pa.RecordBatch]) -> Read:
    """Return the rows of `in_one_task` by stream; ``streams``: the scans' forms, in their order.

    Raises ``Undecoded`` for rows that only Spark can decode.
    """
    tables: dict[str, list[pa.Table]] = {name: [] for name in streams}
    for batch in batches:
        whole = pa.Table.from_batches([batch])
        for number, (name, (columns, _)) in enumerate(streams.items()):
            rows = whole.filter(pc.equal(whole[SCAN], number))
            if rows.num_rows:
                tables[name].append(rows.select(_columns(number, streams[name])).rename_columns([*columns]))
    return {name: _decoded(decoding, tables[name]) for name, (_, decoding) in streams.items()}


def _decoded(decoding: Decoding | None, tables: Sequence[pa.Table]) -> Sequence[pa.Table]:
    if decoding is None or not tables:
        return tables
    rows, rest = decoding.decoded(pa.concat_tables(tables))
    if rest.num_rows:
        raise Undecoded
    return [rows]


def read_here(scans: Sequence[StreamScan]) -> Read:
    """Return the rows in this process, as a task would have them."""
    return {one.stream: _decoded(one.scan.decoding, [handed_out(one.scan.rows)]) for one in scans}


def _columns(number: int, form: Form) -> list[str]:
    return [f"{SCAN}{number}_{nth}" for nth in range(len(form[0]))]
