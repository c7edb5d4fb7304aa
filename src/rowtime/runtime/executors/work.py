"""The work of a tick, as bytes that any process can compute, and the report of it.

The work has no rows: it says which ranges of which sources are read, and has the scalars and segments of the journal.
Rows of sources that only Spark reads come beside it (`scans`).
The report has none either: the rows are in files, which are durable, and which nobody sees before the journal entry.
"""

from __future__ import annotations

import pickle
import sys
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rowtime.core.clock import Clocks
from rowtime.core.imported import staying
from rowtime.core.stores import Place
from rowtime.frames.answers import ANSWERS, Answers, Part
from rowtime.frames.words import LEFT
from rowtime.operators.contract import Operator
from rowtime.operators.contract.intake import Intake
from rowtime.operators.streams.stream_clocks import StreamClocks
from rowtime.runtime.begun import Begun, Outcome
from rowtime.runtime.close_look import fails_for_a_value, left_by
from rowtime.runtime.executors.scans import Read, Undecoded, copy_in, with_read
from rowtime.runtime.executors.steps import AllWanted, Steps
from rowtime.runtime.held import held
from rowtime.runtime.intake import Taken, intake_of
from rowtime.runtime.late_session import NeedsSparkError, NoSession
from rowtime.runtime.sinks.staging import Stage
from rowtime.runtime.tick import RunningTick
from rowtime.state.costs import Spread
from rowtime.state.files import arrived
from rowtime.state.memory import Memory

if TYPE_CHECKING:
    from rowtime.runtime.clock_pass.pieces import Marks
    from rowtime.runtime.executors.levels import Divided
    from rowtime.runtime.executors.parts import Call

T = TypeVar("T", bound=RunningTick)
_CHECKPOINTS: Final = 4
"""The number of checkpoints of which a process keeps segments in memory."""
_SESSION: Final[Any] = NoSession()
_MEMORIES: Final[OrderedDict[str, Memory]] = OrderedDict()


@dataclass(frozen=True)
class Work:
    """The work of one tick; ``types``: of all columns, by operator; ``stages``: portable ones, by sink.

    ``looks``: it is examined row by row, because a value has failed. ``divided``: the ranges in parts. ``kept``: where
    segments are, if the tick has another folder. ``left``: marks of expressions that are left to Spark.
    """

    tick: Begun
    steps: Steps
    taken: Mapping[str, Taken]
    stages: Mapping[str, Stage]
    types: Mapping[str, Sequence[str]]
    looks: bool = False
    divided: Divided | None = None
    kept: Place | None = None
    left: frozenset[str] = frozenset()

    def packed(self) -> bytes:
        """Return the work as bytes; raises ``NeedsSparkError`` if a part of it belongs to the driver's process.

        Modules of table functions may be in folders that only this process searches.
        """
        try:
            return pickle.dumps((sys.path, pickle.dumps(self)))
        except (pickle.PicklingError, TypeError, AttributeError) as wrong:
            raise NeedsSparkError(str(wrong)) from wrong


@dataclass(frozen=True)
class Report:
    """The report of a tick: its outcome, and by operator its clocks and the number of rows where that is known.

    ``failed``: why there is no outcome, in words; ``always``: no tick of this plan can have one; ``by_value``: that may
    be for the value of a row; ``undecoded``: nothing has begun, because Spark has to decode some rows. ``wanted``: the
    expressions of which Spark has to say more (of a value that has failed: once rows are examined one by one), and
    whether their values are wanted; ``rounds``: in how many, by operator. ``undivided``: why several tasks
    cannot compute it; ``left``: the mark of an expression that is left to Spark from now on. ``starts``: the marks
    from which they have to judge. ``spread``: over the tasks of Spark; ``exchanged``: the bytes that went from level 0
    to the next one; ``largest``: those that one task got at most.
    """

    outcome: Outcome | None = None
    clocks: Mapping[str, Clocks] = field(default_factory=dict)
    given: Mapping[str, int] = field(default_factory=dict)
    failed: str = ""
    always: bool = False
    by_value: bool = False
    undecoded: bool = False
    wanted: Mapping[Part, bool] = field(default_factory=dict)
    rounds: Mapping[str, int] = field(default_factory=dict)
    undivided: str = ""
    left: str = ""
    starts: Mapping[Call, Mapping[int, Marks]] = field(default_factory=dict)
    spread: Spread = Spread(1)  # noqa: RUF009 - it is frozen
    exchanged: int = 0
    largest: int = 0


class Unknown(Exception):
    """A part of the work is code that is not here, such as a class of a notebook."""


def unpacked(packed: bytes) -> Work:
    """Return packed work, and let its expressions that are left to Spark have no translation; raises ``Unknown``."""
    places, work = pickle.loads(packed)  # noqa: S301 - the driver's own
    sys.path += [place for place in places if place not in sys.path]
    try:
        with staying():
            unpacked: Work = pickle.loads(work)  # noqa: S301 - as above
    except Exception as error:
        raise Unknown(f"code that is not where the task is: {type(error).__name__}: {error}") from error
    LEFT.set(unpacked.left)
    return unpacked


def tried(packed: bytes, read: Callable[[], Read], answers: Answers, *, looks: bool = False) -> AllWanted | None:
    """Do the work of a tick in folders that are removed; return what its operators want of Spark.

    ``looks``: row by row, in any case.
    """

    def attempt(work: Work, folder: Path) -> None:
        taken = with_read(work.taken, read())
        copy_in(folder / "copies", taken)
        _done(replace(work, taken=taken, looks=looks or work.looks))

    return wanted_by(packed, answers, attempt)


def wanted_by(packed: bytes, answers: Answers, attempt: Callable[[Work, Path], object]) -> AllWanted | None:
    """Return what an attempt wants of Spark; it gets the work with other folders, below one that is removed."""
    try:
        work = unpacked(packed)
    except Unknown:
        return None
    token = ANSWERS.set(answers)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stages = {sink: stage.aside(folder / str(n)) for n, (sink, stage) in enumerate(work.stages.items())}
        tick = replace(work.tick, folder=folder / "state")
        try:
            attempt(replace(work, tick=tick, stages=stages, kept=work.tick.folder), folder)
        except AllWanted as more:
            return more
        except Exception:  # noqa: BLE001 - the work itself will fail in the same way, and report it
            return None
        finally:
            ANSWERS.reset(token)
    return None


def computed(packed: bytes, read: Callable[[], Read], answers: Answers) -> bytes:
    """Do the work of a tick over what Spark has read for it, and return the report as bytes; its files are durable.

    An error is no error of the task: the driver repeats the tick itself, and reports or handles it.
    """
    try:
        work = unpacked(packed)
    except Unknown as unknown:
        return pickle.dumps(Report(failed=str(unknown), always=True))
    token = ANSWERS.set(answers)
    try:
        taken = with_read(work.taken, read())
        with tempfile.TemporaryDirectory() as folder:
            copy_in(Path(folder), taken)
            report = _done(replace(work, taken=taken))
    except AllWanted as more:
        report = Report(wanted=more.parts, rounds=more.rounds)
    except Undecoded:
        report = Report(undecoded=True)
    except NeedsSparkError as needs:
        report = Report(failed=_reason(needs), always=True)
    except Exception as error:  # noqa: BLE001 - as said above
        report = Report(
            left=left_by(error), failed=f"{type(error).__name__}: {error}", by_value=fails_for_a_value(error)
        )
        if report.by_value and not report.left and work.steps.look is not None and not work.looks:
            needed = tried(packed, read, answers, looks=True)
            report = report if needed is None else replace(report, wanted=needed.parts, rounds=needed.rounds)
    finally:
        ANSWERS.reset(token)
    return pickle.dumps(report)


def _done(work: Work) -> Report:
    def intakes(node: Operator, control: StreamClocks) -> Intake:
        return intake_of(_SESSION, work.taken[node.name], control)

    return done(work, running_of(RunningTick, work, intakes, work.stages))


def running_of(
    kind: type[T],
    work: Work,
    intakes: Callable[[Operator, StreamClocks], Intake],
    stages: Mapping[str, Stage],
) -> T:
    """Return the tick of some work, of the class ``kind``, in a process without a session."""
    tick, demands = work.tick, (work.steps.adopted, work.steps.changing)
    memory = _memory(tick.folder if work.kept is None else work.kept)
    running = kind(_SESSION, tick.number, tick.folder, tick.entry, intakes, stages, *demands, memory)
    running.now, running.narrowed, running.given.few = tick.now, tick.narrowed, tick.few
    running.column_types.known(work.types)
    return running


def done(work: Work, running: RunningTick) -> Report:
    """Let the operators step, and return the report; all files are durable."""
    tick = work.tick
    deltas = work.steps.done(running, look=work.steps.look if work.looks else None)
    given = work.steps.counted(running, deltas)
    running.held = held(running, work.steps.operators, running.entry()["segments"])
    for folder in (tick.folder, *(stage.folder for stage in work.stages.values())):
        arrived(folder)
    return Report(running.outcome(), {name: dict(delta.clocks) for name, delta in deltas.items()}, given)


def _reason(error: BaseException) -> str:
    """Return why Spark is needed: the first error of the chain knows it best."""
    while error.__context__ is not None:
        error = error.__context__
    return str(error)


def _memory(folder: Place) -> Memory:
    """Return what this process keeps of a checkpoint's segments, from tick to tick."""
    name = str(folder)
    memory = _MEMORIES.pop(name, None) or Memory(folder)
    _MEMORIES[name] = memory
    while len(_MEMORIES) > _CHECKPOINTS:
        _MEMORIES.popitem(last=False)
    return memory
