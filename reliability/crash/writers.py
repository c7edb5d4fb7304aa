"""Clients of a stream log that are killed while a pipeline reads what they write.

A client that died continues from what its log has. Acknowledged items are in the log once, at the position that the
call returned; others are there whole or not at all. The output of the pipeline is that of one that reads the log at the
end.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

import rowtime as rt
from reliability.crash.client import Call, calls, held
from reliability.crash.inside import Tally
from reliability.crash.reader import Reader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CALLS_A_KILL = 12
BURST = 4  # rows that come through a pipe together
PAUSE = 0.25  # seconds between them, after which ``rowtime insert`` keeps them waiting no longer
PATIENCE = 300.0  # seconds: a client that takes longer hangs


@dataclass
class Client:
    """One writer, whose process is killed again and again; ``acknowledged``: positions of the calls that returned."""

    home: Path
    writer: str
    made: list[Call]
    seed: int
    acknowledged: dict[int, int] = field(default_factory=dict)
    again: set[int] = field(default_factory=set)  # calls that a client made again without asking

    def begin(self) -> None:
        """Make the first call, so that a reader knows the writer from its first tick on."""
        with rt.writer("a", home=self.home, writer=self.writer) as log:
            self.acknowledged[0] = log.position
            self.made[0].make(log)

    def run(self, times: int) -> Tally:
        """Die a number of times, or less often if the calls end before, and then continue to the end."""
        tally, chance = Tally(), random.Random(f"client {self.seed} {self.writer}")
        while len(self.acknowledged) < len(self.made):
            killed = tally.counts.get("killed writers", 0)
            status = self._process(chance, dies=killed < times)
            if status == -signal.SIGKILL:
                tally.add("killed writers")
            elif status != 0:
                tally.losses.append(f"{self.writer} of {self.home}: a client ended with status {status}")
                break
            tally.losses += self.wrong()
        return tally

    def _process(self, chance: random.Random, *, dies: bool) -> int:
        first = len(self.acknowledged)
        expected = self.acknowledged[first - 1] + self.made[first - 1].size
        asks = chance.random() < 0.5
        if not asks:
            self.again.add(first)
        command = [sys.executable, "-m", "reliability.crash.client", str(self.home), self.writer]
        command += [str(self.seed), str(len(self.made) - 1), str(first), *([str(expected)] if asks else [])]
        early = chance.random() < 0.1  # while it opens the writer
        with _started(command, self.home.parent, subprocess.DEVNULL) as process:
            assert process.stdout is not None
            if not early:
                process.stdout.readline()
            with _dying(process, chance.uniform(0.0, 0.3) if dies else PATIENCE):
                for line in process.stdout:
                    if line != "ready\n":
                        turn, at = map(int, line.split())
                        self.acknowledged[turn] = at
        return process.returncode

    def wrong(self) -> list[str]:
        """Return how the log differs from what the calls returned, in words."""
        found = held(self.home, self.writer)
        at = dict(found)
        told = f"{self.writer} of {self.home}"
        lost = [n for n, position in self.acknowledged.items() if at.get(position) != self.made[n]]
        if lost:
            return [f"{told}: call {lost[0]} came back from {self.acknowledged[lost[0]]}, which has {at.get(lost[0])}"]
        return (
            [] if self._in_order([call for _, call in found]) else [f"{told}: its calls are not those that were made"]
        )

    def _in_order(self, found: list[Call]) -> bool:
        """Return True if every call is there once, or again if it was made again, and nothing else."""
        turn = 0
        for call in found:
            if turn < len(self.made) and call == self.made[turn]:
                turn += 1
            elif turn - 1 not in self.again or call != self.made[turn - 1]:
                return False
        return len(self.acknowledged) <= turn <= len(self.acknowledged) + 1


@dataclass
class Command:
    """Rows that come through a pipe into ``rowtime insert``; the sender counts those that are in the log."""

    home: Path
    writer: str
    rows: list[tuple[int, int]]
    seed: int

    def begin(self) -> None:
        """As above, with the first row."""
        with rt.writer("a", home=self.home, writer=self.writer) as log:
            Call((self.rows[0],)).make(log)

    def run(self, times: int) -> Tally:
        """As above; nothing is acknowledged but the end."""
        tally, chance = Tally(), random.Random(f"command {self.seed}")
        there = self._there()
        while there < len(self.rows):
            status = self._process(chance, self.rows[there:], dies=tally.counts.get("killed writers", 0) < times)
            if status == -signal.SIGKILL:
                tally.add("killed writers")
            elif status != 0:
                tally.losses.append(f"rowtime insert into {self.home} ended with status {status}")
            before, there = there, self._there()
            if there < before or tally.losses:
                tally.losses.append(f"rowtime insert into {self.home}: {there} rows, of {before} before")
                return tally
        with rt.writer("a", home=self.home, writer=self.writer) as log:
            log.end()
        return tally

    def _there(self) -> int:
        """Return how many rows are in the log; -1 if they are not the first ones of those that were sent."""
        found = [row for _, call in held(self.home, self.writer) for row in call.rows]
        return len(found) if found == self.rows[: len(found)] else -1

    def _process(self, chance: random.Random, rows: list[tuple[int, int]], *, dies: bool) -> int:
        command = [sys.executable, "-c", "from rowtime.cli.main import main; main()"]
        command += ["insert", "a", "-", "--writer", self.writer, "--home", str(self.home)]
        with _started(command, self.home.parent, subprocess.PIPE) as process:
            assert process.stdin is not None
            with _dying(process, chance.uniform(0.5, 4.0) if dies else PATIENCE):
                _feed(process.stdin, rows)
                process.wait()
        return process.returncode


def _feed(pipe: IO[str], rows: list[tuple[int, int]]) -> None:
    try:
        for index, (n, at) in enumerate(rows):
            pipe.write(json.dumps({"n": n, "k": f"k{n % 3}", "rowtime": at}) + "\n")
            if index % BURST == BURST - 1:
                pipe.flush()
                time.sleep(PAUSE)
        pipe.close()
    except BrokenPipeError:  # it died, and what waits in the buffer is lost with it
        with suppress(BrokenPipeError):
            pipe.close()


def _started(command: list[str], folder: Path, given: int) -> subprocess.Popen[str]:
    with (folder / "clients.log").open("a") as log:
        return subprocess.Popen(command, stdin=given, stdout=subprocess.PIPE, stderr=log, text=True)


@contextmanager
def _dying(process: subprocess.Popen[str], after: float) -> Iterator[None]:
    timer = threading.Timer(after, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def killed_writers(spark: SparkSession, folder: Path, tally: Tally, number: int, times: int) -> None:
    """Kill three clients of one stream while a pipeline reads; then let another pipeline read it all."""
    case, count = Reader(number, folder / "live"), CALLS_A_KILL * times
    case.make()
    home = case.folder / "home"
    rows = [row for call in calls(number + 1_000, count) for row in call.rows]
    clients: list[Client | Command] = [
        Client(home, "w1", calls(number, count), number),
        Client(home, "w2", calls(-number, count), -number),
        Command(home, "w3", rows[: 5 * BURST], number),
    ]
    for client in clients:
        client.begin()
    with ThreadPoolExecutor(len(clients)) as pool:
        at_work = [pool.submit(client.run, -(-times // 3)) for client in clients]
        _read(case, spark, at_work)
    for one in at_work:
        tally.take(one.result())
    _compare(case, spark, folder / "calm", tally)


def _read(case: Reader, spark: SparkSession, at_work: Sequence[Future[Tally]]) -> None:
    """Read while clients are at work, from one start to the next, and finally to the end."""
    while not all(one.done() for one in at_work):
        query = case.pipeline(spark).start(case.folder / "check", interval=0.05)
        wait(at_work, timeout=2.0)
        query.stop()
        if query.exception is not None:
            raise query.exception
    case.run(spark)


def _compare(case: Reader, spark: SparkSession, folder: Path, tally: Tally) -> None:
    """Check that the output is that of the same log if nobody dies, and that it is all of the log."""
    calm = Reader(case.number, folder)
    calm.make()
    shutil.copytree(case.folder / "home" / "logs" / "a", folder / "home" / "logs" / "a", dirs_exist_ok=True)
    calm.run(spark)
    where, found = f"writers {case.number}", case.state()
    tally.check(found, calm.state(), where)
    written = sum(len(call.rows) for writer in ("w1", "w2", "w3") for _, call in held(folder / "home", writer))
    if found["totals"]["a"]["in"] != written:
        tally.losses.append(f"{where}: {written} rows in the log, {found['totals']['a']} in the ledger")
    tally.add("rows of killed writers", written)
