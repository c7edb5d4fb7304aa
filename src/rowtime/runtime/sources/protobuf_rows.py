"""Records in Protobuf after a schema id: workers decode them, one Arrow batch at a time.

After the id come the indexes of a message in the schema (Confluent's wire format): their number, then each, as zigzag
varints. For the very first message they are a single zero. A record of another message than the stream's is malformed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import numpy as np
import pyarrow as pa
from pyspark.sql.types import StructType

from rowtime.core.columns import SCHEMA_ID
from rowtime.kernels.protobuf_decoding import decode
from rowtime.kernels.protobuf_types import Message, Wanted
from rowtime.kernels.varints import Memory, written_varints
from rowtime.kernels.wire_tokens import Spans

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HEAD: Final = 5  # bytes before the indexes: a zero, and the id


def heads_of(indexes: Sequence[int]) -> tuple[bytes, ...]:
    """Return the possible encodings of indexes, the usual one first."""
    numbers = np.array([len(indexes), *indexes], np.uint64) * np.uint64(2)  # zigzag of non-negative numbers
    whole = written_varints(numbers)[0].tobytes()
    return (b"\0", whole) if tuple(indexes) == (0,) else (whole,)


@dataclass(frozen=True)
class Decoding:
    """How records with one schema id are decoded, into the column ``name`` of a Spark type ``kind``."""

    number: int
    heads: tuple[bytes, ...]
    message: Message
    wanted: Wanted
    name: str
    kind: str


def with_decoded(frame: DataFrame, decodings: Sequence[Decoding]) -> DataFrame:
    """Return a frame with the decoded records (``__k.value``) of some schemas (`SCHEMA_ID`); NULL if malformed."""
    if not decodings:
        return frame
    added = cast(
        "StructType", StructType.fromDDL(", ".join(f"{decoding.name} {decoding.kind}" for decoding in decodings))
    )
    return frame.mapInArrow(_Decoder(tuple(decodings)), StructType([*frame.schema.fields, *added.fields]))


@dataclass(frozen=True)
class _Decoder:
    """Runs in Spark's workers."""

    decodings: tuple[Decoding, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            values, ids = batch["__k"].field("value"), batch[SCHEMA_ID].fill_null(-1).to_numpy()
            memory, offsets = _memory(values)
            arrays, names = list(batch.columns), list(batch.schema.names)
            for decoding in self.decodings:
                arrays.append(_decoded(decoding, memory, offsets, ids))
                names.append(decoding.name)
            yield pa.RecordBatch.from_arrays(arrays, names)


def _memory(values: pa.Array) -> tuple[Memory, np.ndarray]:
    """Return the bytes of all values, and where each begins."""
    wide = np.int64 if pa.types.is_large_binary(values.type) else np.int32
    _, bounds, data = values.buffers()
    offsets = np.frombuffer(bounds, wide)[values.offset : values.offset + len(values) + 1].astype(np.int64)
    held = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return Memory(held[offsets[0] : offsets[-1]]), offsets - offsets[0]


def _decoded(decoding: Decoding, memory: Memory, offsets: np.ndarray, ids: np.ndarray) -> pa.Array:
    rows = np.flatnonzero(ids == decoding.number)
    starts, ends = offsets[rows] + HEAD, offsets[rows + 1]
    bodies = np.full(len(rows), -1)
    for head in decoding.heads:
        same = starts + len(head) <= ends
        for place, byte in enumerate(head):
            same[same] = memory.bytes[starts[same] + place] == byte
        bodies[same] = starts[same] + len(head)
    has_body = bodies >= 0
    structs, _ = decode(decoding.message, decoding.wanted, Spans(memory, bodies[has_body], ends[has_body]))
    if len(structs) == len(ids):
        return structs
    places = np.full(len(ids), -1)
    places[rows[has_body]] = np.arange(len(structs))
    return structs.take(pa.array(places, mask=places < 0))
