"""Arrow columns as Protobuf's bytes: the same as Google's package writes for the same values."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest
from google.protobuf import message_factory
from hypothesis import given, settings
from hypothesis import strategies as st

from rowtime.kernels.protobuf_decoding import Reader
from rowtime.kernels.protobuf_encoding import Writer
from rowtime.kernels.protobuf_types import Message
from rowtime.runtime.schemas.protobuf import compiled
from rowtime.runtime.schemas.protobuf_shape import shape_of
from rowtime.runtime.schemas.registry import Schema
from tests.kernels import protobuf_oracle as oracle
from tests.kernels.test_protobuf_decoding import comparable

LEFT_OUT = ("group",)
"""Kinds that a pump does not write."""


def written_by(message: Message, seen: frozenset[str] = frozenset()) -> bool:
    """Return True if all fields of a message are of kinds that a pump writes."""
    inside = seen | {message.name}
    return all(
        one.kind not in LEFT_OUT
        and (one.message is None or (one.message.name not in inside and written_by(one.message, inside)))
        for one in message.fields
    )


def compare(seed: int) -> int:
    """Write rows, read them with Google's package, and return their number."""
    random = Random(seed)
    file = oracle.schema(random)
    message, made = oracle.ours(file)
    if not written_by(message):
        return 0
    wanted = shape_of(message).wanted
    found = [oracle.fill(random, made()) for _ in range(30)]
    data = [one.SerializePartialToString() for one in found if one.IsInitialized()]
    rows, bad = Reader(message, wanted).read(pa.array(data, pa.binary()))
    rows = rows.filter(pa.array(~bad))
    for part in (rows, rows[3:], rows[:1], rows[:0]):
        again = [
            comparable(oracle.expected(made, message, wanted, one))
            for one in Writer(message, part.type).write(part).to_pylist()
        ]
        assert again == comparable(part.to_pylist()), seed
    return len(rows)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_googles_package_reads_what_is_written(seed: int) -> None:
    compare(seed)


@pytest.mark.slow
def test_googles_package_reads_much_of_what_is_written() -> None:
    assert sum(map(compare, range(4000))) > 10_000


TRIP = """syntax = "proto3"; import "google/protobuf/timestamp.proto"; import "google/protobuf/duration.proto";
message Trip { optional string vehicle = 1; double km = 2; google.protobuf.Timestamp ended = 3; sint32 n = 4;
repeated string tags = 5; repeated int64 many = 16; Inner inner = 7; google.protobuf.Duration took = 9; float f = 10;
message Inner { bool b = 1; bytes c = 2; } }"""


def test_the_bytes_are_those_of_googles_package() -> None:
    file = compiled(Schema(TRIP, "PROTOBUF"))
    message, made = (
        file.message("Trip"),
        message_factory.GetMessageClass(file._descriptor.message_types_by_name["Trip"]),
    )
    wanted = shape_of(message).wanted
    trips = []
    for n in range(-20, 200):
        trip = made(vehicle=f"v{n}" if n % 3 else "", km=-0.0 if n % 2 else n, n=n, tags=["é"] * (n % 4), f=n / 7)
        trip.many.extend([n, -n, 2**62][: n % 3])
        trip.ended.FromMicroseconds(n * 1_700_000_123)
        trip.took.FromMicroseconds(n * 700_001)
        if n % 5:
            trip.inner.b = n % 2 == 0
        if n % 7 == 0:
            trip.ClearField("ended")
            trip.ClearField("vehicle")
        trips.append(trip.SerializeToString())
    rows, bad = Reader(message, wanted).read(pa.array(trips, pa.binary()))
    assert not bad.any()
    assert Writer(message, rows.type).write(rows).to_pylist() == trips


def test_a_null_inside_is_refused() -> None:
    message = compiled(Schema(TRIP, "PROTOBUF")).message("Trip")
    rows = pa.array([{"tags": ["a", None]}])
    with pytest.raises(ValueError, match="tags has a NULL inside"):
        Writer(message, rows.type).write(rows)
