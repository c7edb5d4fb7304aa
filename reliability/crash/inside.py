"""Stops inside one process: the content of the disk at a moment is what a death at that moment leaves.

Before each write of a tick, and at each of its named points, the folder is copied. A new driver then takes over each
copy: it has to find the state before the tick or the one after it, and some of them continue to the end. The copy may
lack part of a file that no entry names; and the same tick is repeated with writes that fail.
"""

from __future__ import annotations

import faulthandler
import random
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from reliability.crash.cases import Case, State, close
from reliability.crash.lakes import torn_versions
from reliability.crash.writes import ERRORS, failing
from reliability.model.journals import Behaviour, behaviours
from rowtime.core.errors import Failure, RowtimeError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.runtime.engine import Engine

Image = tuple[str, Path]


class HasFolder(Protocol):
    """Something that is in one folder."""

    @property
    def folder(self) -> Path:
        """The folder."""
        ...


HOUR = 3_600_000_000  # µs
SECONDS = 300.0  # a driver that takes longer hangs


@contextmanager
def patience(seconds: float = SECONDS) -> Iterator[None]:
    """End this process if the block hangs, and show where: no comparison finds what never ends."""
    faulthandler.dump_traceback_later(seconds, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


@dataclass
class Tally:
    """Numbers of tries of each kind, and the losses; the different ``behaviours`` that journals show."""

    counts: dict[str, int] = field(default_factory=dict)
    losses: list[str] = field(default_factory=list)
    behaviours: dict[object, Behaviour] = field(default_factory=dict)

    def add(self, kind: str, times: int = 1) -> None:
        """Count one of a kind, or several."""
        self.counts[kind] = self.counts.get(kind, 0) + times

    def count(self, found: Mapping[str, int]) -> None:
        """Add numbers of some kinds."""
        for kind, times in found.items():
            self.add(kind, times)

    def take(self, other: Tally) -> None:
        """Add the numbers of another."""
        self.count(other.counts)
        self.losses += other.losses
        self.behaviours = {**other.behaviours, **self.behaviours}

    def keep(self, case: Case, where: str) -> None:
        """Keep what the journal of a case and the commits of its sinks show, for the model (`reliability.model`)."""
        for one in behaviours(case.check, case.home, where):
            self.add("journals of sinks")
            self.behaviours.setdefault(one.what, one)

    def check(self, found: State, wanted: State, where: str) -> None:
        """Keep the difference, if there is one."""
        for part in sorted({*found, *wanted}):
            if found.get(part) != wanted.get(part):
                self.losses.append(f"{where}: {part} is {found.get(part)}, not {wanted.get(part)}"[:1500])
                return
        if found.get("adds up") is False:
            self.losses.append(f"{where}: the ledger does not add up: {found['totals']}")


class Sample:
    """One of ``every`` items, evenly spread; ``chance`` decides which is the first."""

    def __init__(self, chance: random.Random, every: int = 1) -> None:
        self.chance, self._every, self._to_go = chance, every, chance.randrange(every)

    def has_next(self) -> bool:
        """Return True if the next item belongs to the sample."""
        self._to_go = (self._to_go - 1) % self._every
        return self._to_go == self._every - 1


def reads_every_version(run: Undisturbed, tally: Tally, where: str) -> None:
    """Check that each version of each lake table has whole ticks, each once."""
    versions, torn = torn_versions(run.case.tables(), run.states)
    if versions:
        tally.add("versions of tables that were read", versions)
    tally.losses += [f"{where}: {what}"[:1500] for what in torn]


Witness = Callable[["Undisturbed", "Tally", str], None]


@dataclass(frozen=True)
class Undisturbed:
    """A case that ran without a stop: the folder before each tick, the state after it; at [0] that before all.

    ``images``: for each tick the content of the disk at its points and before its writes. ``witness`` examines the
    tables of the case, at any time, and reports what is wrong.
    """

    case: Case
    folders: Sequence[Path]
    states: Sequence[State]
    images: Sequence[Sequence[Image]]
    witness: Witness = reads_every_version


def undisturbed(case: Case, spark: SparkSession, kept: Path, sample: Sample) -> Undisturbed:
    """Run a case and keep the folder before each tick, and at those of its points and writes that the sample has."""
    case.make()
    folders, states, images = [kept_as(case, kept / "0")], [case.state()], list[Sequence[Image]]()
    engine = case.engine(spark)
    while True:
        found = _images(case, engine, folders[-1], kept / f"images of {len(images)}", sample)
        if found is None:
            break
        images.append(found)
        states.append(case.state())
        folders.append(kept_as(case, kept / str(len(folders))))
    close(engine)
    return Undisturbed(case, folders, states, images)


def stops(run: Undisturbed, spark: SparkSession, tally: Tally, chance: random.Random, share: float) -> None:
    """Stop at every point and before every write of every tick; for a ``share`` of the stops the ticks continue."""
    case = run.case
    for tick, images in enumerate(run.images):
        for where, image in images:
            put_back(case, image)
            told = f"{case.name} {case.number}, tick {tick}, {where}"
            if chance.random() < share:
                with patience():
                    told += _failed_start(run, spark, tally, chance)
            with patience():
                _taken_over(run, spark, tally, told, goes_on=chance.random() < share)
            tally.add("stops")
            if "torn" in where:
                tally.add("torn files")
            shutil.rmtree(image)
    if case.tears:
        _half_written(run, spark, tally, chance.randrange(1, len(run.folders)))


def _images(case: Case, engine: Engine, before: Path, place: Path, sample: Sample) -> list[Image] | None:
    """Run a tick and keep the folder at points and writes of the sample; ``None`` if there was nothing to do."""
    images: list[Image] = []
    busy: list[str] = []

    def keep(where: str) -> None:
        if not busy and sample.has_next():  # copying writes too, elsewhere
            busy.append(where)
            image = kept_as(case, place / str(len(images)))
            torn = _torn(image, before, sample.chance) if case.tears and sample.chance.random() < TORN else None
            images.append((where if torn is None else f"{where}, torn {torn}", image))
            busy.clear()

    engine.hook = keep
    with case.watched(lambda what, path: keep(f"before {what} {Path(path).name}")):
        return None if engine.tick() is None else images


TORN = 0.2


def _torn(image: Path, before: Path, chance: random.Random) -> str | None:
    """Cut a new file of an uncommitted tick in half: what was not synced may be lost when the machine dies.

    Records of who writes a target, and its locks, have names that begin with a dot; they are synced before they count.
    """
    if Case(0, image).tick > Case(0, before).tick:
        return None
    places = (image / "check" / "state", image / "check" / "rejected", *(image / "out").glob("*/_rowtime"))
    new = [
        p
        for place in places
        for p in place.rglob("[!.]*")
        if p.is_file() and not (before / p.relative_to(image)).exists()
    ]
    if not new:
        return None
    path = chance.choice(sorted(new))
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    return path.name


def _taken_over(run: Undisturbed, spark: SparkSession, tally: Tally, where: str, *, goes_on: bool) -> None:
    """Let a new driver take over the folder; then, if asked, run to the end."""
    case = run.case
    try:
        engine = case.engine(spark)
        tally.check(case.state(), run.states[case.tick + 1], where)
        if goes_on:
            while engine.tick() is not None:
                tally.check(case.state(), run.states[case.tick + 1], f"{where}, then tick {case.tick}")
            tally.check(case.state(), run.states[-1], f"{where}, at the end")
            tally.add("stops that continued to the end")
        close(engine)
        tally.keep(case, where)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
        tally.losses.append(f"{where}: {type(error).__name__} {error}"[:1500])


def _failed_start(run: Undisturbed, spark: SparkSession, tally: Tally, chance: random.Random) -> str:
    """Start a driver that takes over and cannot write either. Return a text for the report."""
    number, at = chance.choice(ERRORS), chance.randrange(WRITES_OF_A_START)
    try:
        with run.case.watched(failing(at, number)):
            close(run.case.engine(spark))
    except (OSError, RowtimeError):
        tally.add("starts that failed too")
    return f", then error {number} in write {at} of a start"


WRITES_OF_A_START = 50  # most have 20 to 60


def _half_written(run: Undisturbed, spark: SparkSession, tally: Tally, tick: int) -> None:
    """Check that a damaged journal entry is refused, and nothing is emitted."""
    case = run.case
    put_back(case, run.folders[tick])
    entry = max((case.folder / "check" / "journal").glob("*.json"))
    data = entry.read_bytes()
    entry.write_bytes(data[: len(data) // 2])
    before = _tree(case.folder)
    tally.add("half-written entries")
    try:
        close(case.engine(spark))
    except Failure as failure:
        if failure.problems[0].code == "R406" and _tree(case.folder) == before:
            return
    tally.losses.append(f"{case.name} {case.number}: half of entry {tick} was taken for one")


def faults(run: Undisturbed, spark: SparkSession, tally: Tally, chance: random.Random, times: int) -> None:
    """Repeat one tick, its start included, each time with another of its writes that fails.

    All writes if there are no more than ``times``, otherwise that many of them. The same driver tries again, or a new
    one takes over.
    """
    case, tick = run.case, chance.randrange(len(run.folders) - 1)
    if times <= 0:
        return
    count = _writes(run, spark, tick)
    for at in sorted(chance.sample(range(count), min(count, times))):
        number = chance.choice(ERRORS)
        put_back(case, run.folders[tick])
        where = f"{case.name} {case.number}, tick {tick}, error {number} in write {at} of {count}"
        try:
            with patience():
                failed = _failed(case, spark, failing(at, number), again=chance.random() < HALF)
                engine = case.engine(spark)
                wanted = run.states[case.tick + 1]
                tally.check(case.state(), wanted, where)
                if case.tick < tick:
                    engine.tick()
                    tally.check(case.state(), run.states[case.tick + 1], f"{where}, then again")
                close(engine)
            tally.add("failed writes" if failed else "failed writes without effect")
        except Exception as error:  # noqa: BLE001
            tally.losses.append(f"{where}: {type(error).__name__} {error}"[:1500])


def _writes(run: Undisturbed, spark: SparkSession, tick: int) -> int:
    """Return how many writes a start and this tick make."""
    writes: list[str] = []
    put_back(run.case, run.folders[tick])
    with run.case.watched(lambda what, _path: writes.append(what)):
        engine = run.case.engine(spark)
        engine.tick()
    close(engine)
    return len(writes)


HALF = 0.5


def _failed(case: Case, spark: SparkSession, seen: Callable[[str, str], None], *, again: bool) -> bool:
    """Start and tick while a write fails; True if anything failed. ``again``: the same driver tries once more."""
    engine, failed = None, False
    try:
        with case.watched(seen):
            engine = case.engine(spark)
            engine.tick()
    except (OSError, RowtimeError):
        failed = True
        if again and engine is not None:
            engine.tick()
    finally:
        if engine is not None:
            close(engine)
    return failed


def jumps(run: Undisturbed, spark: SparkSession, tally: Tally, chance: random.Random) -> None:
    """Let the clock of the machine jump, by hours forwards and back, between any two reads."""
    case = run.case
    put_back(case, run.folders[0])
    engine = case.engine(spark)
    now = engine.clock()
    engine.clock = lambda: now + chance.randint(-5, 5) * HOUR
    for source in engine.sources.values():
        if hasattr(source, "_clock"):
            source._clock = engine.clock  # noqa: SLF001
    while engine.tick() is not None:
        tally.add("ticks under a clock that jumps")
        tally.check(case.state(), run.states[case.tick + 1], f"{case.name} {case.number}: the clock jumps")
    close(engine)


def kept_as(case: Case, to: Path) -> Path:
    """Return a copy of a case as it is now."""
    case.pull()
    return copied(case.folder, to)


def put_back(case: Case, image: Path) -> None:
    """Restore a case from an image."""
    restored(case, image)
    case.push()


def copied(folder: Path, to: Path) -> Path:
    if to.exists():
        shutil.rmtree(to)
    shutil.copytree(folder, to)
    return to


def restored(case: HasFolder, image: Path) -> None:
    """Restore a folder from an image."""
    shutil.rmtree(case.folder, ignore_errors=True)
    shutil.copytree(image, case.folder)


def _tree(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file() and p.name != ".lock"}
