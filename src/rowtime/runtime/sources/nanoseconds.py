"""Parquet files with times in nanoseconds, as pandas writes them: Spark cannot read these, so they are copied for it.

Arrow reads the files themselves (`parquet_rows`). The copy, for one tick, has the columns of the stream, and its times
in microseconds: further digits are cut off, as those of JSON are, so that a time never becomes later. Its rows are in
the same order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rowtime.runtime.sources.file_places import DAMAGED, footer, parquet
from rowtime.runtime.sources.parquet_rows import MICROS, cut, in_nanoseconds

TIMES: Mapping[str, pa.DataType] = {
    "TIMESTAMP": MICROS,
    "TIMESTAMP_LTZ": MICROS,
    "TIMESTAMP_NTZ": pa.timestamp("us"),
}


@dataclass(frozen=True)
class Nanoseconds:
    """The columns (Spark types by name) that a stream reads, at least one of them a time."""

    columns: Mapping[str, str]

    @classmethod
    def of(cls, columns: Mapping[str, str]) -> Nanoseconds | None:
        """Return the reader; ``None`` if no column is a time."""
        lower = {name.lower(): kind.upper() for name, kind in columns.items()}
        return cls(lower) if any(kind in TIMES for kind in lower.values()) else None

    def decode(self, path: str, target: Path) -> int | None:
        """Write a copy with microseconds to ``target``; return its number of rows, ``None`` if none is needed."""
        try:
            metadata = footer(path)
            times = dict(self._times(metadata))
            if not times:
                return None
            target.parent.mkdir(parents=True, exist_ok=True)
            with parquet(path, metadata) as file:
                return self._written(file, times, target)
        except DAMAGED:  # whoever reads the file says what is wrong with it
            target.unlink(missing_ok=True)
            return None

    def _times(self, metadata: pq.FileMetaData) -> Iterator[tuple[str, pa.DataType]]:
        """Yield the columns in nanoseconds that a stream reads as times, by their names in the file."""
        for field in metadata.schema.to_arrow_schema():
            wanted = TIMES.get(self.columns.get(field.name.lower(), ""))
            if wanted is not None and in_nanoseconds(metadata, field):
                yield field.name, wanted

    def _written(self, file: pq.ParquetFile, times: Mapping[str, pa.DataType], target: Path) -> int:
        schema = file.schema_arrow.remove_metadata()
        fields = [field for field in schema if field.name.lower() in self.columns]
        schema = pa.schema([field.with_type(times.get(field.name, field.type)) for field in fields])
        with pq.ParquetWriter(target, schema, compression="lz4") as rows:
            for number in range(file.num_row_groups):
                part = file.read_row_group(number, [field.name for field in fields]).select(schema.names)
                columns = [
                    cut(c, times[n]) if n in times else c for n, c in zip(schema.names, part.columns, strict=True)
                ]
                rows.write_table(pa.table(columns, schema=schema))
        return int(file.metadata.num_rows)
