"""A tick in two levels: several tasks of level 0, each with a part of the rows, and one task of level 1.

Level 0 reads, decodes, filters and judges rows, and combines them into partial results where the operator above can
(`plan.levels`). Level 1 keeps state and has everything that needs all rows. What a task of level 0 cannot do, one task
does: the tick is then sent again as a whole. So is one with a value that fails, which is examined row by row.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rowtime.frames.answers import ANSWERS, Answers
from rowtime.frames.tables import Column
from rowtime.operators.contract import Operator
from rowtime.operators.contract.intake import Intake
from rowtime.operators.streams.stream_clocks import StreamClocks
from rowtime.runtime.clock_pass.pieces import Marks, MisjudgedError
from rowtime.runtime.executors.level_ticks import Call, FoldingTick, Part, PartTick
from rowtime.runtime.executors.scans import Read, copy_in, with_read
from rowtime.runtime.executors.steps import AllWanted
from rowtime.runtime.executors.work import Report, Unknown, Work, done, running_of, unpacked, wanted_by
from rowtime.runtime.intake import Taken, intake_of
from rowtime.runtime.late_session import NoSession
from rowtime.runtime.sources.elsewhere import Elsewhere
from rowtime.runtime.sources.scanned import Scanned
from rowtime.state.costs import Spread
from rowtime.state.files import arrived

if TYPE_CHECKING:
    from rowtime.runtime.sources.contract import Division

PIECE: Final = 4 << 20  # bytes of one row of the shuffle


@dataclass(frozen=True)
class Divided:
    """The ranges of a tick in parts, one for each task, and the columns of each stream.

    Without parts, each task has the rows that Spark gives it, some of those that Spark reads for the tick. ``starts``:
    by gate and number of a task the marks before its rows, as far as an earlier attempt has shown them.
    """

    parts: Sequence[Mapping[str, Taken]]
    fields: Mapping[str, Sequence[Column]]
    starts: Mapping[Call, Mapping[int, Marks]] = field(default_factory=dict)

    @classmethod
    def of(cls, taken: Mapping[str, Taken], many: int) -> Divided | None:
        """Return the ranges of a tick in at most so many parts; ``None`` if that is not possible, or useless."""
        divisions: dict[str, Division] = {}
        for name, of in taken.items():
            if of.part.rows == 0 or of.part.empty:
                continue
            division = of.source.divided(of.part, many)
            if division is None:
                return None
            divisions[name] = division
        many = max((len(division.parts) for division in divisions.values()), default=0)
        if many < 2:  # noqa: PLR2004 - two parts
            return None
        parts = [{name: _nth(of, divisions.get(name), number) for name, of in taken.items()} for number in range(many)]
        return cls(parts, {name: division.fields for name, division in divisions.items()})

    @classmethod
    def by_spark(cls, taken: Mapping[str, Taken]) -> Divided | None:
        """Return ranges that Spark reads; ``None`` if it does not read all of them, or rows of a writer apart."""
        read = [(name, of.source) for name, of in taken.items() if of.part.rows != 0 and not of.part.empty]
        fields = {name: of.fields for name, of in read if isinstance(of, Scanned) and of.keeps_writers_together}
        return cls((), fields) if len(fields) == len(read) else None

    def taken(self, number: int, taken: Mapping[str, Taken], read: Callable[[], Read]) -> Mapping[str, Taken]:
        """Return the ranges of a task; ``read``: the rows that Spark gives it."""
        given = read()  # to its end, in any case
        return self.parts[number] if self.parts else with_read(taken, given)

    def elsewhere(self, taken: Mapping[str, Taken], counts: Mapping[str, int | None]) -> dict[str, Taken]:
        """Return the whole ranges without rows, but with their numbers."""
        return {
            name: replace(of, source=Elsewhere.reading(of.source, self.fields.get(name, ()), counts.get(name)))
            for name, of in taken.items()
        }

    def starts_of(self, number: int) -> dict[Call, Marks]:
        """Return the marks before the rows of a task."""
        return {call: marks.get(number, {}) for call, marks in self.starts.items()}


def _nth(of: Taken, division: Division | None, number: int) -> Taken:
    if division is None or number >= len(division.parts):
        return replace(of, part=replace(of.part, rows=0))
    source, part = division.parts[number]
    return replace(of, source=source, part=part)


def computed_part(packed: bytes, number: int, read: Callable[[], Read], answers: Answers) -> bytes:
    """Do the work of a task of level 0; return what it gives, or the report of why there is nothing, as bytes."""
    token = ANSWERS.set(answers)
    try:
        with tempfile.TemporaryDirectory() as folder:
            return pickle.dumps(_part(unpacked(packed), number, read, Path(folder)))
    except Unknown as unknown:
        return pickle.dumps(Report(failed=str(unknown), always=True))
    except AllWanted as more:
        return pickle.dumps(_wanting(more, level=0))
    except Exception as error:  # noqa: BLE001 - one task may be able to, or knows better why not
        return pickle.dumps(Report(undivided=f"{type(error).__name__}: {error}"))
    finally:
        ANSWERS.reset(token)


def tried_part(packed: bytes, number: int, read: Callable[[], Read], answers: Answers) -> AllWanted | None:
    """Do the work of a task of level 0 in folders that are removed; return what its operators want of Spark."""
    return wanted_by(packed, answers, lambda work, folder: _part(work, number, read, folder / "copies"))


def _part(work: Work, number: int, read: Callable[[], Read], copies: Path) -> Part:
    divided, levels = _divided(work), work.steps.levels
    taken = divided.taken(number, work.taken, read)
    copy_in(copies, taken)
    whole = divided.elsewhere(work.taken, {name: of.part.rows for name, of in work.taken.items()})

    def intakes(node: Operator, control: StreamClocks) -> Intake:
        facts = intake_of(NoSession(), whole[node.name], control)  # type: ignore[arg-type]
        mine = intake_of(NoSession(), taken[node.name], control)  # type: ignore[arg-type]
        return replace(facts, rows=mine.rows, count=mine.count, peek=mine.peek)

    tick = running_of(PartTick, work, intakes, {})
    tick.begin(divided.starts_of(number))
    deltas = work.steps.done(tick, only=levels.first)
    exchanged = {name: deltas[name] for name in levels.exchanged}
    for name, reader in levels.combining():
        exchanged[name] = work.steps.combined(tick, reader, exchanged[name])
    part = tick.part(number, exchanged, [reader for _, reader in levels.combining()])
    part.given = work.steps.counted(tick, deltas)
    arrived(work.tick.folder)
    part.counts = {name: of.rows for name, of in taken.items()}
    return part


def computed_whole(packed: bytes, given: Sequence[bytes], answers: Answers) -> bytes:
    """Do the work of level 1 over what the tasks of level 0 gave, in their order; return the report as bytes."""
    parts = [*map(pickle.loads, given)]
    failed = next((part for part in parts if isinstance(part, Report)), None)
    if failed is not None:
        return pickle.dumps(failed)
    token = ANSWERS.set(answers)
    largest = max((sum(filter(None, part.counts.values())) for part in parts), default=0)
    spread = Spread(len(parts) + 1, largest, sum(map(len, given)))
    try:
        return pickle.dumps(replace(_whole(unpacked(packed), parts), spread=spread))
    finally:
        ANSWERS.reset(token)


def tried_whole(packed: bytes, given: Sequence[bytes], answers: Answers) -> AllWanted | None:
    """Do the work of level 1 in folders that are removed; return what its operators want of Spark."""
    parts = [*map(pickle.loads, given)]
    if any(isinstance(part, Report) for part in parts):
        return None
    return wanted_by(packed, answers, lambda work, _folder: _folded(work, parts))


def _whole(work: Work, parts: Sequence[Part]) -> Report:
    try:
        return _folded(work, parts)
    except AllWanted as more:
        return _wanting(more, level=1)
    except Exception as error:  # noqa: BLE001 - as above
        return Report(undivided=f"{type(error).__name__}: {error}")


def _wanting(more: AllWanted, level: int) -> Report:
    """Return the report of a level that wants more of Spark; on level 0, it computes no aggregates."""
    if not level and any(part.groups for part in more.parts):
        return Report(undivided=f"aggregates that only Spark computes: {more}")
    return Report(wanted=more.parts, rounds=more.rounds)


def _folded(work: Work, parts: Sequence[Part]) -> Report:
    counts: dict[str, int | None] = {}
    for name in work.taken:
        of_parts = [part.counts[name] for part in parts]
        counts[name] = None if None in of_parts else sum(filter(None, of_parts))
    taken = _divided(work).elsewhere(work.taken, counts)

    def intakes(node: Operator, control: StreamClocks) -> Intake:
        return intake_of(NoSession(), taken[node.name], control)  # type: ignore[arg-type]

    tick = running_of(FoldingTick, work, intakes, work.stages)
    tick.fold([node.name for node in work.steps.levels.first], parts)
    try:
        report = done(work, tick)
    except MisjudgedError:
        return Report(starts=tick.starts())
    return replace(report, given={**report.given, **tick.given_below()})


def _divided(work: Work) -> Divided:
    assert work.divided is not None
    return work.divided


# -- the shuffle ------------------------------------------------------------------------------


def in_pieces(number: int, body: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield what a task gives as rows of the shuffle: the task's number, that of the piece, and its bytes."""
    for piece, at in enumerate(range(0, max(len(body), 1), PIECE)):
        yield number, piece, body[at : at + PIECE]


def put_together(rows: Iterable[tuple[int, int, bytes]]) -> list[bytes]:
    """Return what each task gave, in the order of the tasks."""
    bodies: dict[int, list[bytes]] = {}
    for number, _, piece in sorted(rows, key=lambda row: row[:2]):
        bodies.setdefault(number, []).append(piece)
    return [b"".join(pieces) for pieces in bodies.values()]
