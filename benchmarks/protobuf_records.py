"""Protobuf records, decoded and encoded: by rowtime (Google's package and ptars), and by Google's package row by row.

    python -m benchmarks.protobuf_records

prints the seconds of the best of three: for a million records of five fields in one process without Spark, and in Spark
with two cores; then for 200,000 orders with 17 fields, among them messages, maps and wrappers, without Spark.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from google.protobuf import message_factory
from pyspark.sql import SparkSession

from benchmarks.schema_records import _best
from rowtime.core.columns import SCHEMA_ID
from rowtime.kernels.protobuf_decoding import Reader
from rowtime.kernels.protobuf_encoding import Writer
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
ORDERS = 200_000
ORDER = Schema(
    """syntax = "proto3"; package shop; import "google/protobuf/timestamp.proto";
    import "google/protobuf/wrappers.proto"; import "google/protobuf/duration.proto";
    message Order { string id = 1; int64 customer = 2; google.protobuf.Timestamp placed = 3; Status status = 4;
      Address ship_to = 5; repeated Line lines = 6; map<string, string> attributes = 7;
      google.protobuf.StringValue note = 8; google.protobuf.Int64Value discount = 9;
      oneof payment { Card card = 10; string iban = 11; } uint64 total = 12; optional bool gift = 13;
      repeated int32 codes = 14; google.protobuf.Duration took = 15; double lat = 16; double lon = 17; }
    enum Status { NEW = 0; PAID = 1; SENT = 2; }
    message Address { string street = 1; string city = 2; string zip = 3; string country = 4; }
    message Line { string sku = 1; int32 quantity = 2; int64 cents = 3; }
    message Card { string brand = 1; string last = 2; }""",
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
    bodies = [one[len(HEAD) :] for one in values]
    batches, made, reader = in_batches(bodies), google(), Reader(MESSAGE, SHAPE.wanted)
    rows = [reader.read(batch)[0] for batch in batches]
    writer = Writer(MESSAGE, rows[0].type)
    assert rows[0].equals(by_rows(made, values[:BATCH]))
    assert writer.write(rows[0]).to_pylist() == bodies[:BATCH]
    print(f"decode: {_best(lambda: [reader.read(batch) for batch in batches]):.2f} s")
    google_s = _best(lambda: [by_rows(made, values[at : at + BATCH]) for at in range(0, ROWS, BATCH)])
    print(f"decode with Google's package: {google_s:.2f} s")
    print(f"encode: {_best(lambda: [writer.write(one) for one in rows]):.2f} s")
    google_s = _best(lambda: [rows_encoded(made, one) for one in rows])
    print(f"encode with Google's package: {google_s:.2f} s")


def in_batches(bodies: list[bytes]) -> list[pa.BinaryArray]:
    """Return records as arrays of the size of Spark's batches."""
    return [pa.array(bodies[at : at + BATCH], pa.binary()) for at in range(0, len(bodies), BATCH)]


def orders() -> None:
    """Measure records with nested messages, without Spark: good ones, and with one fault in each batch."""
    file = compiled(ORDER)
    made = message_factory.GetMessageClass(file._descriptor.message_types_by_name["Order"])  # noqa: SLF001
    message = file.message("shop.Order")
    reader = Reader(message, shape_of(message).wanted)
    bodies = [order(made, n).SerializeToString() for n in range(ORDERS)]
    rows = [reader.read(batch)[0] for batch in in_batches(bodies)]
    writer = Writer(message, rows[0].type)
    unknown = [body + b"\xf8\x01\x01" for body in bodies]  # the field 31, which the schema does not have
    faulty = [b"\xff" if n % BATCH == 1 else body for n, body in enumerate(bodies)]
    for name, items in (("good", bodies), ("one in 10,000 malformed", faulty), ("all with an unknown field", unknown)):
        batches = in_batches(items)
        print(f"orders, {name}: {_best(lambda batches=batches: [reader.read(one) for one in batches]):.2f} s")  # type: ignore[misc]
    print(f"encode orders: {_best(lambda: [writer.write(one) for one in rows]):.2f} s")


def order(made: Any, n: int) -> Any:
    """Return one order."""
    one = made(id=f"order-{n:09d}", customer=n * 7919, status=n % 3, total=n << 20, lat=n / 7, lon=n / 11)
    one.placed.FromMicroseconds(1_704_067_200_000_000 + 1001 * n)
    one.took.FromMicroseconds(700_001 * (n % 50))
    one.codes.extend(range(n % 4))
    one.ship_to.street, one.ship_to.city, one.ship_to.zip = f"Main street {n % 300}", "Zürich", f"{n % 90_000:05d}"
    for line in range(1 + n % 4):
        one.lines.add(sku=f"sku-{n * line % 5000}", quantity=1 + n % 3, cents=n % 100_000)
    for key in range(n % 3):
        one.attributes[f"key{key}"] = f"value {n % 17}"
    if n % 3 == 0:
        one.note.value, one.discount.value = "please ring twice", n % 100
    if n % 2:
        one.card.brand, one.card.last = "visa", f"{n % 10_000:04d}"
    else:
        one.iban = "DE89370400440532013000"
    return one


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
    orders()
    with tempfile.TemporaryDirectory() as where:
        in_spark(RECORDS, Path(where))
