"""Drivers that are processes of their own, killed by SIGKILL, or stopped and considered dead."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from py4j.finalizer import ThreadSafeFinalizer

from reliability.crash.inside import SECONDS, Tally, Undisturbed, put_back

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reliability.crash.cases import Case

POINTS = ("before state", "after state", "before journal", "after journal", "after output")
ROUNDS = 40
OTHERS_REST: Final = 0.5  # seconds between two changes of other programs


Way = Callable[["Case", "SparkSession | None", random.Random], int]


def environment(spark: SparkSession | None) -> dict[str, str]:
    """Return the environment of a driver: with the Java of this process, or without, so that it starts its own."""
    if spark is None:
        return dict(os.environ)
    gateway = spark.sparkContext._gateway  # noqa: SLF001 - the one way to another process
    assert gateway is not None
    parameters = gateway.gateway_parameters
    return {
        **os.environ,
        "PYSPARK_GATEWAY_PORT": str(parameters.port),
        "PYSPARK_GATEWAY_SECRET": parameters.auth_token,
    }


def release(spark: SparkSession, first: int) -> int:
    """Let Java release what drivers that are gone have left in it; otherwise only a living Python would tell it to.

    Release the objects from number ``first`` on that this process does not use; return the next number. None of those
    drivers may be alive.
    """
    gateway = spark.sparkContext._gateway  # noqa: SLF001
    assert gateway is not None
    last = int(gateway.jvm.java.lang.Object()._target_id.removeprefix("o"))  # noqa: SLF001 - they are numbered
    used = {key.rpartition("o")[2] for key in tuple(ThreadSafeFinalizer.finalizers)}
    for number in range(first, last):
        if str(number) not in used:
            gateway._gateway_client.garbage_collect_object(f"o{number}")  # noqa: SLF001
    return last


def at_a_time(case: Case, spark: SparkSession | None, chance: random.Random) -> int:
    """Kill a driver some time after it is ready. Return its exit status."""
    return driver(case, spark, after=chance.uniform(0.0, 3.0))


def at_a_point(case: Case, spark: SparkSession | None, chance: random.Random) -> int:
    """Let a driver kill itself at a named point. Return its exit status."""
    return driver(case, spark, chance.choice(POINTS), str(chance.choice((1, 1, 2))))


WAYS: Final[Sequence[Way]] = (at_a_time, at_a_time, at_a_point, at_a_point, at_a_point)


def beside_others(ways: Sequence[Way], tally: Tally) -> Sequence[Way]:
    """Return the same ways, while other programs append to the lake tables of the case and compact them."""

    def beside(way: Way) -> Way:
        def kill(case: Case, spark: SparkSession | None, chance: random.Random) -> int:
            with _others_at_work(case, tally):
                return way(case, spark, chance)

        return kill

    return [beside(way) for way in ways]


@contextmanager
def _others_at_work(case: Case, tally: Tally) -> Iterator[None]:
    """Let other programs change the tables at once, and then again and again."""
    done = threading.Event()

    def work() -> None:
        while True:
            try:
                found = case.others_write()
            except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
                tally.losses.append(f"{case.name} {case.number}, others: {type(error).__name__} {error}"[:1500])
                return
            tally.count({f"{what} meanwhile": times for what, times in found.items()})
            if done.wait(OTHERS_REST):
                return

    worker = threading.Thread(target=work)
    worker.start()
    try:
        yield
    finally:
        done.set()
        worker.join()


class Deaths(NamedTuple):
    """How many drivers are killed, and in which ways, at random."""

    chance: random.Random
    times: int
    ways: Sequence[Way] = WAYS


def kills(run: Undisturbed, spark: SparkSession | None, tally: Tally, deaths: Deaths) -> None:
    """Kill a number of drivers of a case, one after the other, and begin again whenever one has come to the end."""
    case, kind = run.case, "SIGKILLs" if spark is not None else "SIGKILLs with Java"
    chance, times, ways = deaths
    if times <= 0:
        return
    done = rounds = 0
    put_back(case, run.folders[0])
    while done < times and rounds < ROUNDS:
        rounds += 1
        if case.tick == len(run.states) - 2:
            at_the_end(run, spark, tally)
            put_back(case, run.folders[0])
        status = chance.choice(ways)(case, spark, chance)
        if status == -signal.SIGKILL:
            done += 1
            tally.add(kind)
            _half_way(run, tally)
            tally.count(case.others_write())
        elif status != 0:
            tally.losses.append(f"{case.name} {case.number}: a driver ended with status {status}: {last_words(case)}")
            return
    at_the_end(run, spark, tally)


def driver(
    case: Case,
    spark: SparkSession | None,
    *kill: str,
    after: float | None = None,
    born: Callable[[int], None] = lambda _process: None,
) -> int:
    """Run a driver; ``after``: seconds after it is ready, when it is killed. Return its exit status.

    ``kill``: the point at which it kills itself, and at which passing; ``born`` is called with its process.
    """
    process = begin(case, spark, *kill)
    born(process.pid)
    assert process.stdout is not None
    patience = threading.Timer(SECONDS, process.kill)
    patience.start()
    try:
        process.stdout.readline()
        if after is not None:
            time.sleep(after)
            process.kill()
        process.stdout.read()
        return process.wait()
    finally:
        patience.cancel()


def begin(case: Case, spark: SparkSession | None, *kill: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "reliability.crash.driver", str(case.folder), case.told, *kill]
    with (case.folder.parent / "drivers.log").open("a") as log:
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment(spark))


def last_words(case: Case) -> str:
    """Return the end of what the drivers of a case wrote before they died."""
    return " ".join((case.folder.parent / "drivers.log").read_text(errors="replace")[-1000:].split())


def _half_way(run: Undisturbed, tally: Tally) -> None:
    """Check without any recovery: the ledger adds up, and a plain reader sees each committed row once, and no other."""
    case = run.case
    found, wanted = case.state(), run.states[case.tick + 1]
    for part in ("totals", "sinks"):
        tally.check({part: found.get(part)}, {part: wanted.get(part)}, f"{case.name} {case.number} after a kill")
    run.witness(run, tally, f"{case.name} {case.number} after a kill")


def at_the_end(run: Undisturbed, spark: SparkSession | None, tally: Tally) -> None:
    case = run.case
    with _others_at_work(case, tally) if case.has_tables else nullcontext():
        status = driver(case, spark)
    end = f" ended with status {status}: {last_words(case)}" if status else ""
    tally.check(case.state(), run.states[-1], f"{case.name} {case.number} after its kills{end}")
    tally.keep(case, f"{case.name} {case.number} after its kills")


def fenced(run: Undisturbed, spark: SparkSession, tally: Tally) -> None:
    """Check that a second driver is refused, and that one that was stopped cannot commit after its successor has."""
    case = run.case
    put_back(case, run.folders[0])
    away = stopped(case, spark, "before journal")
    second = begin(case, spark)
    if second.wait(SECONDS) == 0:
        tally.losses.append(f"{case.name}: a second driver was let in")
    tally.add("second drivers refused")
    forget_locks(case)
    successor = driver(case, spark)
    tally.check(case.state(), run.states[-1], f"{case.name}: the successor (status {successor})")
    os.kill(away.pid, signal.SIGCONT)
    if away.wait(SECONDS) == 0:
        tally.losses.append(f"{case.name}: a driver that was thought dead went on")
    tally.check(case.state(), run.states[-1], f"{case.name}: after the return of one thought dead")
    tally.keep(case, f"{case.name}: after the return of one thought dead")
    tally.add("drivers fenced")


def stopped(case: Case, spark: SparkSession | None, point: str) -> subprocess.Popen[str]:
    """Return a driver that was stopped when it passed a point for the second time."""
    away = begin(case, spark, point, "2", "SIGSTOP")
    deadline = time.monotonic() + SECONDS
    while not _is_stopped(away.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return away


def forget_locks(case: Case) -> None:
    """Remove locks, as an operator does who is sure that a driver is dead, or a file system that forgets locks."""
    for lock in case.folder.rglob(".lock"):
        lock.unlink()


def _is_stopped(process: int) -> bool:
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in "TZ"
