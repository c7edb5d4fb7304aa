"""Faults of a pipeline on a store: failing requests, drivers that are killed at a request, or come back.

Semantics 14.3: of two drivers the later one commits, and nothing of the other is seen.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Final

from reliability.crash.cases import close
from reliability.crash.inside import SECONDS, Tally, Undisturbed, put_back
from reliability.crash.killed import (
    POINTS,
    Way,
    at_a_point,
    at_a_time,
    begin,
    beside_others,
    driver,
    forget_locks,
    stopped,
)
from reliability.crash.stores import Decide, StoreCase
from reliability.stores.proxy import LATE, LOSE, SLOW, THROTTLE
from rowtime.core.errors import RowtimeError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reliability.crash.cases import Case

BEFALLS: Final = ((THROTTLE,), (THROTTLE,) * 3, (LOSE,), (LOSE, LOSE), (THROTTLE, LOSE), (LATE,), (LATE, LOSE), (SLOW,))
"""The faults of a write, and of the retries that follow."""
ON_ITS_WAY: Final = 0.2  # seconds until what a dead driver had asked for has been carried out


def befallen(run: Undisturbed, spark: SparkSession, tally: Tally, chance: random.Random, times: int) -> None:
    """Repeat a tick, its start included, each time with another of its writes that goes wrong.

    A late one is executed after the driver has continued without it, or after another one has taken over.
    """
    tick = chance.randrange(len(run.folders) - 1)
    if times > 0:
        writes = _writes(run, spark, tick)
        for at in sorted(chance.sample(range(writes), min(writes, times))):
            kinds = chance.choice(BEFALLS)
            where = f"{run.case.name} {run.case.number}, tick {tick}, {', '.join(kinds)} in write {at} of {writes}"
            try:
                _befallen(run, spark, tally, (tick, _befalling(at, kinds)), where)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
                tally.losses.append(f"{where}: {type(error).__name__} {error}"[:1500])
            for kind in kinds:
                tally.add(f"writes that were {_NAMES[kind]}")


_NAMES: Final = {THROTTLE: "throttled", LOSE: "not answered", LATE: "executed late", SLOW: "slow"}


def _befallen(run: Undisturbed, spark: SparkSession, tally: Tally, what: tuple[int, Decide], where: str) -> None:
    case, (tick, decide) = run.case, what
    assert isinstance(case, StoreCase)
    put_back(case, run.folders[tick])
    with case.deciding(decide):
        engine = case.engine(spark)
        try:
            engine.tick()
        except RowtimeError as error:
            tally.add("ticks that failed")
            if "R403" in str(error):
                tally.losses.append(f"{where}: took what it has written itself for another driver's: {error}")
            engine.tick()  # the same driver tries again
    close(engine)
    tally.check(case.state(), run.states[case.tick + 1], where)
    engine = case.engine(spark)
    case.on.faults.deliver()
    while engine.tick() is not None:
        tally.check(case.state(), run.states[case.tick + 1], f"{where}, then tick {case.tick}")
    close(engine)
    tally.check(case.state(), run.states[-1], f"{where}, at the end")
    run.witness(run, tally, where)


def _writes(run: Undisturbed, spark: SparkSession, tick: int) -> int:
    """Return how many writes to the store a start and this tick make."""
    case = run.case
    assert isinstance(case, StoreCase)
    put_back(case, run.folders[tick])
    before = case.on.writes[case.key]
    engine = case.engine(spark)
    engine.tick()
    close(engine)
    return case.on.writes[case.key] - before


def _befalling(at: int, kinds: Sequence[str]) -> Decide:
    numbers = count(-at)

    def decide(_method: str, _path: str) -> str:
        number = next(numbers)
        return kinds[number] if 0 <= number < len(kinds) else ""

    return decide


# -- drivers that are processes of their own ------------------------------------------------


def at_a_write(writes: int) -> Way:
    """Return how to kill drivers at one of their ``writes`` to the store, before or after it is executed."""

    def kill(case: Case, spark: SparkSession | None, chance: random.Random) -> int:
        assert isinstance(case, StoreCase)
        at, carried_out, victim = chance.randrange(writes), chance.random() < 0.5, list[int]()
        numbers = count()

        def decide(_method: str, _path: str) -> str:
            if next(numbers) != at:
                return ""
            os.kill(victim[0], signal.SIGKILL)
            return "" if carried_out else THROTTLE

        with case.deciding(decide):
            status = driver(case, spark, born=victim.append)
            time.sleep(ON_ITS_WAY)
        return status

    return kill


def ways(writes: int, tally: Tally) -> Sequence[Way]:
    """Return the ways in which drivers on a store die, beside other programs that write to their tables."""
    return beside_others((at_a_time, at_a_point, *[at_a_write(writes)] * 4), tally)


def fenced_on_store(run: Undisturbed, spark: SparkSession, tally: Tally, chance: random.Random, writes: int) -> None:
    """Check that a driver that was stopped, or whose request was slow, commits nothing once another one has taken over.

    It ends with R403; with R583 if it was held in its start.
    """
    case = run.case
    assert isinstance(case, StoreCase)
    put_back(case, run.folders[0])
    log = case.folder.parent / "drivers.log"
    before = log.stat().st_size if log.exists() else 0
    if chance.random() < 0.5:
        where = f"{case.name} {case.number}, stopped {(point := chance.choice(POINTS))}"
        away = stopped(case, spark, point)
        status = _succeeded(run, spark, tally, where)
        os.kill(away.pid, signal.SIGCONT)
    else:
        at = chance.randrange(writes // 2)
        where = f"{case.name} {case.number}, held at write {at}"
        with _held(case, at) as (reached, released):
            away = begin(case, spark)
            reached.wait(SECONDS)
            status = _succeeded(run, spark, tally, where)
            released.set()
            away.wait(SECONDS)
    status_of_first = away.wait(SECONDS)
    ended = next((code for code in ("R403", "R583") if f": {code} " in log.read_text()[before:]), "")
    if status_of_first == 0 or not ended:
        tally.losses.append(f"{where}: a driver that had been succeeded ended with status {status_of_first}")
    tally.check(case.state(), run.states[-1], f"{where}, after its return (its successor had status {status})")
    run.witness(run, tally, where)
    tally.add("drivers fenced on a store" if ended == "R403" else "drivers that gave up on a store")


def _succeeded(run: Undisturbed, spark: SparkSession, tally: Tally, where: str) -> int:
    """Let a successor run to the end."""
    forget_locks(run.case)  # of what is on a disk
    status = driver(run.case, spark)
    tally.check(run.case.state(), run.states[-1], f"{where}: the successor (status {status})")
    return status


@contextmanager
def _held(case: StoreCase, at: int) -> Iterator[tuple[threading.Event, threading.Event]]:
    """Hold back the write of a number: the first event says that it has come, the second one releases it."""
    reached, released, numbers = threading.Event(), threading.Event(), count()

    def decide(_method: str, _path: str) -> str:
        if next(numbers) == at:
            reached.set()
            released.wait(SECONDS)
        return ""

    with case.deciding(decide):
        yield reached, released
