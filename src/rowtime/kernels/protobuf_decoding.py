"""Decodes many Protobuf messages to Arrow arrays, field by field and not row by row.

It reads what Protobuf's own readers read: if a field is repeated by mistake the last value counts, repeated messages
are merged, the last member of a oneof counts, unknown fields are skipped. A message that those readers refuse is
malformed, wherever the fault is; so is one in which a known field has a wrong wire type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowtime.kernels.protobuf_types import Field, Form, Message, Repeats, Wanted
from rowtime.kernels.protobuf_values import (
    TIME_FORMS,
    arrow_of,
    defaults_of,
    gathered,
    numbers_of,
    packed_values,
    times_of,
)
from rowtime.kernels.utf8 import as_texts
from rowtime.kernels.varints import Memory
from rowtime.kernels.wire_tokens import DEEPEST, FEW, LENGTH, WIRES, Spans, Tokens, scan

_NONE: Final = Tokens(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))


class Parts(NamedTuple):
    """Pieces of messages in the order of their places: where each begins and ends, and its message.

    A nested message that occurs several times has several pieces.
    """

    starts: np.ndarray
    ends: np.ndarray
    owners: np.ndarray
    size: int


class Decoded(NamedTuple):
    """The wanted fields by number; which messages are malformed, and which lack a required field or have no time."""

    fields: Mapping[int, pa.Array]
    bad: np.ndarray
    lacking: np.ndarray


def decode(message: Message, wanted: Wanted, spans: Spans, few: int = FEW) -> tuple[pa.StructArray, np.ndarray]:
    """Return messages as structs, NULL if malformed, and which are malformed."""
    count = len(spans.starts)
    parts = Parts(spans.starts, spans.ends, np.arange(count), count)
    decoded = _Decoder(spans.memory, few).message(message, wanted, parts, DEEPEST)
    bad = decoded.bad | decoded.lacking
    return struct_of(message, wanted, decoded.fields, bad), bad


def struct_of(message: Message, wanted: Wanted, fields: Mapping[int, pa.Array], absent: np.ndarray) -> pa.StructArray:
    """Return structs of fields, NULL where ``absent``."""
    shown = [field for field in message.fields if field.number in wanted.fields]
    arrays = [fields[field.number] for field in shown]
    members = [pa.field(field.name, array.type) for field, array in zip(shown, arrays, strict=True)]
    return pa.StructArray.from_arrays(arrays, fields=members, mask=pa.array(absent))


class _Decoder:
    """Decodes the messages in one memory."""

    def __init__(self, memory: Memory, few: int) -> None:
        self._memory, self._few = memory, few

    def message(self, message: Message, wanted: Wanted | None, parts: Parts, depth: int) -> Decoded:
        """Decode the fields of messages; ``wanted``: None if they are only checked."""
        bad, lacking = np.zeros(parts.size, bool), np.zeros(parts.size, bool)
        if not len(parts.starts) and wanted is None:
            return Decoded({}, bad, lacking)
        numbers = np.array(sorted(field.number for field in message.fields))
        tokens, broken = scan(Spans(self._memory, parts.starts, parts.ends), numbers, depth, self._few)
        bad[parts.owners[broken]] = True
        mine = {tag: Tokens(parts.owners[field.rows], field.at, field.more) for tag, field in tokens.items()}
        ends = _ends_of_oneofs(message, mine, parts.size)
        fields = {}
        for field in message.fields:
            for wire in WIRES:
                odd = mine.get(field.number << 3 | wire)
                if odd is not None and not _takes(field, wire):
                    bad[odd.rows] = True
            inner = None if wanted is None else wanted.fields.get(field.number)
            state = _State(parts.size, bad, lacking, depth, ends.get(field.number))
            array = self._field(field, inner, mine, state)
            if inner is not None:
                fields[field.number] = array
        return Decoded(fields, bad, lacking)

    def _field(
        self, field: Field, wanted: Wanted | None, tokens: Mapping[int, Tokens], state: _State
    ) -> pa.Array | None:
        of_field = tokens.get(field.number << 3 | field.wire, _NONE)
        if field.repeats is not Repeats.ONCE:
            return self._repeated(field, wanted, of_field, tokens.get(field.number << 3 | LENGTH, _NONE), state)
        if field.message is not None:
            return self._one_message(field, field.message, wanted, of_field, state)
        if field.kind in ("string", "bytes"):
            return self._one_text(field, wanted, of_field, state)
        last = _last(of_field, state)
        present = of_field.rows[last]
        if field.required:
            state.lacking[_without(present, state.size)] = True
        if wanted is None:
            return None
        values = numbers_of(field.kind, self._memory, of_field.at[last], of_field.more[last])
        if len(present) < state.size:
            whole = defaults_of(field, state.size, values.dtype)
            whole[present] = values
            values = whole
        absent = None
        if field.presence and field.default is None and len(present) < state.size:
            absent = _without(present, state.size)
        return arrow_of(field, values, absent)

    def _one_text(self, field: Field, wanted: Wanted | None, of_field: Tokens, state: _State) -> pa.Array | None:
        last = _last(of_field, state)
        present = of_field.rows[last]
        if field.required:
            state.lacking[_without(present, state.size)] = True
        if field.kind == "string" and len(present) < len(
            of_field.rows
        ):  # values that do not count have to be texts too
            self._texts(field, of_field, state)
        tokens = Tokens(present, of_field.at[last], of_field.more[last])
        if wanted is None and field.kind == "bytes":
            return None
        values = self._texts(field, tokens, state)
        if len(present) == state.size:
            return values
        places = np.full(state.size, -1)
        places[present] = np.arange(len(present))
        whole = values.take(pa.array(places, mask=places < 0))
        if not field.presence or field.default is not None:
            empty = b"" if field.kind == "bytes" else ""
            return pc.fill_null(whole, pa.scalar(empty if field.default is None else field.default, whole.type))
        return whole

    def _texts(self, field: Field, tokens: Tokens, state: _State) -> pa.Array:
        values = gathered(self._memory, tokens.at, tokens.more)
        if field.kind == "bytes":
            return values
        texts, wrong = as_texts(values)
        if wrong is not None:
            state.bad[tokens.rows[wrong]] = True
        return texts

    def _one_message(
        self, field: Field, message: Message, wanted: Wanted | None, messages: Tokens, state: _State
    ) -> pa.Array | None:
        if state.after is not None:  # a value before another member of the oneof is dropped, but has to be a message
            stale = messages.at < state.after[messages.rows]
            self._look(message, Tokens(*(part[stale] for part in messages)), state)
            messages = Tokens(*(part[~stale] for part in messages))
        absent = _without(messages.rows, state.size)
        if field.required:
            state.lacking[absent] = True
        if not state.depth:
            state.bad[messages.rows] = True
            messages = _NONE
        parts = Parts(messages.at, messages.more, messages.rows, state.size)
        inner = self.message(message, wanted, parts, state.depth - 1)
        state.bad[inner.bad] = True
        state.lacking[inner.lacking if field.filled else inner.lacking & ~absent] = True
        if wanted is None:
            return None
        hidden = np.zeros(state.size, bool) if field.filled else absent
        return self._shown(message, wanted, inner, hidden, state.lacking)

    def _look(self, message: Message, tokens: Tokens, state: _State) -> None:
        """Mark the malformed ones of some messages."""
        if len(tokens.rows):
            parts = Parts(tokens.at, tokens.more, np.arange(len(tokens.rows)), len(tokens.rows))
            inner = self.message(message, None, parts, state.depth - 1) if state.depth else None
            state.bad[tokens.rows if inner is None else tokens.rows[inner.bad]] = True

    def _shown(
        self, message: Message, wanted: Wanted, inner: Decoded, absent: np.ndarray, lacking: np.ndarray
    ) -> pa.Array:
        """Return messages in their Arrow form; mark those that are no time in ``lacking``."""
        if message.form is Form.STRUCT:
            return struct_of(message, wanted, inner.fields, absent)
        if message.form in TIME_FORMS:
            values, wrong = times_of(message, inner.fields, absent)
            lacking |= wrong
            return values
        (value,) = inner.fields.values()
        return pc.if_else(pa.array(~absent), value, pa.scalar(None, value.type)) if absent.any() else value

    def _repeated(
        self, field: Field, wanted: Wanted | None, of_field: Tokens, lengths: Tokens, state: _State
    ) -> pa.Array | None:
        if field.message is not None:
            owners, values = self._messages(field, field.message, wanted, of_field, state)
        elif field.kind in ("string", "bytes"):
            owners, values = of_field.rows, self._texts(field, of_field, state)
        else:
            owners, numbers = self._numbers(field, of_field, lengths, state)
            values = None if wanted is None else arrow_of(field, numbers, None)
        if wanted is None:
            return None
        assert values is not None
        if field.repeats is Repeats.MAP:
            owners, values = _once_each(owners, values)
        offsets = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=state.size))]).astype(np.int32)
        if field.repeats is Repeats.MAP:
            return pa.MapArray.from_arrays(pa.array(offsets), values.field(0), values.field(1))
        return pa.ListArray.from_arrays(pa.array(offsets), values)

    def _numbers(self, field: Field, single: Tokens, lengths: Tokens, state: _State) -> tuple[np.ndarray, np.ndarray]:
        """Return single and packed numbers, in the order of their places, and their messages."""
        values, owners = numbers_of(field.kind, self._memory, single.at, single.more), single.rows
        if not len(lengths.rows):
            return owners, values
        places, which, packed, broken = packed_values(field, self._memory, lengths.at, lengths.more)
        state.bad[lengths.rows[broken]] = True
        if not len(owners):
            return lengths.rows[which], packed
        order = np.argsort(np.concatenate([single.at, places]), kind="stable")
        owners = np.concatenate([owners, lengths.rows[which]])
        return owners[order], np.concatenate([values, packed])[order]

    def _messages(
        self, field: Field, message: Message, wanted: Wanted | None, messages: Tokens, state: _State
    ) -> tuple[np.ndarray, pa.Array | None]:
        count = len(messages.rows)
        if count and not state.depth:
            state.bad[messages.rows] = True
            messages, count = _NONE, 0
        entry = field.repeats is Repeats.MAP
        parts = Parts(messages.at, messages.more, np.arange(count), count)
        inner = self.message(message, wanted, parts, state.depth - 1)
        lacking, values = inner.lacking, None
        if entry and lacking.any():  # an entry whose key comes again may lack anything
            keys = self.message(message, Wanted({1: Wanted()}), parts, state.depth - 1).fields[1]
            lacking = lacking & _counting(messages.rows, keys)
        if wanted is not None and entry:
            values = struct_of(message, wanted, inner.fields, np.zeros(count, bool))
        elif wanted is not None:
            values = self._shown(message, wanted, inner, np.zeros(count, bool), lacking)
        state.bad[messages.rows[inner.bad]] = True
        state.lacking[messages.rows[lacking]] = True
        return messages.rows, values


class _State(NamedTuple):
    """The messages of which a field is read: their number, and their faults.

    ``after``: for a member of a oneof, the place in each message after which no other member occurs.
    """

    size: int
    bad: np.ndarray
    lacking: np.ndarray
    depth: int
    after: np.ndarray | None


def _takes(field: Field, wire: int) -> bool:
    packs = field.repeats is Repeats.MANY and field.kind not in ("string", "bytes", "message", "group")
    return wire == field.wire or (packs and wire == LENGTH)


def _last(tokens: Tokens, state: _State) -> np.ndarray:
    """Return which values count: the last of each message, if no other member of its oneof follows."""
    rows = tokens.rows
    last = np.ones(len(rows), bool)
    np.not_equal(rows[1:], rows[:-1], out=last[:-1])
    if state.after is not None:
        last &= tokens.at > state.after[rows]
    return last


def _without(present: np.ndarray, count: int) -> np.ndarray:
    absent = np.ones(count, bool)
    absent[present] = False
    return absent


def _ends_of_oneofs(message: Message, tokens: Mapping[int, Tokens], count: int) -> dict[int, np.ndarray]:
    """Return, for each member of a oneof, where the last of the others is in each message, -1 for none."""
    ends_of = {}
    for members in message.oneofs.values():
        ends = []
        for field in members:
            mine = tokens.get(field.number << 3 | field.wire, _NONE)
            end = np.full(count, -1)
            end[mine.rows] = mine.at  # in order, so that the last one stays
            ends.append(end)
        for number, field in enumerate(members):
            ends_of[field.number] = np.maximum.reduce([end for other, end in enumerate(ends) if other != number])
    return ends_of


def _once_each(owners: np.ndarray, entries: pa.StructArray) -> tuple[np.ndarray, pa.StructArray]:
    """Return the entries of maps without those whose key comes again in their map."""
    keep = _counting(owners, entries.field(0))
    return (owners, entries) if keep.all() else (owners[keep], entries.filter(pa.array(keep)))


def _counting(owners: np.ndarray, keys: pa.Array) -> np.ndarray:
    """Return which entries of maps count: the last of each key."""
    if not (owners[1:] == owners[:-1]).any():
        return np.ones(len(owners), bool)
    codes = pc.dictionary_encode(keys).indices.to_numpy(zero_copy_only=False).astype(np.int64)
    pairs = (owners * (codes.max() + 1) + codes)[::-1]
    _, last = np.unique(pairs, return_index=True)
    keep = np.zeros(len(owners), bool)
    keep[len(pairs) - 1 - last] = True
    return keep
