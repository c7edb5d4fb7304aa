"""A client of a stream log, and what the log has of it.

``python -m reliability.crash.client HOME WRITER NUMBER COUNT`` makes COUNT calls, which follow from the number. It says
``ready`` once the writer is open, and after each call which one returned and the position of its items. After COUNT may
follow the first call to make and the position of its items: then it asks the log if the call during which it died is
there. Without a position it makes that call again, whatever the log has.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import rowtime as rt
from rowtime.client.log_items import Bound, Entry, Rows
from rowtime.client.stream_log import scan
from rowtime.client.writer import Writer
from rowtime.core.time import END

START = 1_704_103_200_000_000  # 2024-01-01 10:00 UTC, µs
APART = 1_000_000  # µs from one call to the next


@dataclass(frozen=True)
class Call:
    """Rows to insert at once, or a bound (µs UTC)."""

    rows: tuple[tuple[int, int], ...] = ()  # number and rowtime
    bound: int | None = None

    def make(self, log: Writer) -> None:
        """Call the writer."""
        if self.bound is not None:
            log.set_rowtime_bound(self.bound)
        else:
            log.insert([{"n": n, "k": f"k{n % 3}", "rowtime": at} for n, at in self.rows])

    @property
    def size(self) -> int:
        """The number of positions it takes."""
        return len(self.rows) or 1


def calls(number: int, count: int) -> list[Call]:
    """Return a number of calls, and then the end: rows that sometimes go back in time, and bounds."""
    chance = random.Random(f"calls {number}")
    return [*(_call(chance, turn) for turn in range(count)), Call(bound=END)]


def _call(chance: random.Random, turn: int) -> Call:
    now = START + turn * APART
    if chance.random() < 0.2:
        return Call(bound=now)
    back = (chance.choice((0, 0, 0, 0, 20 * APART)) for _ in range(chance.randint(1, 4)))
    return Call(tuple((turn * 10 + index, now - less + index) for index, less in enumerate(back)))


def first_missing(made: Sequence[Call], first: int, expected: int, position: int) -> int:
    """Return the first call to make by a client that asks the log: the one that was running may be there."""
    if position == expected:
        return first
    assert (position - expected) % made[first].size == 0, f"position {position}, not {expected} or behind {made[first]}"
    return first + 1


def held(home: Path, writer: str) -> list[tuple[int, Call]]:
    """Return what the log has of a writer: positions and calls, read without any recovery."""
    log = home / "logs" / "a"
    return [(entry.first, _held(log, entry)) for entry in scan(log, {}).get(writer, [])]


def _held(log: Path, entry: Entry) -> Call:
    if isinstance(entry, Bound):
        return Call(bound=entry.at)
    assert isinstance(entry, Rows), f"nobody wrote {entry}"
    rows = pq.read_table(log / entry.path, partitioning=None).to_pylist()
    assert [row["__p"] for row in rows] == list(range(entry.first, entry.end)), f"positions in {entry.path}"
    assert all(row["k"] == f"k{row['n'] % 3}" for row in rows), f"values in {entry.path}"
    return Call(tuple((row["n"], _micros(row["__t"])) for row in rows))


def _micros(at: Any) -> int:
    return round(at.timestamp() * 1_000_000)


def main(home: str, writer: str, *numbers: str) -> None:
    number, count, first, expected = (*map(int, numbers), *(0, -1)[len(numbers) - 2 :])
    made, begin = calls(number, count), first
    with rt.writer("a", home=home, writer=writer) as log:
        print("ready", flush=True)
        if expected >= 0:
            begin = first_missing(made, first, expected, log.position)
        for turn in range(first, begin):  # the one that is there
            print(turn, log.position - made[turn].size, flush=True)
        for turn, call in enumerate(made[begin:], begin):
            at = log.position
            call.make(log)
            print(turn, at, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
