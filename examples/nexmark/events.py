"""Events of Nexmark: persons who register, auctions that they open, bids; as Parquet files in the order of time.

Of 50 events one is a person, three are auctions and 46 are bids, as in the original. Half of the
bids go to the latest hot auction, a quarter of all come from the latest hot bidder. An event is its
number: the same number and size of a chunk give the same rows. Unlike in the original, who is named
has always come before, and no two events have one time.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

BEGINNING: Final = 1_700_000_000_000_000  # µs
GAP: Final = 1_000  # µs from event to event
CYCLE, AUCTIONS, BIDS = 50, 3, 46
FIRST: Final = 1_000  # the first person and the first auction
IN_FLIGHT, ACTIVE, HOT = 100, 1_000, 100
CATEGORY, CATEGORIES = 10, 5
LONGEST: Final = 2 * IN_FLIGHT * CYCLE // AUCTIONS * GAP  # µs that an auction is open, at most: 6.7 s

NAMES = ["Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter"]
CITIES = ["Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent"]
STATES = ["AZ", "CA", "ID", "OR", "WA", "WY"]
CHANNELS = ["Google", "Facebook", "Baidu", "Apple"]
EXTRAS = ["abcdef", "cabbage", "ccc", "xyz", "accent", "", "occurrence", "plain"]
INSTANT = pa.timestamp("us", "UTC")
SIDE_ROWS: Final = 10_000


@dataclass(frozen=True)
class Chunk:
    """The events ``first`` … ``first + size`` - 1; both are multiples of 50."""

    first: int
    size: int

    @property
    def tables(self) -> dict[str, pa.Table]:
        """The rows of each stream."""
        random = np.random.default_rng(self.first)
        numbers = np.arange(self.first, self.first + self.size)
        kind = numbers % CYCLE
        persons, auctions = numbers[kind == 0], numbers[(kind > 0) & (kind <= AUCTIONS)]
        return {
            "person": _persons(persons, random),
            "auction": _auctions(auctions, random),
            "bid": _bids(numbers[kind > AUCTIONS], random),
        }


def write(folder: Path, events: int, files: int) -> None:
    """``events`` events, each stream in a folder of ``files`` files, and the table of q13."""
    size = events // files // CYCLE * CYCLE
    for number in range(files):
        for name, rows in Chunk(number * size, size).tables.items():
            path = folder / name / f"{number:06d}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(rows, path, row_group_size=131_072)
            os.utime(path, (BEGINNING // 1_000_000 + number,) * 2)  # files are read in the order of their times
    keys = np.arange(SIDE_ROWS)
    (folder / "side_input").mkdir(exist_ok=True)
    side = pa.table({"key": keys, "value": [f"value {key}" for key in keys]})
    pq.write_table(side, folder / "side_input" / "all.parquet")


def _times(numbers: np.ndarray, later: np.ndarray | int = 0) -> pa.Array:
    return pa.array(BEGINNING + numbers * GAP + later, INSTANT)


def _last_person(numbers: np.ndarray) -> np.ndarray:
    """How many persons have come before or with an event."""
    return numbers // CYCLE + 1


def _last_auction(numbers: np.ndarray) -> np.ndarray:
    """How many auctions have come before or with an event; one at least."""
    return np.maximum(numbers // CYCLE * AUCTIONS + np.minimum(numbers % CYCLE, AUCTIONS), 1)


def _someone(known: np.ndarray, among: int, hot: float, random: np.random.Generator) -> np.ndarray:
    """One of the latest ``among``, or with the chance ``hot`` the latest whose number is a round one."""
    latest = known - 1 - (random.random(len(known)) * np.minimum(known, among)).astype(np.int64)
    return FIRST + np.where(random.random(len(known)) < hot, (known - 1) // HOT * HOT, latest)


def _words(words: list[str], count: int, random: np.random.Generator) -> pa.Array:
    """Some of the words; each is stored once."""
    picked = pa.array(random.integers(0, len(words), count), pa.int32())
    return pa.DictionaryArray.from_arrays(picked, words).cast(pa.string())


def _numbered(text: str, numbers: np.ndarray) -> pa.Array:
    return pa.array([text.format(number) for number in numbers.tolist()])


def _persons(numbers: np.ndarray, random: np.random.Generator) -> pa.Table:
    count, ids = len(numbers), FIRST + numbers // CYCLE
    return pa.table(
        {
            "id": ids,
            "name": _words(NAMES, count, random),
            "emailAddress": _numbered("person{}@example.org", ids),
            "creditCard": _numbered("{:016d}", random.integers(0, 10**16, count)),
            "city": _words(CITIES, count, random),
            "state": _words(STATES, count, random),
            "dateTime": _times(numbers),
            "extra": _words(EXTRAS, count, random),
        }
    )


def _auctions(numbers: np.ndarray, random: np.random.Generator) -> pa.Table:
    count, ids = len(numbers), FIRST + numbers // CYCLE * AUCTIONS + numbers % CYCLE - 1
    return pa.table(
        {
            "id": ids,
            "itemName": _numbered("item {}", ids),
            "description": _words(EXTRAS, count, random),
            "initialBid": _prices(count, random),
            "reserve": _prices(count, random),
            "dateTime": _times(numbers),
            "expires": _times(numbers, random.integers(1, LONGEST + 1, count)),
            "seller": _someone(_last_person(numbers), ACTIVE, 0.25, random),
            "category": CATEGORY + random.integers(0, CATEGORIES, count),
            "extra": _words(EXTRAS, count, random),
        }
    )


def _bids(numbers: np.ndarray, random: np.random.Generator) -> pa.Table:
    count = len(numbers)
    channel = _words(CHANNELS, count, random)
    return pa.table(
        {
            "auction": _someone(_last_auction(numbers), IN_FLIGHT, 0.5, random),
            "bidder": _someone(_last_person(numbers), ACTIVE, 0.25, random),
            "price": _prices(count, random),
            "channel": channel,
            "url": _words(
                [f"https://www.nexmark.com/{c}/{n}/item.htm" for c in CHANNELS for n in range(50)], count, random
            ),
            "dateTime": _times(numbers),
            "extra": _words(EXTRAS, count, random),
        }
    )


def _prices(count: int, random: np.random.Generator) -> np.ndarray:
    return (10 ** (random.random(count) * 6) * 100).astype(np.int64)
