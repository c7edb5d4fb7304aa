"""Stops of a client of a stream log inside one process: before each write of each of its calls the folder is copied.

Each copy is what a death at that moment leaves, in some of them with half of the file that was being written. Another
client takes it over, asks the log what is there, and makes the missing calls. In a share of them a pipeline reads what
the dead client left, and then the rest. The same calls are made again with writes that fail.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import rowtime as rt
from reliability.crash.client import Call, calls, first_missing, held
from reliability.crash.inside import HALF, TORN, Sample, Tally, copied
from reliability.crash.reader import Reader
from reliability.crash.writes import ERRORS, failing, watched
from rowtime.client import log_folder
from rowtime.client.log_folder import UNDER_WAY
from rowtime.client.writer import Writer
from rowtime.core.errors import RowtimeError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CALLS = 12
SHARD = 4  # files, so that several shards are begun
WRITER = "w1"
READ = 0.05  # of the stops are read by a pipeline


@dataclass(frozen=True)
class Stop:
    """What a death leaves: where it was, the folder, and how many calls had returned."""

    where: str
    folder: Path
    made: int


class Calls:
    """The calls of a number, and the positions of each."""

    def __init__(self, number: int) -> None:
        self.made = calls(number, CALLS)
        self.at = [0]
        for call in self.made:
            self.at.append(self.at[-1] + call.size)

    def go_on(self, home: Path, first: int) -> None:
        """Make the calls from ``first`` on, as a client does that asks what is there."""
        with rt.writer("a", home=home, writer=WRITER) as log:
            for call in self.made[first_missing(self.made, first, self.at[first], log.position) :]:
                call.make(log)

    def wrong(self, home: Path) -> list[str]:
        """Return how the log differs from these calls, each difference once, in words."""
        found, wanted = held(home, WRITER), list(zip(self.at, self.made, strict=False))
        return [] if found == wanted else [f"the log has {found}, not {wanted}"]


def writer_stops(spark: SparkSession, folder: Path, tally: Tally, number: int, sample: Sample) -> None:
    """Stop at the writes of the sample; at some of them a pipeline reads what is there, and then the rest."""
    made, live = Calls(number), Reader(number, folder / "live")
    with small_shards():
        stops = _stopped(made, live, sample)
        live.run(spark)
        wanted = live.state()
        for stop in stops:
            where, reader = f"writer {number}, {stop.where}", Reader(number, stop.folder)
            read = sample.chance.random() < READ
            if read:
                reader.run(spark)
            _taken_over(made, stop, tally, where)
            if read:
                reader.run(spark)
                tally.check(reader.state(), wanted, f"{where}, read on")
                tally.add("writer stops that were read")
            shutil.rmtree(stop.folder)


def _stopped(made: Calls, case: Reader, sample: Sample) -> list[Stop]:
    """Make all calls and keep the folder at the writes of the sample."""
    case.make()
    found: list[Stop] = []
    busy: list[str] = []
    back: list[Call] = []

    def keep(where: str) -> None:
        if not busy and sample.has_next():
            busy.append(where)
            image = copied(case.folder, case.folder.parent / f"stop {len(found)}")
            torn = sample.chance.random() < TORN and _torn(image)
            found.append(Stop(f"{where}{', torn' if torn else ''}", image, len(back)))
            busy.clear()

    watching = watched(case.folder, lambda what, path: keep(f"before {what} {Path(path).name}"))
    with watching, rt.writer("a", home=case.folder / "home", writer=WRITER) as log:
        for call in made.made:
            call.make(log)
            back.append(call)
    return found


def _torn(folder: Path) -> bool:
    """Cut the file that was being written in half."""
    staged = folder / "home" / "logs" / "a" / WRITER / UNDER_WAY
    if not staged.exists():
        return False
    data = staged.read_bytes()
    staged.write_bytes(data[: len(data) // 2])
    return True


def _taken_over(made: Calls, stop: Stop, tally: Tally, where: str) -> None:
    """Check that a reader sees the calls that returned, each whole, and that another client can make the rest."""
    home = stop.folder / "home"
    tally.add("writer stops")
    if stop.where.endswith("torn"):
        tally.add("torn inserts")
    try:
        before = [call for _, call in held(home, WRITER)]
        if before != made.made[: len(before)] or not stop.made <= len(before) <= stop.made + 1:
            tally.losses.append(f"{where}: after {stop.made} calls the log has {before}")
        made.go_on(home, stop.made)
        tally.losses += [f"{where}: {wrong}" for wrong in made.wrong(home)]
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
        tally.losses.append(f"{where}: {type(error).__name__} {error}")


def writer_faults(folder: Path, tally: Tally, number: int, sample: Sample) -> None:
    """For each write of the sample make the calls and let the write fail: the client tries again, or another one."""
    made, empty, writes = Calls(number), Reader(number, folder / "empty"), count()
    empty.make()
    with small_shards():
        counted = copied(empty.folder, folder / "counted")
        with watched(counted, lambda _what, _path: next(writes) and None):
            made.go_on(counted / "home", 0)
        for at in (at for at in range(next(writes)) if sample.has_next()):
            error = sample.chance.choice(ERRORS)
            place, where = copied(empty.folder, folder / "live"), f"writer {number}, error {error} in write {at}"
            try:
                with watched(place, failing(at, error)):
                    first = _tried(made, place / "home", again=sample.chance.random() < HALF)
                made.go_on(place / "home", first)
                tally.losses += [f"{where}: {wrong}" for wrong in made.wrong(place / "home")]
                tally.add("failed writes of writers")
            except Exception as lost:  # noqa: BLE001 - as above
                tally.losses.append(f"{where}: {type(lost).__name__} {lost}")


def _tried(made: Calls, home: Path, *, again: bool) -> int:
    """Make the calls until one fails, or to the end if the same client tries ``again``. Return how many returned."""
    back = 0
    with suppress(RowtimeError), rt.writer("a", home=home, writer=WRITER) as log:
        for call in made.made:
            _made(call, log, again=again)
            back += 1
    return back


def _made(call: Call, log: Writer, *, again: bool) -> None:
    """Make a call; if it fails, its position says if its items are there."""
    before = log.position
    try:
        call.make(log)
    except RowtimeError:
        if not again:
            raise
        if log.position == before:
            call.make(log)


@contextmanager
def small_shards() -> Iterator[None]:
    """Let a shard be full after a few files."""
    with mock.patch.object(log_folder, "SHARD_FILES", SHARD):
        yield
