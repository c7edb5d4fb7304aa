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
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from rowtime.core.columns import SCHEMA_ID
from rowtime.kernels.protobuf_decoding import Reader
from rowtime.kernels.protobuf_types import Message, Wanted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HEAD: Final = 5  # bytes before the indexes: a zero, and the id
_MORE: Final = 0x80  # the bit of a varint that says that another byte follows
_END: Final = 2**31 - 1  # of a slice; without one some fail (findings/pyarrow_binary_slice_needs_an_end.sh)


def heads_of(indexes: Sequence[int]) -> tuple[bytes, ...]:
    """Return the possible encodings of indexes, the usual one first."""
    whole = b"".join(_varint(2 * number) for number in (len(indexes), *indexes))  # zigzag of non-negative numbers
    return (b"\0", whole) if tuple(indexes) == (0,) else (whole,)


def _varint(number: int) -> bytes:
    return bytes([number]) if number < _MORE else bytes([number % _MORE | _MORE]) + _varint(number // _MORE)


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
        readers = [(decoding, Reader(decoding.message, decoding.wanted)) for decoding in self.decodings]
        for batch in batches:
            values, ids = batch["__k"].field("value"), batch[SCHEMA_ID].fill_null(-1).to_numpy()
            arrays, names = list(batch.columns), list(batch.schema.names)
            for decoding, reader in readers:
                arrays.append(_decoded(decoding, reader, values, ids))
                names.append(decoding.name)
            yield pa.RecordBatch.from_arrays(arrays, names)


def _decoded(decoding: Decoding, reader: Reader, values: pa.Array, ids: np.ndarray) -> pa.Array:
    """Return the records of one schema as structs, NULL for the others."""
    rows = np.flatnonzero(ids == decoding.number)
    tails = pc.binary_slice(values.take(pa.array(rows)).cast(pa.binary()), HEAD, _END)
    bodies, mine = tails, np.zeros(len(rows), bool)
    for head in decoding.heads:
        same = pc.starts_with(tails, head)
        bodies = pc.if_else(same, pc.binary_slice(tails, len(head), _END), bodies)
        mine |= same.to_numpy(zero_copy_only=False)
    structs, _ = reader.read(bodies.filter(pa.array(mine)))
    if len(structs) == len(ids):
        return structs
    places = np.full(len(ids), -1)
    places[rows[mine]] = np.arange(len(structs))
    return structs.take(pa.array(places, mask=places < 0))
