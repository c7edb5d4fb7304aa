"""Numbers that Spark sends to partitions of their own.

`DataFrame.repartition` sends a row to the partition that the hash of a column gives. Numbers that are chosen by the
same hash spread tasks evenly; that is all: a task does the work of all rows that it gets (`executor._keys`).
"""

from __future__ import annotations

from functools import lru_cache
from itertools import count

_WORD = 0xFFFFFFFF
_SEED = 42  # of Spark's hash


@lru_cache
def places(many: int) -> tuple[int, ...]:
    """Return for each of so many partitions the least number (INT) that goes there."""
    least: dict[int, int] = {}
    for number in count():
        least.setdefault(murmur3(number) % many, number)
        if len(least) == many:
            return tuple(least[n] for n in range(many))
    raise AssertionError


def murmur3(number: int, seed: int = _SEED) -> int:
    """Return Spark's hash of an INT: MurmurHash3 (x86, 32 bits) of its four bytes, as a signed number."""
    mixed = number * 0xCC9E2D51 & _WORD
    mixed = _turned(mixed, 15) * 0x1B873593 & _WORD
    word = (_turned(seed ^ mixed, 13) * 5 + 0xE6546B64 & _WORD) ^ 4
    word = (word ^ word >> 16) * 0x85EBCA6B & _WORD
    word = (word ^ word >> 13) * 0xC2B2AE35 & _WORD
    word ^= word >> 16
    return word - (1 << 32) if word >> 31 else word


def _turned(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) & _WORD
