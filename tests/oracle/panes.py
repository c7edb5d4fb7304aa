"""Oracle of event time and panes (semantics 8): item by item, in the merged order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.oracle.feed import BEGINNING, END, Bound, Feed, Item, Refusal, Row, Values, sortable


def event_time(
    items: Sequence[Item], time: Callable[[Values], int | None], gate: str, lag: int = 0, gap: int = 0
) -> tuple[list[Item], list[Refusal]]:
    """Rows under their event times, each followed by the bound that it causes, if one is sent on.

    The bound is the greatest time so far less the lag; equal or lower ones are ignored. It is sent when it is at least
    the last sent one plus the gap. The end is the bound +∞.
    """
    out, refused = region(items, time, gate, lag, gap)
    return [item for _, item in out], refused


def region(
    items: Sequence[Item], time: Callable[[Values], int | None], gate: str, lag: int = 0, gap: int = 0
) -> tuple[list[tuple[int, Item]], list[Refusal]]:
    """The same, each with the clock after its item, which is its place among the items of others."""
    out: list[tuple[int, Item]] = []
    refused: list[Refusal] = []
    bound = sent = BEGINNING
    for item in items:
        if isinstance(item, Row):
            at = time(item.values)
            if at is None:
                refused.append(Refusal(gate, item.values, "NULL_ROWTIME", None, sent))
                continue
            assert item.at is not None
            clock = item.at
            out.append((clock, Row(at, item.values)))
            bound = max(bound, at - lag)
        elif item.at >= END:
            clock = bound = END
        if bound > sent and (sent == BEGINNING or bound >= sent + gap or bound == END):
            sent = bound
            out.append((clock, Bound(sent)))
    return out, refused


def meet(regions: Sequence[Sequence[tuple[int, Item]]], clocks: Sequence[int]) -> list[Item]:
    """Regions as one: their items in the merged order, as far as the clocks have decided it, under the least bound."""
    placed = [(at, n, place, item) for n, items in enumerate(regions) for place, (at, item) in enumerate(items)]
    ended = min(clocks) >= END
    settled = sorted(
        (entry for entry in placed
         if ended or all(entry[0] < clock if n < entry[1] else entry[0] <= clock for n, clock in enumerate(clocks))),
        key=lambda entry: entry[:3],
    )  # fmt: skip
    reached = [BEGINNING] * len(regions)
    out: list[Item] = []
    for _, n, _, item in settled:
        if isinstance(item, Row):
            out.append(item)
            continue
        before, reached[n] = min(reached), item.at
        if min(reached) > before:
            out.append(Bound(min(reached)))
    return out


def given(items: Sequence[Item], time: Callable[[Values], int | None], gate: str) -> tuple[list[Item], list[Refusal]]:
    """The same with bounds that are set: bounds among the items are about the event time."""
    out: list[Item] = []
    refused: list[Refusal] = []
    sent = BEGINNING
    for item in items:
        if isinstance(item, Row):
            at = time(item.values)
            if at is None:
                refused.append(Refusal(gate, item.values, "NULL_ROWTIME", None, sent))
            else:
                out.append(Row(at, item.values))
        elif item.at > sent:
            sent = item.at
            out.append(item)
    return out, refused


@dataclass
class _Group:
    """A pane of one key: its rows, whether some are new since the last fire, and the number of fires."""

    start: int
    end: int
    key: tuple[Any, ...]
    rows: list[Row] = field(default_factory=list)
    new: bool = False
    fires: int = 0
    shown: Values | None = None


@dataclass(frozen=True)
class Windows:
    """Panes [n · period + offset, + duration), kept for ``age`` after their end."""

    duration: int
    period: int
    offset: int = 0
    age: int = 0

    def starts(self, at: int) -> list[int]:
        """The starts of the panes that contain an instant."""
        start = (at - self.offset) // self.period * self.period + self.offset
        found = []
        while start + self.duration > at:
            found.append(start)
            start -= self.period
        return found


def panes(
    gate: str,
    items: Sequence[Item],
    windows: Windows,
    key: Callable[[Values], tuple[Any, ...]],
    shown: Callable[[_Group, str], Values],
    *,
    changes: bool = False,
    every: int | None = None,
    passed: list[Item] | None = None,
) -> tuple[Feed, list[Refusal]]:
    """The fires of panes, each under its rowtime, and the last bound; ``items`` have event times.

    ``changes``: a repeated fire retracts the row before it. ``every``: open panes with new rows fire when the bound
    reaches or passes a multiple of it. ``passed`` gets the fires, each under the end of its pane, and after the fires
    of a bound that bound.
    """
    groups: dict[tuple[Any, ...], _Group] = {}
    refused: list[Refusal] = []
    out: list[tuple[Any, ...]] = []
    bound = BEGINNING
    for item in items:
        if isinstance(item, Row):
            assert item.at is not None
            starts = windows.starts(item.at)
            if bound > BEGINNING and item.at < bound - windows.age:
                refused.append(Refusal(gate, item.values, "LATE", item.at, bound))
            elif not starts:
                refused.append(Refusal(gate, item.values, "NO_PANE", item.at, bound))
            else:
                for start in starts:
                    name = (start, key(item.values))
                    group = groups.setdefault(name, _Group(start, start + windows.duration, name[1]))
                    group.rows.append(item)
                    group.new = True
            continue
        before, bound, known = bound, item.at, len(out)
        crosses = every is not None and bound < END and bound // every > before // every
        for group in groups.values():
            late, complete = before >= group.end, before < group.end <= bound
            early = bound < group.end and crosses
            if complete or (group.new and (late or early)):
                group.new = False
                # A fire that late rows cause has the bound that released it, as far as that is an instant.
                at = group.end if complete else bound if bound < END else before
                order = (at, group.end if complete else bound, group.end, [sortable(part) for part in group.key])
                first = complete or (late and not group.fires)
                row = shown(group, "COMPLETE" if first else "EARLY" if early else "LATE")
                if changes and group.shown is not None:
                    out.append(((*order, 0), Row(at, {**group.shown, "change": "RETRACT"})))
                out.append(((*order, 1), Row(at, {**row, "change": "INSERT"} if changes else row)))
                group.fires, group.shown = group.fires + 1, row
        if passed is not None:
            now = sorted(out[known:], key=lambda entry: entry[0])
            passed += [*(Row(entry[0][2], entry[1].values) for entry in now), Bound(bound)]
    out.sort(key=lambda entry: entry[0])
    return {"": [*(row for _, row in out), Bound(bound)]}, refused


def sequence(feed: Feed) -> list[Item]:
    """Rows and bounds of several writers as one sequence, as far as it is decided (semantics 3).

    The order is that of each writer's clock after the item, then the writer's name, then position. A row moves the
    clock to its rowtime; a bound here is about the event time and moves no clock, except the end.
    """
    clocks: dict[str, int] = {}
    placed = []
    for writer, items in feed.items():
        clock = BEGINNING
        for position, item in enumerate(items):
            if isinstance(item, Row):
                assert item.at is not None
                clock = max(clock, item.at)
            elif item.at >= END:
                clock = END
            placed.append((clock, writer, position, item))
        clocks[writer] = clock
    settled = [
        entry for entry in placed
        if all(entry[0] < clock if other < entry[1] else entry[0] <= clock for other, clock in clocks.items())
    ]  # fmt: skip
    settled.sort(key=lambda entry: entry[:3])
    ended = min(clocks.values(), default=BEGINNING) >= END
    found = [item for *_, item in settled if isinstance(item, Row) or item.at < END]
    return [*found, Bound(END)] if ended else found
