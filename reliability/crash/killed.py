"""Drivers that are processes of their own, killed by SIGKILL or stopped and thought dead."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.finalizer import ThreadSafeFinalizer

from reliability.crash.inside import Tally, Undisturbed, restored

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from reliability.crash.cases import Case

POINTS = ("before state", "after state", "before journal", "after journal", "after output")
SECONDS = 300.0  # a driver that takes longer hangs
RANDOMLY = 0.4  # of the kills come at a random time
ROUNDS = 40


def environment(spark: SparkSession | None) -> dict[str, str]:
    """That of a driver: with the Java of this process, or without, so that it starts its own."""
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
    """Let Java forget what drivers that are gone have left in it, which only a living Python would tell it.

    The objects from number ``first`` on which this process does not use; the number of the next. None of those
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


def kills(run: Undisturbed, spark: SparkSession | None, tally: Tally, chance: random.Random, times: int) -> None:
    """Kill so many drivers of a case, one after the other, beginning anew whenever one has come to the end."""
    case, kind = run.case, "SIGKILLs" if spark is not None else "SIGKILLs with Java"
    if times <= 0:
        return
    done = rounds = 0
    restored(case, run.folders[0])
    while done < times and rounds < ROUNDS:
        rounds += 1
        if case.tick == len(run.states) - 2:
            _at_the_end(run, spark, tally)
            restored(case, run.folders[0])
        randomly = chance.random() < RANDOMLY
        status = _driver(
            case,
            spark,
            ("", "0") if randomly else (chance.choice(POINTS), str(chance.choice((1, 1, 2)))),
            chance.uniform(0.0, 3.0) if randomly else None,
        )
        if status == -signal.SIGKILL:
            done += 1
            tally.add(kind)
            _half_way(run, tally)
            if changed := case.others_write():
                tally.add("tables that others wrote to", changed)
        elif status != 0:
            tally.losses.append(f"{case.name} {case.number}: a driver ended with status {status}")
            return
    _at_the_end(run, spark, tally)


def _driver(case: Case, spark: SparkSession | None, kill: tuple[str, str], after: float | None) -> int:
    """Run a driver; ``after`` so many seconds from its being ready it is killed. Its exit status."""
    process = _started(case, spark, *kill)
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


def _started(case: Case, spark: SparkSession | None, *kill: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "reliability.crash.driver", str(case.folder), str(case.number), *kill]
    with (case.folder.parent / "drivers.log").open("a") as log:
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment(spark))


def _half_way(run: Undisturbed, tally: Tally) -> None:
    """Without any recovery the ledger adds up, and a plain reader sees no row that is not committed, nor one twice."""
    case = run.case
    found, wanted = case.state(), run.states[case.tick + 1]
    for part in ("totals", "sinks"):
        tally.check({part: found.get(part)}, {part: wanted.get(part)}, f"{case.name} {case.number} after a kill")


def _at_the_end(run: Undisturbed, spark: SparkSession | None, tally: Tally) -> None:
    case = run.case
    status = _driver(case, spark, ("", "0"), None)
    tally.check(case.state(), run.states[-1], f"{case.name} {case.number} after its kills (status {status})")


def fenced(run: Undisturbed, spark: SparkSession, tally: Tally) -> None:
    """A second driver is refused; one that was stopped and thought dead cannot commit what its successor has."""
    case = run.case
    restored(case, run.folders[0])
    away = _started(case, spark, "before journal", "2", "SIGSTOP")
    deadline = time.monotonic() + SECONDS
    while not _stopped(away.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    second = _started(case, spark)
    if second.wait(SECONDS) == 0:
        tally.losses.append(f"{case.name}: a second driver was let in")
    tally.add("second drivers refused")
    # What an operator does who is sure that it is dead, or a file system that forgets locks.
    (case.folder / "check" / ".lock").unlink(missing_ok=True)
    for places in ("home/logs/*/pump*/.lock", "out/*/_rowtime/*/.lock"):
        for lock in case.folder.glob(places):
            lock.unlink()
    successor = _driver(case, spark, ("", "0"), None)
    tally.check(case.state(), run.states[-1], f"{case.name}: the successor (status {successor})")
    os.kill(away.pid, signal.SIGCONT)
    if away.wait(SECONDS) == 0:
        tally.losses.append(f"{case.name}: a driver that was thought dead went on")
    tally.check(case.state(), run.states[-1], f"{case.name}: after the return of one thought dead")
    tally.add("drivers fenced")


def _stopped(process: int) -> bool:
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in "TZ"
