"""Records of Kafka with plain JSON: Spark reads them, and any process decodes their values.

The bounds in headers, and records without a value, are Spark's; `kafka_rows` says what all of them mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowtime.core.columns import ARRIVAL, BOUND, MALFORMED, POSITION, ROWTIME, WRITER
from rowtime.expr.store_assignment import as_read
from rowtime.frames.kinds import arrow_of, named
from rowtime.frames.queries import SETTINGS
from rowtime.runtime.brokers import Partition
from rowtime.runtime.sources.json_decoding import PlainJson
from rowtime.runtime.sources.kafka_rows import RECORD, VALUE, Columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_HIDDEN: Final = (
    (ROWTIME, "timestamp"),
    (WRITER, "string"),
    (POSITION, "bigint"),
    (ARRIVAL, "timestamp"),
    (BOUND, "timestamp"),
    (MALFORMED, "string"),
)
_RECORDS: Final = 10_000  # decoded at once


def records_of(spark: SparkSession, rest: pa.Table) -> DataFrame:
    """Return rows of `values_of` with a value as the records that they were; these have no bounds."""
    writers = rest[WRITER].combine_chunks().dictionary_encode()
    places = [Partition.of(writer) for writer in writers.dictionary.to_pylist()]
    topics, numbers = (pa.array([place[nth] for place in places]).take(writers.indices) for nth in (0, 1))
    given = {"value": rest[VALUE], "topic": topics, "partition": numbers, "offset": rest[POSITION]}
    records = spark.createDataFrame(pa.table({**given, "timestamp": rest[ARRIVAL]}))
    return records.selectExpr(
        *(f"CAST({name if name in records.columns else 'NULL'} AS {kind}) AS {name}" for name, kind in RECORD.items())
    )


@dataclass(frozen=True)
class PlainRecords:
    """What decodes the values; ``rowtime``: the field for the rowtime, if any."""

    plain: PlainJson
    columns: Columns
    rowtime: str | None

    @classmethod
    def of(cls, columns: Columns, rowtime: str | None, options: Mapping[str, str]) -> PlainRecords | None:
        """Return it for declared columns; ``None`` if a type is not supported."""
        kinds = dict(columns)
        if rowtime is not None and kinds.setdefault(rowtime, "TIMESTAMP").strip().upper() != "TIMESTAMP":
            return None
        units = {} if rowtime is None else {rowtime: "MICROSECOND"}
        plain = PlainJson.of(kinds, options, units) if len(dict(columns)) == len(columns) else None
        return None if plain is None else cls(plain, columns, rowtime)

    @cached_property
    def fields(self) -> Sequence[tuple[str, str]]:
        """The declared columns and the hidden ones, with their types."""
        return [*((name, named(as_read(kind))) for name, kind in self.columns), *_HIDDEN]

    def decoded(self, read: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Return the source's rows, and those of ``read`` that only Spark can decode."""
        pieces = [pa.Table.from_batches([piece]) for piece in read.to_batches(_RECORDS)]
        with ThreadPoolExecutor(int(SETTINGS.get("threads", 0)) or None) as pool:
            decoded = list(pool.map(self._piece, pieces))
        empty = pa.schema([(name, arrow_of(kind)) for name, kind in self.fields]).empty_table()
        rows = pa.concat_tables([empty, *(rows for rows, _ in decoded)])
        return rows, pa.concat_tables([read.slice(0, 0), *(rest for _, rest in decoded)])

    def _piece(self, read: pa.Table) -> tuple[pa.Table, pa.Table]:
        values = read[VALUE].combine_chunks().cast(pa.binary())
        valued = values.is_valid()
        table, plain = self.plain.records(values.drop_null())
        places = np.flatnonzero(valued.to_numpy(zero_copy_only=False))
        nth = np.full(len(values), -1, np.int64)  # of the decoded rows
        nth[places[plain]] = np.arange(np.count_nonzero(plain))
        kept = np.ones(len(values), np.bool_)
        kept[places[~plain]] = False
        taken = pa.array(nth[kept], mask=nth[kept] < 0)
        rows = read.filter(pa.array(kept))
        return self._shown(rows, table, taken), read.filter(pc.invert(pa.array(kept)))

    def _shown(self, rows: pa.Table, table: pa.Table | None, taken: pa.Array) -> pa.Table:
        columns = []
        for name, kind in self.fields:
            source = self.rowtime if name == ROWTIME else name
            if name != ROWTIME and name in rows.column_names and name in dict(_HIDDEN):
                column = rows[name]
            elif source is None or table is None:
                column = pa.nulls(rows.num_rows)
            else:
                column = table[source].take(taken)
            columns.append(column.cast(arrow_of(kind)))
        return pa.table(columns, names=[name for name, _ in self.fields])
