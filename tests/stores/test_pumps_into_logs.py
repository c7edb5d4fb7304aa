"""Pumps into a log in a bucket: each row once, if a driver dies, sleeps or takes over between any two requests."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any, Final, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reliability.stores.proxy import LATE, LOSE, THROTTLE, Faults
from rowtime.client import stream_log
from rowtime.client.home import Home
from rowtime.client.log_items import Rows
from rowtime.core.errors import Failure, Refused
from rowtime.core.stores import ObjectPlace, content_of
from rowtime.operators.sinks.sink import Sink as SinkNode
from rowtime.runtime.sinks.contract import Batch
from rowtime.runtime.sinks.ownership import Claim, Record
from rowtime.runtime.sinks.stream_log import StreamLogSink
from tests.deaths import Died

NODE = cast("SinkNode", SimpleNamespace(rowtime="rowtime"))
COLUMNS: Final = {"columns": [{"name": "n", "type": "BIGINT", "nullable": True}], "format": None, "options": {}}
TICKS: Final = ((0, 3), (3, 0), (3, 2), (5, 4))  # first row, count
WRITES: Final = ("create", "replace")


@pytest.fixture
def home() -> Home:
    """A home in a bucket, with a stream."""
    found = Home(f"memory://{uuid.uuid4().hex}/home")
    found.define("o", COLUMNS)
    return found


class Driver:
    """A driver of a pump: it claims the log, and delivers ticks."""

    def __init__(self, home: Home, checkpoint: str = "one") -> None:
        self.home, self.checkpoint = home, checkpoint
        self.sink = StreamLogSink(home, "o", "p")

    def start(self, sent: tuple[int, int] | None = None, *, take_over: bool = False) -> Record:
        place = f"{self.home.path}/{self.checkpoint}"
        record = self.sink.claim(Claim("p", self.checkpoint, place, 7, sent, take_over))
        self.sink.record(record)
        return record

    def hand_over(self, tick: int, base: int = 0, values: int | None = None) -> None:
        """Deliver a tick whose rows follow ``base`` others; they count from ``values`` on, else by their numbers."""
        first, count = TICKS[tick][0] + base, TICKS[tick][1]
        numbers = range(first, first + count) if values is None else range(values, values + count)
        times = pa.array(numbers, pa.timestamp("us", "UTC"))
        table = pa.table({"rowtime": times, "n": pa.array(numbers, pa.int64())})
        self.sink.publish(cast("Any", None), NODE, Batch(tick, first, count, first + count, (), lambda: table, list))


def run(home: Home, ticks: range) -> None:
    """A driver that starts, delivers the tick that may be missing, and the ticks after it."""
    driver = Driver(home)
    before = sum(count for _, count in TICKS[: ticks.start])
    driver.start((before, before + TICKS[ticks.start][1]) if ticks.start else None)
    for tick in ticks:
        driver.hand_over(tick)


def numbers(home: Home) -> list[int]:
    stream_log._buckets.clear()
    log = home.log_path("o")
    files = [log / entry.path for entry in stream_log.entries_of(log, "pump.p") if isinstance(entry, Rows)]
    return [n for file in files for n in pq.read_table(content_of(file), partitioning=None)["n"].to_pylist()]


@contextmanager
def before(at: int, act: Callable[[], object], *, carried_out: bool = False) -> Iterator[list[str]]:
    """Act once before the write ``at`` of a store, or right after it; return the writes."""
    written: list[str] = []

    def counted(write: Callable[..., Any]) -> Callable[..., Any]:
        def one(place: ObjectPlace, *given: Any, **named: Any) -> Any:
            written.append(place.name)
            due = len(written) == at + 1
            if due and not carried_out:
                act()
            found = write(place, *given, **named)
            if due and carried_out:
                act()
            return found

        return one

    with pytest.MonkeyPatch.context() as patch:
        for name in WRITES:
            patch.setattr(ObjectPlace, name, counted(getattr(ObjectPlace, name)))
        yield written


def die() -> None:
    raise Died


@pytest.mark.parametrize("carried_out", [False, True])
def test_a_driver_that_dies_between_two_requests_loses_and_repeats_nothing(carried_out: bool) -> None:
    for at in range(100):
        home = Home(f"memory://{uuid.uuid4().hex}/home")
        home.define("o", COLUMNS)
        with before(at, die, carried_out=carried_out) as written:
            driver, tick = Driver(home), 0
            try:
                driver.start()
                for tick in range(len(TICKS)):
                    driver.hand_over(tick)
            except Died:
                pass
        if len(written) <= at:
            break
        run(home, range(tick, len(TICKS)))
        assert numbers(home) == [*range(9)], (at, written)
    assert at == 7, "an owner, three inserts, three bounds"


def test_an_older_driver_that_wakes_up_at_any_request_repeats_nothing() -> None:
    """It delivers a committed tick, while its successor delivers that tick and the following ones."""
    for at in range(100):
        home = Home(f"memory://{uuid.uuid4().hex}/home")
        home.define("o", COLUMNS)
        run(home, range(2))
        old = Driver(home)
        old.start((3, 3))
        with before(at, partial(run, home, range(2, len(TICKS)))) as written:
            old.hand_over(2)
        assert numbers(home) == [*range(9)] if len(written) > at else [*range(5)], (at, written)
        if len(written) <= at:
            break
    assert at == 2


def test_a_driver_that_was_taken_over_at_any_request_writes_nothing_more() -> None:
    for at in range(100):
        home = Home(f"memory://{uuid.uuid4().hex}/home")
        home.define("o", COLUMNS)
        old, new, bases = Driver(home), Driver(home, "two"), list[int]()
        old.start()

        def take_over(new: Driver = new, bases: list[int] = bases) -> None:
            bases.append(new.start(take_over=True).base)
            new.hand_over(0, bases[-1], values=100)

        with before(at, take_over) as written:
            try:
                for tick in range(len(TICKS)):
                    old.hand_over(tick)
            except Refused as refused:
                assert refused.problems[0].code == "R441"  # noqa: PT017 - it is refused at any of many requests
            else:
                assert not bases
        if not bases:
            break
        assert numbers(home) == [*range(bases[0]), 100, 101, 102], (at, written)
    assert at > len(TICKS)


def test_a_pump_that_is_taken_over_while_it_writes_says_stop_it(home: Home) -> None:
    old, new = Driver(home), Driver(home, "two")
    old.start()
    old.hand_over(0)
    record = new.sink.claim(Claim("p", "two", f"{home.path}/two", 7, take_over=True))
    old.hand_over(2)
    with pytest.raises(Refused, match="R442 another pipeline that is running"):
        new.sink.record(record)
    with pytest.raises(Refused, match="R441"):
        old.hand_over(3)
    again = Driver(home, "two")
    assert again.start().base == 5, "the next start goes on behind the rows that are there"
    again.hand_over(0, 5)
    assert numbers(home) == [0, 1, 2, 3, 4, 5, 6, 7]


def test_of_two_concurrent_first_pumps_one_gets_the_name(home: Home) -> None:
    one, other = Driver(home, "one"), Driver(home, "two")
    places = [f"{home.path}/{name}" for name in ("one", "two")]
    records = [
        driver.sink.claim(Claim("p", driver.checkpoint, place, 7))
        for driver, place in zip((one, other), places, strict=True)
    ]
    one.sink.record(records[0])
    with pytest.raises(Refused, match="R442"):
        other.sink.record(records[1])
    one.hand_over(0)
    with pytest.raises(Refused, match="R440"):
        Driver(home, "two").start()
    assert numbers(home) == [0, 1, 2]


@pytest.mark.slow
def test_lost_late_or_refusing_answers_of_a_store_repeat_nothing(
    stored: str, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(f"{stored}/home")
    home.define("o", COLUMNS)
    faults.put("/pump", LOSE, THROTTLE, LOSE, LOSE, THROTTLE, LOSE)
    driver = Driver(home)
    driver.start()
    for tick in (0, 1):
        driver.hand_over(tick)
    assert not faults.next
    monkeypatch.setattr("rowtime.core.stores.RETRIED", timedelta(milliseconds=1))
    monkeypatch.setattr("rowtime.core.stores.TRIES", 1)
    late = Driver(Home(f"{stored}/home"))
    late.start((3, 3))
    faults.put("/pump", *[LATE] * 20)
    with pytest.raises(Failure, match="R583"):
        late.hand_over(2)
    faults.next.clear()
    driver = Driver(Home(f"{stored}/home"))
    driver.start((3, 5))
    faults.deliver()
    for tick in (2, 3):
        driver.hand_over(tick)
    assert numbers(home) == [*range(9)]
