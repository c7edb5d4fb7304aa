"""The fields of many Protobuf messages at once: which ones occur, and where the value of each begins and ends.

The messages advance in lock step: the next field of each is read, in a few array operations for all of them. Messages
with many more fields than the others are finally read one by one, because an array operation over few messages costs
more than the loop. Groups, which Protobuf abandoned long ago, are skipped by such a loop too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from rowtime.kernels.varints import LONGEST, Memory, read_varints

VARINT, FIXED64, LENGTH, GROUP, GROUP_END, FIXED32 = 0, 1, 2, 3, 4, 5
WIRES: Final = (VARINT, FIXED64, LENGTH, GROUP, FIXED32)
"""The wire types of values."""
SHORT: Final = 5  # bytes of a tag, or of a length
DEEPEST: Final = 100  # nesting depth of messages and groups, as in Protobuf's own readers
FEW: Final = 64
"""The number of messages up to which they are read one by one."""
_MOST_TAG, _MOST_LENGTH = 2**32 - 1, 2**31 - 1
_MANY: Final = 2**14  # numbers below it are counted, which is faster than sorting them
_WIRE: Final = 7  # the bits of a tag that are the wire type
_SIZES: Final = {FIXED64: 8, FIXED32: 4}


class Tokens(NamedTuple):
    """Values of one field and wire type, in the order of their places: in which message, from where, up to where.

    For varints ``more`` are the numbers themselves (unsigned), for all others the places after the values.
    """

    rows: np.ndarray
    at: np.ndarray
    more: np.ndarray


class CutOff(Exception):
    """An invalid message."""


class Spans(NamedTuple):
    """Places in a memory where messages begin and end."""

    memory: Memory
    starts: np.ndarray
    ends: np.ndarray


def scan(spans: Spans, numbers: np.ndarray, depth: int, few: int = FEW) -> tuple[Mapping[int, Tokens], np.ndarray]:
    """Return the values of the fields with some numbers (sorted) by their tags, and which messages are malformed.

    ``depth``: how deep messages or groups may be nested there.
    """
    memory, starts, ends = spans
    collected = _Collected(len(starts))
    rows = np.flatnonzero(starts < ends)
    at, end = starts[rows], ends[rows]
    while len(rows) > few:
        tags, at, good = read_varints(memory, at, end, SHORT)
        good &= (tags <= _MOST_TAG) & (tags > _WIRE)  # 0 is not a valid number
        if not good.all():
            collected.bad[rows[~good]] = True
            rows, at, end, tags = rows[good], at[good], end[good], tags[good]
        after, good = _step(collected, rows, at, end, _Step(memory, tags, numbers, depth))
        collected.bad[rows[~good]] = True
        on = good & (after < end)
        rows, at, end = (rows, after, end) if on.all() else (rows[on], after[on], end[on])
    wanted = {*numbers.tolist()}
    for row, begin, stop in zip(rows.tolist(), at.tolist(), end.tolist(), strict=True):
        try:
            _one(memory.view, begin, stop, collected.single(row, wanted), depth)
        except CutOff:
            collected.bad[row] = True
    return collected.tokens(), collected.bad


class _Step(NamedTuple):
    memory: Memory
    tags: np.ndarray
    numbers: np.ndarray
    depth: int


class _Collected:
    """The values found so far."""

    def __init__(self, count: int) -> None:
        self.bad = np.zeros(count, bool)
        self._parts: dict[int, list[Tokens]] = {}
        self._singles: dict[int, list[tuple[int, int, int]]] = {}

    def add(self, tag: int, tokens: Tokens) -> None:
        self._parts.setdefault(tag, []).append(tokens)

    def single(self, row: int, wanted: set[int]) -> _Single:
        return _Single(row, wanted, self._singles)

    def tokens(self) -> Mapping[int, Tokens]:
        for tag, items in self._singles.items():
            rows, at, more = zip(*items, strict=True)
            kind = np.uint64 if tag & 7 == VARINT else np.int64
            self.add(tag, Tokens(np.array(rows), np.array(at), np.array(more, kind)))
        return {tag: _in_order(parts) for tag, parts in self._parts.items()}


class _Single(NamedTuple):
    """Collects the values of one message."""

    row: int
    known: set[int]
    into: dict[int, list[tuple[int, int, int]]]

    def add(self, tag: int, at: int, more: int) -> None:
        if tag >> 3 in self.known:
            self.into.setdefault(tag, []).append((self.row, at, more))


def _in_order(parts: list[Tokens]) -> Tokens:
    if len(parts) == 1:
        return parts[0]
    whole = Tokens(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    if (whole.at[1:] > whole.at[:-1]).all():
        return whole
    order = np.argsort(whole.at, kind="stable")
    return Tokens(whole.rows[order], whole.at[order], whole.more[order])


def _step(
    collected: _Collected, rows: np.ndarray, at: np.ndarray, end: np.ndarray, step: _Step
) -> tuple[np.ndarray, np.ndarray]:
    """Read the value after each tag. Return the places after them, and which are invalid."""
    memory, tags = step.memory, step.tags
    if len(tags) and (tags == tags[0]).all():
        tag = int(tags[0])
        tokens, after, good = _values(memory, at, end, tags, step.depth)
        if np.isin(tag >> 3, step.numbers):
            collected.add(
                tag, Tokens(rows[good], *(part[good] for part in tokens)) if not good.all() else Tokens(rows, *tokens)
            )
        return after, good
    wanted = np.isin(tags >> np.uint64(3), step.numbers)
    keys = np.where(wanted, tags, tags & np.uint64(7))  # for others the wire type is enough
    after, all_good = at.copy(), np.zeros(len(at), bool)
    for key in _distinct(keys):
        mine = np.flatnonzero(keys == key)
        (begin, more), after[mine], good = _values(memory, at[mine], end[mine], tags[mine], step.depth)
        all_good[mine] = good
        if key > _WIRE:
            collected.add(key, Tokens(rows[mine[good]], begin[good], more[good]))
    return after, all_good


def _distinct(keys: np.ndarray) -> list[int]:
    sorts = keys.max(initial=0) > _MANY
    return list(map(int, np.unique(keys) if sorts else np.flatnonzero(np.bincount(keys.astype(np.int64)))))


def _values(
    memory: Memory, at: np.ndarray, end: np.ndarray, tags: np.ndarray, depth: int
) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray, np.ndarray]:
    """Return the values after tags of one wire type: where, their `Tokens`, the place after, and if they are valid."""
    wire = int(tags[0]) & 7
    if wire == VARINT:
        values, after, good = read_varints(memory, at, end)
        return (at, values), after, good
    if wire in _SIZES:
        after = at + _SIZES[wire]
        return (at, after), after, after <= end
    if wire == LENGTH:
        sizes, begin, good = read_varints(memory, at, end, SHORT)
        after = begin + np.where(good & (sizes <= _MOST_LENGTH), sizes, 0).astype(np.int64)
        return (begin, after), after, good & (sizes <= _MOST_LENGTH) & (after <= end)
    if wire == GROUP:
        return _groups(memory, at, end, tags, depth)
    return (at, at), at, np.zeros(len(at), bool)


def _groups(
    memory: Memory, at: np.ndarray, end: np.ndarray, tags: np.ndarray, depth: int
) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray, np.ndarray]:
    inner, after, good = at.copy(), at.copy(), np.ones(len(at), bool)
    for n, (begin, stop, tag) in enumerate(zip(at.tolist(), end.tolist(), tags.tolist(), strict=True)):
        try:
            inner[n], after[n] = _skipped_group(memory.view, begin, stop, tag >> 3, depth)
        except CutOff:
            good[n] = False
    return (at, inner), after, good


def _one(view: memoryview, at: int, end: int, into: _Single, depth: int) -> None:
    """Read the fields of one message. Raises `CutOff`."""
    while at < end:
        tag, at = _tag(view, at, end)
        wire = tag & 7
        if wire == GROUP:
            inner, after = _skipped_group(view, at, end, tag >> 3, depth)
            into.add(tag, at, inner)
        else:
            at, more, after = _value(view, at, end, wire)
            into.add(tag, at, more)
        at = after


def _value(view: memoryview, at: int, end: int, wire: int) -> tuple[int, int, int]:
    """Return where a value that is not a group begins, its `Tokens`, and the place after it. Raises `CutOff`."""
    if wire == VARINT:
        value, after = _varint(view, at, end, LONGEST)
        return at, value, after
    if wire in _SIZES:
        after = at + _SIZES[wire]
    elif wire == LENGTH:
        size, at = _varint(view, at, end, SHORT)
        after = at + size
        if size > _MOST_LENGTH:
            raise CutOff
    else:
        raise CutOff
    if after > end:
        raise CutOff
    return at, after, after


def _skipped_group(view: memoryview, at: int, end: int, number: int, depth: int) -> tuple[int, int]:
    """Return where the content of a group ends, and the place after the group. Raises `CutOff`."""
    opened = [number]
    while True:
        if len(opened) > depth:
            raise CutOff
        inner = at
        tag, at = _tag(view, at, end)
        wire = tag & 7
        if wire == GROUP:
            opened.append(tag >> 3)
        elif wire != GROUP_END:
            _, _, at = _value(view, at, end, wire)
        elif opened.pop() != tag >> 3:
            raise CutOff
        elif not opened:
            return inner, at


def _tag(view: memoryview, at: int, end: int) -> tuple[int, int]:
    tag, at = _varint(view, at, end, SHORT)
    if not _WIRE < tag <= _MOST_TAG:
        raise CutOff
    return tag, at


def _varint(view: memoryview, at: int, end: int, most: int) -> tuple[int, int]:
    value = 0
    for place in range(most):
        if at >= end:
            raise CutOff
        byte = view[at]
        at += 1
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:  # noqa: PLR2004 - the continuation bit
            return value & (2**64 - 1), at
    raise CutOff
