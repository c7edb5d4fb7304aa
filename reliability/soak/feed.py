"""The data of the writers, and the process that sends it: ``python -m reliability.soak.feed HOME``.

Everything follows from the name of a writer and the number of its batch. A batch is a second of event time. Orders come
out of order by up to 1.5 seconds and sometimes by half a minute; payments come in order but for a few, each batch
followed by a bound.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import rowtime as rt

SECOND = 1_000_000
START = 1_704_103_200 * SECOND  # 2024-01-01 10:00 UTC, µs
EVERY = 0.25  # seconds between two batches
ROWS = 50  # of a batch
ITEMS = 10
ORDERS = ("east", "west")


@dataclass(frozen=True)
class Order:
    """A row of ``orders``; ``at`` in µs UTC."""

    number: int
    item: str
    amount: int
    at: int


@dataclass(frozen=True)
class Payment:
    """A row of ``payments``; ``at`` is its rowtime, in µs UTC."""

    number: int
    paid: int
    at: int


def orders(writer: str, batch: int) -> list[Order]:
    chance = random.Random(f"{writer} {batch}")
    base = (batch * len(ORDERS) + ORDERS.index(writer)) * ROWS
    return [
        Order(base + n, f"item {chance.randrange(ITEMS)}", chance.randrange(1000), _disordered(chance, batch))
        for n in range(ROWS)
    ]


def _disordered(chance: random.Random, batch: int) -> int:
    back = 30 * SECOND if chance.random() < 0.01 else chance.randrange(3 * SECOND // 2)
    return START + batch * SECOND + chance.randrange(SECOND) - back


def payments(batch: int) -> list[Payment]:
    """Return payments, each for an order of up to 9 batches ago."""
    chance = random.Random(f"payments {batch}")
    times = sorted(START + batch * SECOND + chance.randrange(SECOND) for _ in range(ROWS))
    greatest = (batch + 1) * len(ORDERS) * ROWS
    return [
        Payment(
            chance.randrange(max(0, greatest - 10 * len(ORDERS) * ROWS), greatest),
            chance.randrange(1000),
            at - 5 * SECOND if chance.random() < 0.01 else at,
        )
        for at in times
    ]


def bound(batch: int) -> int:
    """Return the bound after a batch of payments."""
    return START + (batch + 1) * SECOND


def main(home: str) -> None:
    """Send a batch of each writer every quarter of a second until standard input ends; print how many.

    It says ``ready`` after the first one. A query that begins then knows all writers from the beginning: a later writer
    would start at the clock of the others.
    """
    asked_to_end = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), asked_to_end.set()), daemon=True).start()
    with ExitStack() as open_ones:
        sides = {name: open_ones.enter_context(rt.writer("orders", home=home, writer=name)) for name in ORDERS}
        paid = open_ones.enter_context(rt.writer("payments", home=home))
        batch, began = 0, time.monotonic()
        while not asked_to_end.wait(max(0.0, began + batch * EVERY - time.monotonic())):
            for name, side in sides.items():
                side.insert([vars(order) for order in orders(name, batch)])
            paid.insert([vars(payment) for payment in payments(batch)], rowtime="at")
            paid.set_rowtime_bound(bound(batch))
            batch += 1
            if batch == 1:
                print("ready", flush=True)
        for writer in (*sides.values(), paid):
            writer.end()
    print(batch)


if __name__ == "__main__":
    main(str(Path(sys.argv[1])))
