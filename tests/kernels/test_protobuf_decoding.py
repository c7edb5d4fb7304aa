"""Protobuf's bytes as arrays: the values that Google's package reads, and nothing that it refuses."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowtime.kernels.protobuf_decoding import Reader
from rowtime.runtime.schemas.protobuf_shape import shape_of
from tests.kernels import protobuf_oracle as oracle


def read(reader: Reader, items: list[bytes]) -> list[Any]:
    """The values, or REFUSED for a malformed message."""
    found, bad = reader.read(pa.array(items, pa.binary()))
    found.validate(full=True)
    assert found.is_null().to_numpy(zero_copy_only=False).tolist() == bad.tolist()
    return [oracle.REFUSED if wrong else comparable(one) for one, wrong in zip(found.to_pylist(), bad, strict=True)]


def comparable(value: Any) -> Any:
    """Maps without an order, and NaN equal to itself."""
    if isinstance(value, dict):
        return {name: comparable(one) for name, one in value.items()}
    if isinstance(value, list):
        made = [comparable(one) for one in value]
        return sorted(made, key=lambda pair: repr(pair[0])) if made and isinstance(made[0], tuple) else made
    if isinstance(value, tuple):
        return tuple(comparable(one) for one in value)
    return "NaN" if isinstance(value, float) and math.isnan(value) else (repr(value) if value == 0 else value)


def samples(random: Random, file: Any, made: Any, count: int) -> list[bytes]:
    """Messages of a schema and of a variant of it, some concatenated, some corrupted."""
    classes = [made, oracle.theirs(oracle.variant(random, file))]
    items = []
    for _ in range(count):
        many = random.choice([1, 1, 1, 2, 3])
        data = b"".join(oracle.fill(random, random.choice(classes)()).SerializePartialToString() for _ in range(many))
        items.append(oracle.mangled(random, data) if random.random() < 0.4 else data)
    return items


def compare(seed: int) -> int:
    """Compare all messages of a seed; return the number of valid ones."""
    random = Random(seed)
    file = oracle.schema(random)
    message, made = oracle.ours(file)
    wanted = shape_of(message).wanted
    items = samples(random, file, made, 40)
    known = [comparable(oracle.expected(made, message, wanted, data)) for data in items]
    reader = Reader(message, wanted)
    found = read(reader, items)
    for data, one, other in zip(items, found, known, strict=True):
        assert other is oracle.OTHER or one == other, (data.hex(), seed)
    valid = [data for data, one in zip(items, found, strict=True) if one is not oracle.REFUSED]
    assert read(reader, valid) == [one for one in found if one is not oracle.REFUSED]
    assert read(reader, items[:1]) == found[:1]
    assert read(reader, []) == []
    return sum(one is not oracle.REFUSED for one in known)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_random_messages_are_read_like_by_googles_package(seed: int) -> None:
    compare(seed)


@pytest.mark.slow
def test_many_random_messages_are_read_like_by_googles_package() -> None:
    assert sum(map(compare, range(3000))) > 60_000
