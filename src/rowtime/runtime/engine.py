"""The engine: runs the ticks of one program on one checkpoint.

A tick asks every source for its next range, lets the operators step in plan order, commits one journal entry, and
publishes the rows that the sinks have staged. A loop and Spark's ``foreachBatch`` call the same ``tick``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import AnalysisException

from rowtime.core.errors import Failure, RowtimeError, refuse
from rowtime.core.time import BEGINNING, wall_clock
from rowtime.frames.frame import MOST
from rowtime.frames.queries import Uncomputed
from rowtime.frames.words import LEFT
from rowtime.operators.contract import Delta, Operator
from rowtime.operators.contract.intake import Intake
from rowtime.operators.events.imported_bounds import Imported, clocks_of
from rowtime.operators.streams.stream import Stream
from rowtime.operators.streams.stream_clocks import StreamClocks
from rowtime.plan.clock_functions import fixed
from rowtime.plan.program import Program
from rowtime.plan.waiting import timed_by
from rowtime.runtime.analysis import quietly, words_of
from rowtime.runtime.brokers import answering
from rowtime.runtime.claims import claim
from rowtime.runtime.close_look import CloseLook, closer, left_by, note_left
from rowtime.runtime.column_types import ColumnTypes
from rowtime.runtime.endings import split_ends, with_end
from rowtime.runtime.entries import cuts_input, entry_of
from rowtime.runtime.executors.steps import Steps, Tap, no_tap
from rowtime.runtime.executors.tasks import LeftToDriver, Tasks
from rowtime.runtime.faults import naming_disks, naming_functions, naming_java, sets_aside, uncomputed
from rowtime.runtime.handing_over import HandingOver
from rowtime.runtime.intake import Taken, intake_of
from rowtime.runtime.late_session import describe_jobs, is_here, wait_for
from rowtime.runtime.meter import JobTimes, Meter
from rowtime.runtime.narrow_tables import Narrowed, narrowed
from rowtime.runtime.presence import Presence
from rowtime.runtime.quiet import hiding
from rowtime.runtime.report import TickReport, cost_so_far, report_of
from rowtime.runtime.session import active
from rowtime.runtime.skipped_rows import seen_by, show, shown_in
from rowtime.runtime.sources.contract import Limits, Slice, Source
from rowtime.runtime.sources.failures import OF_STORES, naming
from rowtime.runtime.tick import GivenTable, RunningTick
from rowtime.runtime.upgrades import bound, change
from rowtime.runtime.watch import Watch
from rowtime.state import cuts, pump_orders, settings
from rowtime.state.checkpoint import IDENTITY, Checkpoint
from rowtime.state.costs import INPUT, JOURNAL, KEY, SINKS
from rowtime.state.files import begin_to_remove
from rowtime.state.journal import Entry
from rowtime.state.memory import Memory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.plan.stored import StoredPlan
    from rowtime.plan.upgrade import Upgrade
    from rowtime.runtime.sinks.staging import Stage

Hook = Callable[[str], None]

FAULTS_A_TICK = 1_000  # unreadable files, each found by a job of its own
_EMPTY: Entry = {"tick": -1, "sources": {}, "control": {}, "segments": {}, "outputs": {}, "totals": {}}


@dataclass
class Engine:
    """Runs one program. ``ends``: streams over files end once they are read.

    ``available_now``: only present input is read, so the passing of time is no reason for another tick. ``hook`` is
    called with the name of each point of a tick at which crashes are tested, ``tap`` with each operator's results of a
    tick, while they can be read. ``changes``: how the plan differs from the former one, in words. ``take_over``: pumps
    that take over their targets from those of other checkpoints. ``settle`` reports how the start has ended, as
    `FirstStart.settle` does.
    """

    spark: SparkSession
    program: Program
    checkpoint: Checkpoint
    sources: Mapping[str, Source]
    stages: Mapping[str, Stage]
    limits: Limits = field(default_factory=Limits)
    ends: bool = False
    available_now: bool = False
    clock: Callable[[], int] = wall_clock
    hook: Hook = lambda _point: None
    tap: Tap = no_tap
    entry: Entry = field(default_factory=lambda: _EMPTY)
    tables: Mapping[str, GivenTable] = field(default_factory=dict)
    changes: tuple[str, ...] = ()
    take_over: Collection[str] = ()
    settle: Callable[..., None] = lambda *, succeeded: None  # noqa: ARG005 - its name is given
    tasks: Tasks | None = None

    def __post_init__(self) -> None:
        self.presence, self.watch = Presence(self.program.operators), Watch()
        self._portions = Portions(lambda: 1 if self.tasks is None else self.tasks.shares)
        self.plan = self.program.described()
        self._fresh, self._failed, self._leaves = True, False, frozenset[str]()
        self.skipped_in: Checkpoint | None = None  # the place of skipped rows, if not the checkpoint
        self._close_look: CloseLook | None = None
        self._ending: set[str] = set()
        self._began = BEGINNING
        self._memory = Memory(self.checkpoint.folder)
        self.types = ColumnTypes(self.spark)
        self._narrowed: Narrowed = {}
        self._job_times = JobTimes(self.spark)
        self._tail: dict[int, Mapping[str, Any]] = {}  # by tick, how it ended, for the next entry
        self._take_over(self.program)

    def _take_over(self, program: Program) -> None:
        self.program = program
        for name, stage in self.stages.items():
            stage.go_on(self.entry["control"].get(name, {}))
        self._handing_over = HandingOver(self.spark, self.checkpoint, self.stages, program.sinks)
        takers = [name for name, stage in self.stages.items() if stage.adopts]
        self.steps = Steps.of(program, self.types, takers)
        self._arrivals, self._streams = Arrivals(program.operators), program.streams

    # -- start and stop ----------------------------------------------------------------

    def start(self) -> None:
        """Open the checkpoint: check that it fits, finish the last commit, remove leftovers, change its plan."""
        self.checkpoint.acquire()
        try:
            self.checkpoint.check()
            sinks, pumps = self.program.sinks, self.program.catalog.pumps
            claim(self.checkpoint, sinks, self.stages, self.take_over, self.clock(), pumps)
            upgrade = bound(self.checkpoint, self.program)
            self._recover(self.checkpoint.journal.last())
            if upgrade is not None:
                self._change(upgrade)
            self._in_force()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Release the checkpoint and the sinks' resources; a first start without a tick is undone."""
        try:
            if not self._failed:
                self._handing_over.settle(self.entry, now=True)
                self._handing_over.written()
        finally:
            self._handing_over.forget()
            for stage in self.stages.values():
                stage.close()
            self.settle(succeeded=False)
            self.checkpoint.release()

    def _recover(self, last: Entry | None) -> None:
        self.entry = last or _EMPTY
        self._began = self.entry.get("began", self.clock() if self._began == BEGINNING else self._began)
        self._take_over(fixed(self.program, self._began))
        self.checkpoint.show_refused(self.entry)
        self.checkpoint.sweep(last)
        self._handing_over.finish(self.entry)
        settings.done(self.checkpoint.folder, self.entry.get("settings", ()))
        self.checkpoint.published = self.entry["tick"]

    def settled(self) -> None:
        """Finish the last tick, so that its sinks have all of it."""
        if self._failed:
            self._handing_over.forget()
            self._recover(self.checkpoint.journal.settle())
        self._failed = False
        self._handing_over.settle(self.entry, now=True)
        self._handing_over.written()

    def go_over(self, program: Program, sources: Mapping[str, Source], stages: Mapping[str, Stage]) -> None:
        """Continue with another program, whose change is a tick of its own. If it fails, nothing has changed."""
        before = self.program, self.sources, self.stages, self.plan
        upgrade = bound(self.checkpoint, program)
        try:
            self._switch(fixed(program, self._began), sources, stages, program.described())
            if upgrade is not None:
                self._change(upgrade)
        except BaseException:
            self._failed = True
            self._switch(*before)
            raise
        self._in_force()

    def _switch(
        self, program: Program, sources: Mapping[str, Source], stages: Mapping[str, Stage], plan: StoredPlan
    ) -> None:
        self.sources, self.stages, self.plan = sources, stages, plan
        self._take_over(program)

    def _in_force(self) -> None:
        """Remove the files of the orders that the plan has, and read what its targets take."""
        pump_orders.done(self.checkpoint.folder, self.plan.orders.taken)
        self._narrowed = narrowed(self.program.sinks, self.stages, self.entry)

    def _change(self, upgrade: Upgrade) -> None:
        """Continue with another plan, from the next tick on."""
        self.entry = change(self.checkpoint, self.program, upgrade, self.entry, self.clock())
        self.changes = upgrade.lines
        settings.done(self.checkpoint.folder, self.entry["settings"])
        self.checkpoint.published = self.entry["tick"]

    # -- one tick ---------------------------------------------------------------------

    def tick(self) -> TickReport | None:
        """Run one tick; ``None`` if there was nothing to do; then nothing is journaled."""
        secrets, folder = self.program.secrets, self.checkpoint.folder
        with hiding(secrets), naming_java(), naming_disks(folder), naming_functions(), active(self.spark), self.watch:
            report = self._tried()
            self._handing_over.settle(self.entry, now=False)
            return report

    def _tried(self) -> TickReport | None:
        attempts = FAULTS_A_TICK
        while True:
            if self._failed:  # its leftovers are finished or removed, as after a crash
                self._handing_over.forget()
                self._recover(self.checkpoint.journal.settle())
            self._failed, attempts, late = True, attempts - 1, not is_here(self.spark)
            LEFT.set(self._leaves)
            try:
                report = self._ticked()
            except Uncomputed as error:
                if left := left_by(error):
                    self._leaves |= {left}
                    note_left(error)
                    continue
                self._close_look = closer(error, self.program, self.tap, self._close_look)
                if self._close_look is None:
                    raise uncomputed(error) from error
            except LeftToDriver:
                continue
            except Exception as error:
                if late and not isinstance(error, RowtimeError):  # PySpark's functions need Spark, whatever the session
                    wait_for(self.spark)
                    attempts += 1
                    continue
                if isinstance(error, Failure) and error.problems[0].code == "R406":
                    self.checkpoint.journal.check_driver()  # missing files may have been removed by a successor
                self._close_look = closer(error, self.program, self.tap, self._close_look)
                if self._close_look is None and (not attempts or not sets_aside(self.sources.values(), error)):
                    raise
            else:
                self._failed, self._close_look = False, None
                return report

    def _ticked(self) -> TickReport | None:
        meter = Meter(self._job_times)
        self.watch.begins(self.entry["tick"] + 1, meter)
        with meter.part(INPUT):
            settled = self._set_by_hand()
            self._ending, set_by_hand = split_ends(settled, self._streams)
            taken, notes = self._discover()
            skips = self._skips()
            shown = shown_in(skips, self.entry["tick"] + 1)
            if not settled and not shown and not self._worth(taken, notes):
                return None
        running = self._running(taken, meter)
        show(running, self.program, self.skipped_in or self.checkpoint, shown)
        for setting in set_by_hand:
            running.set_by_hand(setting["operator"], setting["at"])
        self.hook("before state")
        deltas, given = self._computed(running, taken)
        with meter.part(JOURNAL):
            self._handing_over.written()
        self.hook("after state")
        meter.stepped()
        committed = replace(cost_so_far(running, taken), given=given)
        with meter.part(JOURNAL):
            entry = self._entry(running, notes, deltas)
            entry[KEY] = committed.stored(self._tail.pop(running.number - 1, None))
            entry["bounded"] = any(part.part.bound is not None for part in taken.values())
            if settled:
                places = {name: source["offsets"] for name, source in self.entry["sources"].items()}
                entry["settings"] = [{**setting, "after": places} for setting in settled]
            if skips:
                entry["skipped"] = skips
            if shown or set_by_hand or cuts_input(self.entry, taken, self._limits()):
                entry["cuts"] = cuts.note(self.checkpoint.folder, self.entry, set_by_hand)
            self.hook("before journal")
            self.checkpoint.journal.commit(running.number, entry)
            self.checkpoint.show_refused(entry)
        before, self.entry = self.entry, {"tick": running.number, **entry}
        self.hook("after journal")
        self.settle(succeeded=True)
        with meter.part(SINKS):
            self._handing_over.publish(self.entry)
        with meter.part(JOURNAL):
            self._tidy(running)
            settings.done(self.checkpoint.folder, settled)
            if not any(stage.gathered for stage in self.stages.values()):
                self.checkpoint.published = running.number
        self.hook("after output")
        report = report_of(running, taken, before)
        self._tail = {running.number: report.cost.tail(committed)}
        return report

    def _set_by_hand(self) -> Sequence[Mapping[str, Any]]:
        return settings.waiting(self.checkpoint.folder, self.entry)

    def _skips(self) -> Sequence[Mapping[str, Any]]:
        return seen_by(self.program, self.entry, self.entry["tick"] + 1)

    def _limits(self) -> Narrowed:
        """Return the limits of tables from this tick on, if narrower than declared."""
        return self._narrowed

    def _running(self, taken: Mapping[str, Taken], meter: Meter) -> RunningTick:
        def intakes(node: Operator, control: StreamClocks) -> Intake:
            with naming("stream", node.name, OF_STORES):
                return intake_of(self.spark, taken[node.name], control)

        self._fresh = False
        number, folder = self.entry["tick"] + 1, self.checkpoint.folder
        demands = self.steps.adopted, self.steps.changing
        running = RunningTick(self.spark, number, folder, self.entry, intakes, self.stages, *demands, self._memory)
        running.tables, running.column_types, running.narrowed = self.tables, self.types, self._limits()
        running.meter, running.now = meter, self.clock()
        running.given.reads([part.part.rows for part in taken.values()])
        self.watch.reads(running, taken)
        return running

    def _computed(self, running: RunningTick, taken: Mapping[str, Taken]) -> tuple[dict[str, Delta], dict[str, int]]:
        """Let the operators step; return what each gives, and the number of rows where that is known."""
        of = self.entry, taken, self.stages, self._close_look is not None
        with quietly():  # what fails is reported as a refused row or a problem
            done = None if self.tasks is None else self.tasks.done(running, self.steps, *of)
            if done is None:
                deltas = self._step(running)
                return deltas, self.steps.counted(running, deltas)
        for node in self.program.sinks:
            if node.name in running.outputs:
                self.stages[node.name].wrote(self.spark, node, running.number, running.outputs[node.name])
        return done

    def _step(self, running: RunningTick) -> dict[str, Delta]:
        look = self._close_look
        describe_jobs(self.spark, f"tick {running.number} · all operators")
        try:
            hint = "The tick is not committed; rowtime tries it again unchanged."
            with answering("a topic of Kafka cannot be read", hint):
                return self.steps.done(running, self.tap, look)
        except AnalysisException as wrong:
            raise refuse("R107", f"Spark refuses an expression: {words_of(wrong)}") from wrong
        finally:
            describe_jobs(self.spark, "")
            for source in self.sources.values():
                source.release()

    def _tidy(self, running: RunningTick) -> None:
        for segment in running.dropped():
            self._memory.drop(segment.path)
        # Files of intermediate results are not needed once the tick is committed.
        for path in (*(segment.path for segment in running.dropped()), *running.passing()):
            begin_to_remove(self.checkpoint.folder / path)

    def _entry(self, running: RunningTick, notes: Mapping[str, Any], deltas: Mapping[str, Delta]) -> dict[str, Any]:
        of_run = {"began": self._began, IDENTITY: self.checkpoint.own}
        return entry_of(running, self.program, self.entry, notes, deltas, self.clock()) | of_run

    def _discover(self) -> tuple[dict[str, Taken], dict[str, Any]]:
        taken: dict[str, Taken] = {}
        notes: dict[str, Any] = {}
        for node in self._streams:
            with naming("stream", node.name, OF_STORES):
                taken[node.name], notes[node.name] = self._ask(node)
        return taken, notes

    def _ask(self, node: Stream) -> tuple[Taken, dict[str, Any]]:
        source = self.sources[node.name]
        before = self.entry["sources"].get(node.name, {"offsets": {}, "state": {}, "away": {}})
        part, state = self._portions.take(node.name, source, before, self.limits)
        wanted, clocks = self.ends or node.name in self._ending, self.entry.get("clocks", {})
        part, ended = with_end(node, source, part, before, clocks.get(node.name, {}), wanted=wanted)
        held = self.presence.held(node, part, before, clocks, self.clock())
        notes = {"offsets": dict(part.end), "state": dict(state), **held.notes, **ended}
        few = self._close_look is None and self.tap is no_tap  # else somebody may look at each column
        columns = self.steps.columns.get(node.name) if few else None
        return Taken(source, part, held.present, held.joined, held.left, columns), notes

    def _worth(self, taken: Mapping[str, Taken], notes: Mapping[str, Any]) -> bool:
        for name, intake in taken.items():
            before = self.entry["sources"].get(name)
            if before is None or dict(intake.part.end) != before["offsets"] or notes[name]["away"] != before["away"]:
                return True
        if any(intake.part.bounds for intake in taken.values()):
            return True
        # Every tick raises arrival clocks to its own time, so for available input only the first look requires one.
        return (self._fresh or not self.available_now) and self._arrivals.let_out(self.entry, taken)

    def close(self) -> None:
        """Release the resources of sources."""
        for source in self.sources.values():
            source.close()


# How much of a long input a tick takes: for each task that divides it, about as many rows as one process computes.
#
# A larger tick needs more memory. The limits of the user hold as well: they say what a tick takes at most. A result
# never depends on how the input is cut into ticks.

TEXT: Final = 128 << 20
"""Bytes of text in a portion: its rows are not counted before they are read."""


class Portions:
    """The portions of a run; ``shares``: how many tasks the next tick is expected to be divided into."""

    def __init__(self, shares: Callable[[], int] = lambda: 1) -> None:
        self._shares = shares
        self._rows: dict[str, float] = {}  # by stream: of a file, if a tick would otherwise have too many
        self._texts: set[str] = set()

    def take(
        self, stream: str, source: Source, before: Mapping[str, Any], given: Limits
    ) -> tuple[Slice, Mapping[str, Any]]:
        """Return the range of a stream after the entry ``before``; a smaller one if its files have too many rows."""
        shares = self._shares()
        while True:
            limits = self._limits(stream, given, shares)
            part, state = source.discover(before["offsets"], limits, before["state"])
            if not part.rows:
                return part, state
            if not part.counted:
                if stream in self._texts or part.backlog is None or part.backlog.unit != "bytes":
                    return part, state
                self._texts.add(stream)
                if part.backlog.taken <= TEXT * shares:
                    return part, state
                continue
            files = len(part.detail["files"])
            self._rows[stream] = part.rows / files
            if part.rows <= MOST * shares or files <= 1:
                return part, state

    def _limits(self, stream: str, given: Limits, shares: int) -> Limits:
        most, of_file = MOST * shares, self._rows.get(stream)
        files = None if of_file is None else max(1, int(most / of_file))
        size = TEXT * shares if stream in self._texts else None
        least = {"files": _least(given.files, files), "bytes": _least(given.bytes, size)}
        return replace(given, rows=_least(given.rows, most), **least)


def _least(one: int | None, other: int | None) -> int | None:
    return min((number for number in (one, other) if number is not None), default=None)


class Arrivals:
    """The arrival clocks of a program's streams; those of an event stream matter to the importers of its bounds."""

    def __init__(self, operators: Sequence[Operator]) -> None:
        self._importers = {source: node.name for node in operators if (source := node.imports_from()) is not None}
        self._timed_by = timed_by(operators)

    def of(self, entry: Mapping[str, Any], stream: str) -> Mapping[str, int]:
        """Return the clocks of a stream's writers, µs; for writers that are away, their last ones."""
        importer = self._importers.get(stream)
        away: Mapping[str, int] = _control(entry, importer or stream).get("away", {})
        clocks: Mapping[str, int] = entry.get("clocks", {}).get(stream, {})
        return {**away, **(clocks if importer is None else clocks_of(Imported.of(_control(entry, importer))))}

    def waiting(self, entry: Mapping[str, Any]) -> set[str]:
        """Return the operators that hold bounds until arrival clocks pass them."""
        return {name for name in self._importers.values() if _control(entry, name).get("pending")}

    def let_out(self, entry: Mapping[str, Any], taken: Mapping[str, Taken]) -> bool:
        """Return True if arrival clocks alone may release something: if an operator that they time holds something."""
        held = {key.rsplit("/", 1)[0] for key in entry.get("held", ())} | self.waiting(entry)
        timing = {stream for name in held for stream in self._timed_by.get(name, ())}
        return any(
            (not intake.source.gives_rowtime or "runs" in intake.part.detail)
            and self.move(entry, name, {w: intake.part.arrived.get(w, BEGINNING) for w in intake.present})
            for name, intake in taken.items()
            if name in timing
        )

    def move(self, entry: Mapping[str, Any], stream: str, arrived: Mapping[str, int]) -> bool:
        """Return True if a reading has raised a clock of a stream whose rows have no rowtimes of their own."""
        clocks = self.of(entry, stream)
        if not any(at > clocks.get(writer, BEGINNING) for writer, at in arrived.items()):
            return False
        modes = _control(entry, stream).get("modes", {})
        return not modes or any(modes.get(writer) == "arrival" for writer in arrived)


def _control(entry: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    control: Mapping[str, Any] = entry.get("control", {}).get(name, {})
    return control
