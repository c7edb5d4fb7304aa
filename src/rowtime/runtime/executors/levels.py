"""A tick in levels: several tasks of level 0, each with a part of the rows; several tasks of keys; and one last task.

Level 0 reads, decodes, filters and judges rows, and combines them into partial results where the operator above can
(`plan.levels`). The tasks of keys have the state of their shards; a tick may do without them. The last task has
everything that needs all rows. What several tasks cannot do, one task does: the tick is then sent again as a whole. So
is one with a value that fails, which is examined row by row.
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
from rowtime.operators.contract import Distribution, Operator
from rowtime.operators.contract.intake import Intake
from rowtime.operators.streams.stream_clocks import StreamClocks
from rowtime.runtime.clock_pass.pieces import Marks, MisjudgedError
from rowtime.runtime.close_look import left_by
from rowtime.runtime.executors.level_ticks import KeysTick, LastTick, PartTick
from rowtime.runtime.executors.parts import Call, KeysPart, Part
from rowtime.runtime.executors.scans import Read, copy_in, with_read
from rowtime.runtime.executors.steps import AllWanted
from rowtime.runtime.executors.work import Report, Unknown, Work, done, running_of, unpacked, wanted_by
from rowtime.runtime.intake import Taken, intake_of
from rowtime.runtime.late_session import NoSession
from rowtime.runtime.sources.elsewhere import Elsewhere
from rowtime.runtime.sources.scanned import Scanned
from rowtime.state.costs import Spread
from rowtime.state.files import arrived
from rowtime.state.shards import Shards

if TYPE_CHECKING:
    from rowtime.runtime.sources.contract import Division

PIECE: Final = 4 << 20  # bytes of one row of the shuffle


@dataclass(frozen=True)
class Divided:
    """The ranges of a tick in parts, one for each task, and the columns of each stream.

    Without parts, each task has the rows that Spark gives it, some of those that Spark reads for the tick. ``starts``:
    by gate and number of a task the marks before its rows, as far as an earlier attempt has shown them. ``keyed``: the
    number of tasks of keys; 0 for none.
    """

    parts: Sequence[Mapping[str, Taken]]
    fields: Mapping[str, Sequence[Column]]
    starts: Mapping[Call, Mapping[int, Marks]] = field(default_factory=dict)
    keyed: int = 0

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


def computed_part(packed: bytes, number: int, read: Callable[[], Read], answers: Answers, keyed: int) -> list[bytes]:
    """Do the work of a task of level 0; return what it gives, or the report of why there is nothing, as bytes.

    There is one for each of the tasks of keys, ``keyed``, or for the last task alone.
    """
    token = ANSWERS.set(answers)
    try:
        with tempfile.TemporaryDirectory() as folder:
            work = unpacked(packed)
            part = _part(work, number, read, Path(folder))
        levels = work.steps.levels
        keys = {
            child.name: keys
            for node in levels.shared
            if (by := levels.keyed.get(node.name)) is not None
            for child, keys in zip(node.inputs, by.given, strict=True)
        }
        return [*map(pickle.dumps, part.for_keys(keys, keyed) if keyed else [part])]
    except Unknown as unknown:
        report = Report(failed=str(unknown), always=True)
    except AllWanted as more:
        report = _wanting(more, level=0)
    except Exception as error:  # noqa: BLE001 - one task may be able to, or knows better why not
        report = Report(undivided=f"{type(error).__name__}: {error}", left=left_by(error))
    finally:
        ANSWERS.reset(token)
    return [pickle.dumps(report)] * max(keyed, 1)


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
        return replace(facts, rows=mine.rows, count=mine.count, all_columns=mine.all_columns)

    tick = running_of(PartTick, work, intakes, work.stages)
    tick.begin(number, divided.starts_of(number))
    deltas = work.steps.done(tick, only=levels.first)
    exchanged = {name: deltas[name] for name in levels.exchanged}
    for name, reader in levels.combining():
        exchanged[name] = work.steps.combined(tick, reader, exchanged[name])
    part = tick.part(levels, exchanged)
    of_parts = {node.name for node in levels.first if node.distribution() is not Distribution.WHOLE}
    part.given = work.steps.counted(tick, {name: deltas[name] for name in deltas if name in of_parts})
    for folder in (work.tick.folder, *(work.stages[name].folder for name in part.staged)):
        arrived(folder)
    part.counts = {name: of.rows for name, of in taken.items()}
    return part


def computed_keys(packed: bytes, number: int, given: Sequence[bytes], answers: Answers) -> bytes:
    """Do the work of a task of keys over what the tasks of level 0 gave it; return what it gives, or a report."""
    parts = [*map(pickle.loads, given)]
    failed = next((part for part in parts if isinstance(part, Report)), None)
    if failed is not None:
        return pickle.dumps(failed)
    token = ANSWERS.set(answers)
    try:
        return pickle.dumps(_keys(unpacked(packed), number, parts, sum(map(len, given))))
    except AllWanted as more:
        return pickle.dumps(_wanting(more, level=1))
    except Exception as error:  # noqa: BLE001 - as above
        return pickle.dumps(Report(undivided=f"{type(error).__name__}: {error}", left=left_by(error)))
    finally:
        ANSWERS.reset(token)


def _keys(work: Work, number: int, parts: Sequence[Part], received: int) -> KeysPart | Report:
    levels, many = work.steps.levels, _divided(work).keyed
    tick = running_of(KeysTick, work, _elsewhere(work, parts), {})
    tick.fold(levels, parts)
    tick.begin(Shards.of(number, many), levels)
    try:
        deltas = work.steps.done(tick, only=[*levels.first, *levels.shared])
    except MisjudgedError:
        return Report(starts=tick.starts())
    given = work.steps.counted(tick, deltas)
    for name, reader in levels.combining_handed():
        deltas[name] = work.steps.combined(tick, reader, deltas[name])
    part = tick.part(number, levels, deltas, received)
    part.given = {node.name: given[node.name] for node in levels.shared if node.name in given}
    arrived(work.tick.folder)
    return part


def computed_whole(packed: bytes, given: Sequence[bytes], answers: Answers, last: int = 1) -> bytes:
    """Do the work of the last task over what those before gave, in their order; return the report as bytes.

    ``last``: 0 if it is no task, because it has no rows.
    """
    loaded = [*map(pickle.loads, given)]
    failed = next((part for part in loaded if isinstance(part, Report)), None)
    if failed is not None:
        return pickle.dumps(failed)
    parts, of_keys = _sorted(loaded)
    token = ANSWERS.set(answers)
    largest = max((sum(filter(None, part.counts.values())) for part in parts), default=0)
    received = [part.received for part in of_keys]
    exchanged = sum(received) or sum(map(len, given))
    shuffled = exchanged + (sum(map(len, given)) if of_keys else 0)
    spread = Spread(len(loaded) + (len(parts) if of_keys else 0) + last, largest, shuffled)
    try:
        report = _whole(unpacked(packed), parts, of_keys)
        most = max([*received, sum(map(len, given))])
        return pickle.dumps(replace(report, spread=spread, exchanged=exchanged, largest=most))
    finally:
        ANSWERS.reset(token)


def tried_whole(packed: bytes, given: Sequence[bytes], answers: Answers) -> AllWanted | None:
    """Do the work of the last task in folders that are removed; return what its operators want of Spark."""
    loaded = [*map(pickle.loads, given)]
    if any(isinstance(part, Report) for part in loaded):
        return None
    return wanted_by(packed, answers, lambda work, _folder: _folded(work, *_sorted(loaded)))


def _sorted(loaded: Sequence[Part | KeysPart]) -> tuple[list[Part], list[KeysPart]]:
    """Return what level 0 gave, and what the tasks of keys gave."""
    of_keys = [part for part in loaded if isinstance(part, KeysPart)]
    first = [part for part in loaded if isinstance(part, Part)]
    return first + [part.unpacked() for of in of_keys for part in of.parts], of_keys


def _whole(work: Work, parts: Sequence[Part], of_keys: Sequence[KeysPart]) -> Report:
    try:
        return _folded(work, parts, of_keys)
    except AllWanted as more:
        return _wanting(more, level=1)
    except Exception as error:  # noqa: BLE001 - as above
        return Report(undivided=f"{type(error).__name__}: {error}", left=left_by(error))


def _wanting(more: AllWanted, level: int) -> Report:
    """Return the report of a level that wants more of Spark; on level 0, it computes no aggregates."""
    if not level and any(part.groups for part in more.parts):
        return Report(undivided=f"aggregates that only Spark computes: {more}")
    return Report(wanted=more.parts, rounds=more.rounds)


def _elsewhere(work: Work, parts: Sequence[Part]) -> Callable[[Operator, StreamClocks], Intake]:
    """Return the intakes of a task after level 0: facts about the rows that the tasks there have read."""
    counts: dict[str, int | None] = {}
    for name in work.taken:
        of_parts = [part.counts[name] for part in parts]
        counts[name] = None if None in of_parts else sum(filter(None, of_parts))
    taken = _divided(work).elsewhere(work.taken, counts)
    return lambda node, control: intake_of(NoSession(), taken[node.name], control)  # type: ignore[arg-type]


def _folded(work: Work, parts: Sequence[Part], of_keys: Sequence[KeysPart]) -> Report:
    tick = running_of(LastTick, work, _elsewhere(work, parts), work.stages)
    tick.fold(work.steps.levels, parts)
    tick.gather(work.steps.levels, of_keys)
    try:
        report = done(work, tick)
    except MisjudgedError:
        return Report(starts=tick.starts())
    below = tick.given_below()
    return replace(report, given={**report.given, **{name: n + report.given.get(name, 0) for name, n in below.items()}})


def _divided(work: Work) -> Divided:
    assert work.divided is not None
    return work.divided


# -- the shuffle ------------------------------------------------------------------------------


def in_pieces(to: int, number: int, body: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    """Yield what a task gives to another as rows of the shuffle: their numbers, that of the piece, and its bytes."""
    for piece, at in enumerate(range(0, max(len(body), 1), PIECE)):
        yield to, number, piece, body[at : at + PIECE]


def put_together(rows: Iterable[tuple[int, int, int, bytes]]) -> dict[int, list[bytes]]:
    """Return by the number of the task that gets it what each task gave, in the order of these."""
    bodies: dict[int, dict[int, list[bytes]]] = {}
    for to, number, _, piece in sorted(rows, key=lambda row: row[:3]):
        bodies.setdefault(to, {}).setdefault(number, []).append(piece)
    return {to: [b"".join(pieces) for pieces in of.values()] for to, of in bodies.items()}
