"""Numbers of variable length (Protobuf's varints), many at once: seven bits per byte, the lowest first."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

LONGEST: Final = 10  # bytes of a varint
SHORTEST_BAD: Final = LONGEST + 1
_WORD: Final = 8
_PADDING: Final = 16  # bytes after the last, so that each can be read with those that follow
_HIGH: Final = np.uint64(0x8080808080808080)
_LOW: Final = np.uint64(0x7F7F7F7F7F7F7F7F)
_ONE: Final = np.uint64(1)
_FOLDS: Final = (  # bits that stay, bits that move down, and by how many
    (np.uint64(0x007F007F007F007F), np.uint64(0x7F007F007F007F00), np.uint64(1)),
    (np.uint64(0x00003FFF00003FFF), np.uint64(0x3FFF00003FFF0000), np.uint64(2)),
    (np.uint64(0x000000000FFFFFFF), np.uint64(0x0FFFFFFF00000000), np.uint64(4)),
)


class Memory:
    """Some bytes; ``words[at]`` are eight of them from any place on as one number, the lowest first."""

    def __init__(self, data: np.ndarray) -> None:
        self.bytes = np.zeros(len(data) + _PADDING, np.uint8)
        self.bytes[: len(data)] = data
        size = len(self.bytes) - _WORD + 1
        self.words: np.ndarray = np.ndarray((size,), "<u8", self.bytes, strides=(1,))
        self.view = memoryview(self.bytes.data)


class Read(NamedTuple):
    """The result of reading: the numbers, the place after each, and whether it is valid."""

    values: np.ndarray
    after: np.ndarray
    good: np.ndarray


def read_varints(memory: Memory, at: np.ndarray, end: np.ndarray, most: int = LONGEST) -> Read:
    """Return the varints that begin at some places and end, within ``most`` bytes, before others.

    Bits above 64 are dropped.
    """
    first = memory.bytes[at]
    if not (first & 0x80).any():
        after = at + 1
        return Read(first.astype(np.uint64), after, after <= end)
    words = memory.words[at]
    stops = ~words & _HIGH
    below = (stops & (~stops + _ONE)) - _ONE  # all bits below the end of the number; all if there is no end
    values, sizes = _folded(words & below & _LOW), (np.bitwise_count(below) >> 3).astype(np.int64) + 1
    if (longer := np.flatnonzero(sizes > _WORD)).size:
        ninth, tenth = (memory.bytes[at[longer] + more].astype(np.uint64) for more in (_WORD, _WORD + 1))
        low = np.uint64(0x7F)
        values[longer] |= ((ninth & low) << np.uint64(56)) | np.where(ninth > low, tenth << np.uint64(63), 0)
        sizes[longer] = np.where(ninth <= low, _WORD + 1, np.where(tenth <= low, LONGEST, SHORTEST_BAD))
    after = at + sizes
    return Read(values, after, (sizes <= most) & (after <= end))


def _folded(words: np.ndarray) -> np.ndarray:
    """Return eight groups of seven bits as one number."""
    for stay, move, by in _FOLDS:
        words = (words & stay) | ((words & move) >> by)
    return words


def unzigzag(values: np.ndarray) -> np.ndarray:
    """Return signed numbers for unsigned ones: 0, -1, 1, -2, … for 0, 1, 2, 3, …; of the same width."""
    one = values.dtype.type(1)
    signed: np.ndarray = ((values >> one) ^ (~(values & one) + one)).view(values.dtype.str.replace("u", "i"))
    return signed


def zigzag(values: np.ndarray) -> np.ndarray:
    """Return the inverse of `unzigzag`."""
    bits = values.dtype.itemsize * 8 - 1
    return ((values << 1) ^ (values >> bits)).view(values.dtype.str.replace("i", "u"))


def written_varints(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the bytes of unsigned numbers one after the other, and where each begins, with the end of the last."""
    values = values.astype(np.uint64)
    sizes = np.ones(len(values), np.int64)
    for more in range(1, LONGEST):
        sizes += values >= (_ONE << np.uint64(7 * more))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    out = np.zeros(offsets[-1], np.uint8)
    for place in range(int(sizes.max(initial=0))):
        present = sizes > place
        more_follow = np.where(sizes[present] > place + 1, 0x80, 0).astype(np.uint8)
        seven = ((values[present] >> np.uint64(7 * place)) & np.uint64(0x7F)).astype(np.uint8)
        out[offsets[:-1][present] + place] = seven | more_follow
    return out, offsets
