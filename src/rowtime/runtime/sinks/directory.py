"""A directory of Parquet, CSV or JSON files: exactly once for anyone who reads it.

Rows are staged in ``_rowtime/`` inside the directory, which Spark's readers skip, and renamed into place after the
commit, in stream order. So a plain ``spark.read`` of the directory shows committed rows only, each once, at any moment;
a start after a crash finishes the renames of the last commit.

    _rowtime/<pump>/.owner          the checkpoint that the pump belongs to (`ownership`)
    _rowtime/<pump>/.lock           held by the process that writes
    _rowtime/<pump>/published-…     what the pump has published (`Mark`)
    _rowtime/<pump>/<checkpoint>/   what is staged; nobody else looks there

The files of a pump have its tag in their names: several pumps may write to one directory. Those of a stream PARTITIONED
BY columns are in folders by their values (`core/partition_folders`), staged as in place.
"""

from __future__ import annotations

import contextlib
import fcntl
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from rowtime.core.counts import counted
from rowtime.core.errors import refuse
from rowtime.core.partition_folders import escaped, is_partition
from rowtime.core.shared_paths import local
from rowtime.core.stores import ObjectPlace, Place, below, listed, on_store
from rowtime.runtime.sinks.ownership import (
    RECORD,
    Claim,
    Contents,
    Proof,
    Record,
    changed,
    owner,
    read,
    running,
    tag_of,
)
from rowtime.state.checkpoint import folder_of
from rowtime.state.files import able, make_folder, move, sweep, sync_names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.operators.sinks.sink import Sink as SinkNode
    from rowtime.runtime.sinks.contract import Batch

STAGING = "_rowtime"
LOCK = ".lock"
_TICK = re.compile(r"part-(\d{10})-")
_OURS = re.compile(r"part-\d{10}-\d{5}-[^.]*\.(parquet|csv|json)(\.\w+)?")


class DirectorySink:
    """Publishing twice is harmless: a staged file is in one place or the other. ``pump`` writes it."""

    def __init__(self, path: Place, pump: str, partitions: Sequence[str] | None = None) -> None:
        self.path, self._pump, self._partitions = path, pump, partitions
        self._own = path / STAGING / folder_of(pump)
        self._identity = ""
        self._lock: IO[str] | None = None
        self._mark: Mark | None = None

    @property
    def proof(self) -> Proof | None:
        """Return what identifies the content after the last tick."""
        return self._mark.proof if self._mark is not None else None

    def folder(self, checkpoint: Place) -> Place:  # noqa: ARG002 - beside the files
        """Return the staging folder inside the directory, so that a rename is enough."""
        return self._staging

    @property
    def _staging(self) -> Place:
        return self._own / (self._identity or "unclaimed")

    def claim(self, claim: Claim) -> Record:
        """Return the record with which the pump may write, and lock its place. Raises ``Refused``, see `ownership`.

        R597 if there are files in other folders than the pump's will be in.
        """
        foreign = None if self._partitions is None else next(self._elsewhere(self._partitions), None)
        if foreign is not None:
            into = f"in folders by {', '.join(self._partitions or ())}" if self._partitions else "all in one folder"
            what = f"the pump {self._pump} writes files {into}, and {self.path} has {foreign}"
            raise refuse("R597", what, "Readers would not see a table there: write into a separate folder.")
        target = f"the directory {self.path}"
        record = owner(self._own, claim, target, self._contents)
        self._compare(claim, target)
        if isinstance(self._own, ObjectPlace):  # a store has no locks
            return record
        make_folder(self._own)
        lock = (self._own / LOCK).open("a")
        try:
            with able(self._own / LOCK):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise running(claim, target) from None
        self._lock = lock
        # Read it again: another process may have written its record before this one had the lock.
        return owner(self._own, claim, target, self._contents) if record != read(self._own) else record

    def _compare(self, claim: Claim, target: str) -> None:
        """Read the mark. Raises ``Refused`` (R564) if the directory lacks rows that it was given, or has others."""
        self._mark = mark_in(self._own, tag_of(claim.identity, self._pump)) if isinstance(self._own, Path) else None
        if claim.proof is None:
            return  # an older version wrote the journal
        rows, link, tick = (0, "", -1) if self._mark is None else (*self._mark.proof, self._mark.tick)
        if rows < claim.least:
            state = "has no mark of them" if self._mark is None else f"by its mark has {rows:,} of them"
            raise changed(self._pump, target, claim.least, state)
        if not claim.knows(link) and tick <= claim.tick:
            raise changed(self._pump, target, claim.least, "has those of another copy of the checkpoint")

    def _elsewhere(self, partitions: Sequence[str]) -> Iterator[str]:
        """Yield files outside of the folders of the pump, because readers could not read both as one table."""
        wanted = f"{escaped(partitions[0])}=" if partitions else "/"
        for path in self.path.glob("*"):
            if isinstance(path, Path) and is_partition(path):
                others = () if path.name.startswith(wanted) else _published(path)
                if any(partitions or _OURS.fullmatch(file.name) for file in others):
                    yield f"files in {path.name}"
            elif partitions and _OURS.fullmatch(path.name):
                yield f"{path.name} beside them"

    def record(self, record: Record) -> None:
        """Record the owner, before the first row."""
        record.write(self._own)
        self._identity = record.identity

    def beyond(self, tick: int, rows: int) -> str:  # noqa: ARG002 - files have their tick in their names
        """Report later ticks that the pump of this checkpoint has published, by its mark or the present files."""
        if self._mark is not None and self._mark.tick > tick:
            return f"{self.path} has rows of tick {self._mark.tick}, or has had them"
        tag = tag_of(self._identity, self._pump)
        names = sorted(path.name for path in _published(self.path) if _tag(path.name) == tag)
        ticks = [int(match[1]) for name in names if (match := _TICK.match(name))]
        return f"{self.path} has rows of tick {max(ticks)}" if ticks and max(ticks) > tick else ""

    def _contents(self) -> Contents | None:
        """Return what the pump may have written: files with its tag; else files of pumps that left no record."""
        record = read(self._own)
        files = [path.name for path in _published(self.path) if _OURS.fullmatch(path.name)]
        if record is not None:
            mine = len([name for name in files if _tag(name) == record.tag])
            before = {tag_of(former["identity"], record.pump) for former in record.before}
            nothing = not mine and not any(_tag(name) in before for name in files)
            return Contents(None, None, counted(mine, "files"), empty=nothing)
        tags = tags_of(self.path)
        files = [name for name in files if _tag(name) not in tags]
        return Contents(None, None, counted(len(files), "files"), others=bool(tags)) if files else None

    def publish(self, spark: SparkSession, node: SinkNode, batch: Batch) -> None:  # noqa: ARG002
        """Mark the tick, and rename the staged files into place, in order."""
        if batch.count:
            assert isinstance(self._own, Path)
            rows = batch.first + batch.count - batch.skipped
            self._mark = marked(self._own, tag_of(self._identity, self._pump), batch.tick, rows, batch.link)
        sync_names(self._own, *{self._moved(file).parent for file in batch.files})

    def _moved(self, file: Place) -> Place:
        """Return the final place of a staged file, under a name with the pump's tag."""
        folder = self.path / below(file, self._staging).rpartition("/")[0]
        place = folder / moved_name(file, self._identity, self._pump)
        if file.exists():
            make_folder(folder)
            move(file, place)
        return place

    def recover(self, staged: Sequence[str]) -> None:
        """Remove staged files that no commit names."""
        sweep(self._staging, staged)

    def close(self) -> None:
        """Release the pump's place for the next run."""
        if self._lock is not None:
            with contextlib.suppress(OSError):
                self._lock.close()
            self._lock = None


def folder_at(path: str) -> Path:
    """Return the folder of a sink; raises ``Refused`` (R586) for one on an object store, R211 for another URL."""
    if on_store(path):
        what = f"the path of the sink is {path}, and files cannot be renamed into place on an object store"
        hint = "Write a Delta or an Iceberg table there, or use a folder that all machines mount."
        raise refuse("R586", what, hint)
    return local(path, "the path of the sink")


def tags_of(directory: Place) -> set[str]:
    """Return the tags of the pumps recorded in a directory, now or before a takeover."""
    tags = set()
    for path in (directory / STAGING).glob(f"*/{RECORD}"):
        record = read(path.parent)
        if record is not None:
            tags |= {record.tag, *(tag_of(former["identity"], record.pump) for former in record.before)}
    return tags


def files_of(directory: Path, pump: str, identity: str) -> list[Place]:
    """Return the files that a checkpoint's pump has published, by tick."""
    mine = tag_of(identity, pump)
    return [path for path in sorted(_published(directory)) if _tag(path.name) == mine]


def _published(directory: Place) -> Iterator[Place]:
    """Yield the files in a directory that pumps may have published, those in partition folders too."""
    for path in directory.glob("*"):
        if isinstance(path, Path) and is_partition(path):
            yield from _published(path)
        elif path.name.startswith("part-"):
            yield path


def _tag(name: str) -> str:
    """Return the tag of a file, if it has one."""
    return name.partition(".")[0].rpartition("-")[2]


def moved_name(file: Place, identity: str, pump: str) -> str:
    """Return the final name of a staged file of a checkpoint's pump."""
    name, dot, ending = file.name.partition(".")
    return f"part-{name}-{tag_of(identity, pump)}{dot}{ending}"


_NAME: Final = re.compile(r"published-([0-9a-f]{8})-(\d+)-(\d+)-([0-9a-f]{16})")


@dataclass(frozen=True)
class Mark:
    """What a pump has published: all ticks up to ``tick``, with so many ``rows``. It is the name of an empty file.

        _rowtime/<pump>/published-<tag>-<tick>-<rows>-<link>

    The tag is that of the pump's files. The mark gets the name of a tick before the tick's files are in place, so it
    counts files that readers have moved away since. The link is the random number that the journal has for each tick,
    so a directory that was emptied or restored, or that belongs to another copy of the checkpoint, is noticed.
    """

    tag: str
    tick: int
    rows: int
    link: str

    @property
    def proof(self) -> Proof:
        """Return what the journal stores of it."""
        return Proof(self.rows, self.link)


def mark_in(folder: Path, tag: str) -> Mark | None:
    """Return the mark of a pump of a checkpoint in the folder of the pump; ``None`` if there is none."""
    matches = (_NAME.fullmatch(path.name) for path in listed(folder, f"published-{tag}-*"))
    marks = [Mark(tag, int(match[2]), int(match[3]), match[4]) for match in matches if match]
    return max(marks, key=lambda mark: mark.tick, default=None)


def marked(folder: Path, tag: str, tick: int, rows: int, link: str) -> Mark:
    """Mark a tick as published, unless it is, and return the mark. The caller makes its name durable."""
    before, mark = mark_in(folder, tag), Mark(tag, tick, rows, link)
    if before is None:
        make_folder(folder)
        _place(folder, mark).touch()
    else:
        _place(folder, before).rename(_place(folder, mark))
    return mark


def _place(folder: Path, of: Mark) -> Path:
    return folder / f"published-{of.tag}-{of.tick:010}-{of.rows}-{of.link}"
