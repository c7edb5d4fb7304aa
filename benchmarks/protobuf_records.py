"""A million Protobuf records of five fields, decoded and encoded: by rowtime, and by Google's package row by row.

    python -m benchmarks.protobuf_records

prints the seconds of the best of three, in one process without Spark, and in Spark with two cores.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from google.protobuf import message_factory
from pyspark.sql import SparkSession

from benchmarks.schema_records import _best
from rowtime.core.columns import SCHEMA_ID
from rowtime.kernels.protobuf_decoding import decode
from rowtime.kernels.protobuf_encoding import encode
from rowtime.kernels.varints import Memory
from rowtime.kernels.wire_tokens import Spans
from rowtime.runtime.schemas.protobuf import compiled
from rowtime.runtime.schemas.protobuf_shape import shape_of, struct_text
from rowtime.runtime.schemas.registry import Schema
from rowtime.runtime.sources.protobuf_rows import Decoding, heads_of, with_decoded

ROWS, BATCH = 1_000_000, 10_000
SCHEMA = Schema(
    """syntax = "proto3"; import "google/protobuf/timestamp.proto"; message Trip { string vehicle = 1;
    optional double km = 2; google.protobuf.Timestamp ended = 3; int32 n = 4; repeated string tags = 5; }""",
    "PROTOBUF",
)
FILE = compiled(SCHEMA)
MESSAGE = FILE.message("Trip")
SHAPE = shape_of(MESSAGE)
HEAD = b"\0\0\0\0\1\0"


def google() -> Any:
    """Return the class of Google's package."""
    return message_factory.GetMessageClass(compiled(SCHEMA)._descriptor.message_types_by_name["Trip"])  # noqa: SLF001


def values() -> list[bytes]:
    """Return the records."""
    made, found = google(), []
    for n in range(ROWS):
        trip = made(vehicle=f"v{n % 1000}", n=n, tags=[f"t{n % 7}", "u"][: n % 3])
        if n % 10:
            trip.km = n / 10
        trip.ended.FromMicroseconds(1_704_067_200_000_000 + 1000 * n)
        found.append(HEAD + trip.SerializeToString())
    return found


def decoded(batch: pa.BinaryArray) -> pa.StructArray:
    """Decode with rowtime."""
    offsets = np.frombuffer(batch.buffers()[1], np.int32).astype(np.int64)
    memory = Memory(np.frombuffer(batch.buffers()[2], np.uint8))
    return decode(MESSAGE, SHAPE.wanted, Spans(memory, offsets[:-1] + len(HEAD), offsets[1:]))[0]


def by_rows(made: Any, values: Iterable[bytes]) -> pa.StructArray:
    """Decode with Google's package, which gives a Python object for each record."""
    columns: list[list[Any]] = [[], [], [], [], []]
    for value in values:
        trip = made.FromString(value[len(HEAD) :])
        columns[0].append(trip.vehicle)
        columns[1].append(trip.km if trip.HasField("km") else None)
        columns[2].append(trip.ended.ToMicroseconds() if trip.HasField("ended") else None)
        columns[3].append(trip.n)
        columns[4].append(list(trip.tags))
    kinds = [pa.string(), pa.float64(), pa.timestamp("us", "UTC"), pa.int32(), pa.list_(pa.string())]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return pa.StructArray.from_arrays(arrays, [one.name for one in MESSAGE.fields])


def rows_encoded(made: Any, rows: pa.StructArray) -> list[bytes]:
    """Encode with Google's package."""
    found = []
    for row in rows.to_pylist():
        trip = made(vehicle=row["vehicle"], km=row["km"], n=row["n"], tags=row["tags"])
        if row["ended"] is not None:
            trip.ended.FromDatetime(row["ended"])
        found.append(HEAD + trip.SerializeToString())
    return found


def alone(values: list[bytes]) -> None:
    """Measure without Spark."""
    batches = [pa.array(values[at : at + BATCH], pa.binary()) for at in range(0, ROWS, BATCH)]
    rows, made = [decoded(batch) for batch in batches], google()
    assert rows[0].equals(by_rows(made, values[:BATCH]))
    assert encode(MESSAGE, rows[0]).to_pylist() == [one[len(HEAD) :] for one in values[:BATCH]]
    print(f"decode: {_best(lambda: [decoded(batch) for batch in batches]):.2f} s")
    google_s = _best(lambda: [by_rows(made, batch.to_pylist()) for batch in batches])
    print(f"decode with Google's package: {google_s:.2f} s")
    print(f"encode: {_best(lambda: [encode(MESSAGE, one) for one in rows]):.2f} s")
    google_s = _best(lambda: [rows_encoded(made, one) for one in rows])
    print(f"encode with Google's package: {google_s:.2f} s")


def in_spark(values: list[bytes], folder: Path) -> None:
    """Measure in Spark's workers, from two Parquet files."""
    for part in (0, 1):
        table = pa.table({"value": pa.array(values[part::2], pa.binary())})
        pq.write_table(table, folder / f"{part}.parquet")
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    records = spark.read.parquet(str(folder)).selectExpr("named_struct('value', value) AS __k", f"1L AS {SCHEMA_ID}")
    kind = struct_text(SHAPE.types)
    ours = with_decoded(records, [Decoding(1, heads_of([0]), MESSAGE, SHAPE.wanted, "__d1", kind)])

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        made = google()
        for batch in batches:
            found = by_rows(made, batch["__k"].field("value").to_pylist())
            yield pa.RecordBatch.from_arrays([found], ["__d1"])

    theirs = records.mapInArrow(rows, f"__d1 {kind}")
    for name, frame in (("only read", records), ("rowtime", ours), ("Google's package", theirs)):
        seconds = _best(lambda frame=frame: frame.write.format("noop").mode("overwrite").save())  # type: ignore[misc]
        print(f"in Spark, {name}: {seconds:.2f} s")
    spark.stop()


if __name__ == "__main__":
    RECORDS = values()
    alone(RECORDS)
    with tempfile.TemporaryDirectory() as where:
        in_spark(RECORDS, Path(where))
