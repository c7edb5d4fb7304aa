"""Shards of keys: each row is in one, and the journal says which a file has."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rowtime.operators.contract.state import Segment
from rowtime.state.segments import SegmentLog
from rowtime.state.shards import SHARDS, ShardLog, Shards, shards_of, task_of, together

BEGIN: Final = datetime(2024, 1, 1)  # noqa: DTZ001 - no zone
VALUES: Final[Sequence[tuple[str, pa.DataType, Any]]] = (
    ("tinyint", pa.int8(), lambda n: n % 100),
    ("int", pa.int32(), lambda n: n - 50),
    ("bigint", pa.int64(), lambda n: n << 40),
    ("string", pa.string(), lambda n: f"k{n}" * (n % 5)),
    ("binary", pa.binary(), lambda n: bytes([n % 250])),
    ("boolean", pa.bool_(), lambda n: n % 2 == 0),
    ("date", pa.date32(), lambda n: date(2024, 1, 1) + timedelta(n)),
    ("timestamp", pa.timestamp("us", "UTC"), lambda n: BEGIN + timedelta(seconds=n)),
    ("timestamp_ntz", pa.timestamp("us"), lambda n: BEGIN + timedelta(seconds=n)),
    ("decimal(20,2)", pa.decimal128(20, 2), lambda n: Decimal(n) / 4),
)
KINDS: Final = [kind for kind, *_ in VALUES]
NAMES: Final = [f"c{number}" for number in range(len(VALUES))]


def rows(many: int = 300) -> pa.Table:
    chance = random.Random(1)
    numbers = [chance.randrange(120) for _ in range(many)]
    arrays = [
        pa.array([None if n % 7 == place % 7 else value(n) for n in numbers], type_)
        for place, (_, type_, value) in enumerate(VALUES)
    ]
    return pa.table(dict(zip(NAMES, arrays, strict=True)) | {"n": pa.array(range(many))})


@pytest.mark.parametrize("many", [1, 2, 3, 5, 7, 31, 63, SHARDS])
def test_every_shard_is_in_one_task(many: int) -> None:
    parts = [Shards.of(number, many) for number in range(many)]
    assert [shard for part in parts for shard in range(part.first, part.last + 1)] == [*range(SHARDS)]
    every = np.arange(SHARDS)
    owners = [next(n for n, part in enumerate(parts) if part.first <= shard <= part.last) for shard in every]
    assert task_of(every, many).tolist() == owners


@pytest.mark.parametrize("many", [1, 2, 5, SHARDS])
@pytest.mark.parametrize("names", [[name] for name in NAMES] + [NAMES], ids=[*KINDS, "all"])
def test_every_row_is_in_one_task(many: int, names: list[str]) -> None:
    table, kinds = rows(), [dict(zip(NAMES, KINDS, strict=True))[name] for name in names]
    tasks = task_of(shards_of(table, kinds, names), many)
    for number in range(many):
        mine = Shards.of(number, many).rows(table, kinds, names)
        assert mine["n"].to_pylist() == table["n"].filter(pa.array(tasks == number)).to_pylist()


@pytest.mark.parametrize("place", range(len(VALUES)), ids=KINDS)
def test_the_shard_of_a_value_is_the_same_in_every_form(tmp_path: Path, place: int) -> None:
    """In chunks, in another order, as Parquet gives it back, beside other values and after a slice."""
    table, kinds, names = rows(), KINDS[place : place + 1], NAMES[place : place + 1]
    shards = shards_of(table, kinds, names)
    assert len({*shards.tolist()}) > 1
    chunks = pa.concat_tables([table.slice(0, 50), table.slice(50, 1), table.slice(51)])
    pq.write_table(table, tmp_path / "rows.parquet")
    for same in (chunks, pq.read_table(tmp_path / "rows.parquet")):
        assert shards_of(same, kinds, names).tolist() == shards.tolist()
    for n in (0, 17, 299):
        assert shards_of(table.slice(n, 1), kinds, names).tolist() == [shards[n]]
    assert shards_of(table.take(pa.array([*reversed(range(300))])), kinds, names).tolist() == shards.tolist()[::-1]


def test_values_whose_equals_differ_in_bytes_do_not_divide_rows() -> None:
    table = pa.table({"f": [0.0, -0.0, 1.0], "s": ["a", "A", "b"]})
    assert shards_of(table, ["double", "string collate UTF8_LCASE"], ["f", "s"]).tolist() == [0, 0, 0]


def test_what_the_journal_says_of_a_file() -> None:
    half = Shards.of(1, 2)
    text = half.text(["k", "m"])
    assert half.cover(text, ["k", "m"]) is True
    assert Shards.of(0, 1).cover(text, ["k", "m"]) is True
    assert Shards.of(0, 2).cover(text, ["k", "m"]) is False
    assert Shards.of(2, 3).cover(text, ["k", "m"]) is None  # some of its shards
    for unknown in ("", text.replace("64", "32"), half.text(["m", "k"]), half.text(["k"])):
        assert half.cover(unknown, ["k", "m"]) is None


def test_a_log_is_put_together_again() -> None:
    log = SegmentLog()
    log.add([Segment("old", 5, 0, 10, 0), Segment("kept", 5, 11, 20, 0)])
    parts = [ShardLog(log, Shards.of(number, 2), ["k"]) for number in range(2)]
    for number, part in enumerate(parts):
        part.replace([part.live[0]], [Segment(f"new {number}", 2, 21, 30, 0)])
    after = together(log, parts)
    assert [segment.path for segment in after.live] == ["kept", "new 0", "new 1"]
    assert [segment.path for segment in after.dropped] == ["old"]
    again = SegmentLog(after.entries())
    assert [segment.shards for segment in again.live] == ["", "0-31 of 64 by k", "32-63 of 64 by k"]
    upper = ShardLog(again, Shards.of(2, 3), ["k"])
    assert [(segment.path, upper.has_all(segment)) for segment in upper.live] == [("kept", None), ("new 1", None)]
    assert not upper.crowded()
