"""Which writers hold a stream: they come, leave, are set aside when silent, and come back (semantics 2.6)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from rowtime.client.writer import EVERYONE
from rowtime.core.clock import Clocks
from rowtime.core.time import BEGINNING
from rowtime.operators.contract import Operator
from rowtime.operators.streams.stream import Stream, streams_of
from rowtime.runtime.sources.contract import Slice

Notes = Mapping[str, Any]


class Held(NamedTuple):
    """The writers that hold a stream after a tick, came, or left after the items; with the journal's notes."""

    present: list[str]
    joined: list[str]
    left: list[str]
    notes: dict[str, Any]


class Presence:
    """An engine's knowledge of its streams' writers that is not in the journal: when each was last heard (µs)."""

    def __init__(self, operators: Sequence[Operator]) -> None:
        self._heard: dict[tuple[str, str], int] = {}
        self._marks = {node.name: _marks(node, operators) for node in streams_of(operators)}

    def forget(self, stream: str, writer: str) -> None:
        """Treat a writer as silent forever, until it sends something."""
        self._heard[stream, writer] = BEGINNING

    def held(self, node: Stream, part: Slice, before: Notes, clocks: Mapping[str, Clocks], now: int) -> Held:
        """Return the writers that hold a stream after a range.

        ``before``: the notes of the stream; ``clocks``: those of each operator, by writer, as the journal has them.
        """
        before_now, away = set(before["offsets"]), dict(before["away"])
        writers = [w for w in part.end if w != EVERYONE]
        active = [w for w in writers if part.end[w] > part.start.get(w, 0)]
        moved = [w for w in writers if w in active or w not in before_now]
        joined = [w for w in moved if w not in before_now or w in away]
        for writer in moved:
            away.pop(writer, None)
        away.update(dict.fromkeys(part.left, "left"))
        away.update(self._silent(node, part, (set(moved), away), clocks, now))
        held_by = {*before_now, *moved} - (set(before["away"]) - set(moved))
        present = sorted(w for w in writers if w not in away)
        left = sorted(w for w in writers if w in away and w in held_by)
        first = {**part.start, **before.get("first", {})}
        return Held(present, joined, left, {"first": first, "away": away})

    def _silent(
        self,
        node: Stream,
        part: Slice,
        before: tuple[Collection[str], Collection[str]],
        clocks: Mapping[str, Clocks],
        now: int,
    ) -> dict[str, str]:
        """Return the writers to set aside for silence; if all are silent, one with the greatest clock stays."""
        moved, away = before
        for writer in part.end:
            if writer in moved or (node.name, writer) not in self._heard:
                self._heard[node.name, writer] = now
        if node.idle_after is None:
            return {}
        present = [w for w in part.end if w not in away and w != EVERYONE]
        silent = [w for w in present if now - self._heard[node.name, w] >= node.idle_after]
        if silent and len(silent) == len(present):

            def reached(writer: str) -> tuple[tuple[int, ...], str]:
                marks = (clocks.get(name, {}).get(writer, BEGINNING) for name in self._marks[node.name])
                return tuple(marks), writer

            silent.remove(max(silent, key=reached))
        return dict.fromkeys(silent, "idle")


def _marks(stream: Stream, operators: Sequence[Operator]) -> list[str]:
    """Return a stream and the operators behind it alone, whose marks may differ where its clocks are equal.

    The clocks of a stream that is timed by arrival are, because all silent writers have been read to their end.
    """
    names = [stream.name]
    for node in operators:
        if node.inputs and all(below.name in names for below in node.inputs):
            names.append(node.name)
    return names
