"""Sessions of events: chains of lifetimes with gaps below the given one, cut at multiples of the longest duration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tests.oracle.feed import BEGINNING, END, Values
from tests.oracle.lifetimes import Event


def chains(events: Sequence[Event], gap: int) -> list[tuple[int, int, list[Event]]]:
    """The sessions of one group: from the first start to the last end plus the gap, and the events."""
    found: list[tuple[int, int, list[Event]]] = []
    for event in sorted(events, key=lambda e: e.start):
        end = event.end if event.end >= END else event.end + gap
        if found and event.start < found[-1][1]:
            start, last, inside = found.pop()
            found.append((start, max(last, end), [*inside, event]))
        else:
            found.append((event.start, end, [event]))
    return found


def sessions(
    events: Sequence[Event],
    key: str,
    gap: int,
    longest: int,
    bound: int,
    row: Callable[[Any, list[Event]], Values],
) -> tuple[list[Event], int]:
    """The sessions that have ended at the bound, and the least start of an open one, or the bound."""
    made, low = [], bound
    for value in dict.fromkeys(e.payload[key] for e in events):
        for start, end, inside in chains([e for e in events if e.payload[key] == value], gap):
            at = start
            while at < min(end, bound):
                upto = min(end, at + longest) if longest else end
                there = [e for e in inside if e.start < upto and at < e.end]
                if upto > bound:
                    low = min(low, at)
                elif there:
                    cut = [replace(e, start=max(e.start, at), end=min(e.end, upto)) for e in there]
                    made.append(Event(at, upto, row(value, cut)))
                at = upto
    return made, low if BEGINNING < bound < END else bound
