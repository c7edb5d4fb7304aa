"""Migration: changed SQL continues with a checkpoint whose state does not fit it, by computing the history again.

Everything that the checkpoint has read is read again, by the new script alone. Its state and its rows are written
beside the present ones, and one entry of the journal replaces these: until then nothing has changed, and the next start
removes what a crash leaves. Each sink either takes over from itself (its rows follow the present ones, semantics 10) or
has a new target of its own, which gets the whole history.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

from rowtime.audit.replay import Part, Replay, in_parts, pinned
from rowtime.core.errors import Problem, Refused, RowtimeError, refuse
from rowtime.core.stores import place_of
from rowtime.core.time import BEGINNING
from rowtime.plan.bind.sink_options import key_of_rows
from rowtime.plan.clock_functions import fixed
from rowtime.plan.row_by_row import untuned
from rowtime.plan.upgrade import targets
from rowtime.runtime.claims import claim, pump_of, pumps_into
from rowtime.runtime.endings import split_ends
from rowtime.runtime.entries import SPARKS
from rowtime.runtime.function_pins import keep, of_now
from rowtime.runtime.meter import Meter
from rowtime.runtime.narrow_tables import LIMITS, Narrowed, narrowed
from rowtime.runtime.quiet import hiding
from rowtime.runtime.report import cost_so_far
from rowtime.runtime.session import active
from rowtime.runtime.sinks.ownership import spelled
from rowtime.runtime.sinks.staging import Gathered
from rowtime.runtime.sources.contract import Limits
from rowtime.state import cuts
from rowtime.state.checkpoint import Checkpoint
from rowtime.state.costs import KEY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.api.pipeline import Pipeline
    from rowtime.operators.contract import Delta
    from rowtime.operators.sinks.sink import Sink as SinkNode
    from rowtime.plan.program import Program
    from rowtime.plan.stored import Fields, StoredPlan
    from rowtime.runtime.sinks.staging import Stage
    from rowtime.runtime.tick import RunningTick
    from rowtime.state.journal import Entry

_WITH_BOUNDS: Final = ("log", "kafka")
_NEW = "Or give the pump a new name and a new target, which gets all rows from the start of the input."


@dataclass(frozen=True)
class Migrated:
    """The result of a migration: its ``tick``, the number of ``batches`` of its input, and each sink's fate."""

    tick: int
    batches: int
    sinks: Mapping[str, str]

    def as_json(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        return {"tick": self.tick, "batches": self.batches, "sinks": dict(self.sinks)}


class Migration(Replay):
    """Reads the recorded parts on the checkpoint itself, as one tick that is invisible before `commit`."""

    def begin(self, last: Entry) -> None:
        """Start as if nothing had been read before the tick after ``last``."""
        carried = {name: last[name] for name in ("tick", "cuts", "plans", "began", SPARKS) if name in last}
        self.entry = {"sources": {}, "control": {}, "segments": {}, "outputs": {}, "totals": {}, **carried}
        self._last, self._refused, self._sums = last, defaultdict[str, list[str]](list), dict[str, int]()
        self._began = last.get("began", 0)
        self._narrowed = narrowed(self.program.sinks, self.stages, last)
        self.checkpoint.show_refused(last)
        self.checkpoint.sweep(last)
        self._take_over(fixed(self.program, self._began))

    def take(self, parts: Sequence[Part]) -> None:
        """Process the parts, one after the other."""
        with hiding(self.program.secrets), active(self.spark), self.watch:
            for number, self._part in enumerate(parts):
                for stage in self.stages.values():
                    stage.part = number
                self._tried()

    def _recover(self, last: Entry | None) -> None:
        """Do nothing: the results of earlier parts are kept, and no entry has this one."""

    def _limits(self) -> Narrowed:
        """Return the present limits of the tables: all rows are new to the gates of their pumps."""
        return self._narrowed

    def _ticked(self) -> None:
        meter = Meter(self._job_times)
        self.watch.begins(self.entry["tick"] + 1, meter)
        self._ending, by_hand = split_ends(self._set_by_hand(), self._streams)
        self._taken, self._notes = self._discover()
        running = self._running(self._taken, meter)
        for setting in by_hand:
            running.set_by_hand(setting["operator"], setting["at"])
        deltas = self._step(running)
        self._handing_over.written()
        self._keep(running, deltas)

    def _keep(self, running: RunningTick, deltas: Mapping[str, Delta]) -> None:
        entry = self._entry(running, self._notes, deltas)
        given = self.steps.counted(running, deltas)
        entry[KEY] = replace(cost_so_far(running, self._taken), given=given).stored(None)
        for gate, paths in entry["refused"].items():
            self._refused[gate] += paths
            self._sums |= {path: entry["sums"][path] for path in paths if path in entry["sums"]}
        for node in self.program.sinks:
            if node.name in entry["outputs"]:
                self.stages[node.name].gathered = Gathered(node, running.number, entry["outputs"][node.name])
        self.entry = {**entry, "tick": self._last["tick"]}

    def commit(self, old: StoredPlan, kept: Mapping[str, Fields]) -> Entry:
        """Replace the present state by the computed one; ``kept``: removed sinks, and their targets."""
        tick, plan = self._last["tick"] + 1, self.program.described()
        numbers = {name: self._last["control"][name] for name in kept if name in self._last["control"]}
        sources = self._last["sources"]
        entry: Entry = {
            **self.entry,
            "tick": tick,
            "control": {**numbers, **self.entry["control"]},
            "sources": {name: notes for name, notes in self.entry["sources"].items() if name in sources},
            "ledger": self.entry["totals"],
            "refused": dict(self._refused),
            "sums": {**self.entry["sums"], **self._sums},
            "settings": [],
            "cuts": cuts.note(self.checkpoint.folder, {**self._last, LIMITS: self._narrowed}, ()),
            "bounded": False,
        }
        spans = {name: span for name, span in old.spans.items() if name in kept}
        journaled = self.checkpoint.change(replace(plan, retired=kept, spans=spans, anew=tick), entry)
        self.checkpoint.show_refused(journaled)
        return journaled


def migrated(pipeline: Pipeline, folder: str | Path, take_over: Collection[str] = ()) -> Migrated:
    """Let a checkpoint continue with the script of a pipeline, and compute its history again; see `rowtime.migrate`."""
    place = Checkpoint(place_of(folder))
    program = pipeline.compile(folder, imports=True)
    pumps = {*(name.lower() for name in take_over), *program.take_over}
    place.acquire()
    try:
        old, last = _before(place, program)
        choice = _Choice(old, program, pumps, last)
        choice.check()
        migration = _computed(pipeline, program, place, old, last, choice)
    finally:
        place.release()
    # The next start delivers the staged rows; if it fails, the error is reported here.
    pipeline._engine(folder, Limits(), ends=False).stop()  # noqa: SLF001 - a start without a tick
    return migration


def _before(place: Checkpoint, program: Program) -> tuple[StoredPlan, Entry]:
    old, last = place.plan, place.journal.last()
    if old is None or last is None:
        hint = "Start the script: rowtime run FILE --checkpoint DIR."
        raise refuse("R405", f"{place.folder} has no tick, so there is no history to compute again", hint)
    if place.published < last["tick"]:
        what = f"the rows of tick {last['tick']} have not all been delivered"
        raise refuse("R408", what, "Start the old script once; that finishes the tick.")
    if last.get("skipped"):
        what = f"rows of {last['skipped'][0]['sink']} were skipped by hand, and would be among the others again"
        hint = "Start the new script with a --checkpoint of its own, and give its pumps other names or --take-over."
        raise refuse("R449", what, hint)
    if old.is_of(program.operators):
        raise refuse("R449", "the checkpoint already uses this script", "Start it: rowtime run FILE --checkpoint DIR.")
    return old, last


# -- sinks ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Choice:
    """How the sinks of a program continue: which keep their targets, by the ``pumps`` asked for."""

    old: StoredPlan
    program: Program
    pumps: Collection[str]
    last: Entry

    @property
    def known(self) -> dict[str, Fields]:
        """Return all sinks that the checkpoint has had, with their targets."""
        return {**self.old.retired, **targets(self.old, self.old.operators)}

    @property
    def kept(self) -> dict[str, Fields]:
        """Return the removed ones."""
        return {name: sink for name, sink in self.known.items() if self.program.sink(name) is None}

    def takes_over(self, name: str) -> bool:
        """Return True if a sink keeps its target, and something is there."""
        return name in self.known and self._has_written(name)

    def _has_written(self, name: str) -> bool:
        """Return True if a sink has written rows, or a bound into a target that has bounds."""
        sent = self.last["control"].get(name, {})
        rows = (sent.get("sequence") or 0) - sent.get("base", 0) - sent.get("skipped", 0)
        bounds = self.known[name]["format"] in _WITH_BOUNDS and sent.get("bound", BEGINNING) > BEGINNING
        return rows > 0 or bounds

    def check(self) -> None:
        """Raise ``Refused`` unless each sink has a choice; one R447 per sink."""
        if problems := [problem for node in self.program.sinks for problem in self._without_choice(node)]:
            raise Refused(*problems)

    def _without_choice(self, node: SinkNode) -> Iterator[Problem]:
        written = {n: sink for n, sink in self.known.items() if sink["format"] != "console" and self._has_written(n)}
        existing = [name for name, sink in written.items() if self._same(node, sink)]
        pump, where = pump_of(node.name), dict(node.options).get("stream", node.format)
        into = pumps_into(node, self.program.catalog.pumps) or [pump]
        if node.name in existing and not {*into, pump} & {*self.pumps}:
            what = f"{pump} has written rows to {where}, and it is not specified what happens to its new ones"
            does = "writes the rows of the whole history by key: each replaces the existing row with its key"
            if not key_of_rows(node):
                does = "appends new rows at or above the bound of the existing rows; others are refused"
            hint = (
                f"rowtime migrate … --take-over {quote(into[0])} (or ALTER PUMP {spelled(into[0])} TAKE OVER) {does}. "
                f"{_NEW}"
            )
            yield Problem("R447", what, hint=hint)
        elif node.name not in existing and node.format != "console" and (existing or node.name in written):
            whose = pump_of(existing[0]) if existing else pump
            what = f"{pump} writes to {where} now, and that name already has rows of the pump {whose}"
            hint = "Keep the name and the target of an existing pump; give a new pump others."
            yield Problem("R447", what, hint=hint)

    def _same(self, node: SinkNode, fields: Fields) -> bool:
        now = self.old.of(node)
        before = replace(now, fields={**now.fields, **fields})
        return untuned(before).target == untuned(now).target


def _floors(stages: Mapping[str, Stage], last: Entry, choice: _Choice) -> dict[str, str]:
    """Let the sinks that take over begin after the present rows; return each sink's fate, in words.

    If rows replace those of their key, the whole history is written: nobody reads such a table by its bound, and each
    key has its value by the new script, even without further rows.
    """
    outcome, replacing = {}, [node.name for node in choice.program.sinks if key_of_rows(node)]
    for name, stage in stages.items():
        sent = last["control"].get(name, {}) if choice.takes_over(name) else {}
        outcome[name] = f"continues after {sent.get('sequence') or 0} rows" if choice.takes_over(name) else "is new"
        stage.base = max(stage.base, sent.get("sequence") or 0)
        if name in replacing:
            continue
        bounds = [at for at in (stage.floor, sent.get("floor"), sent.get("bound")) if at is not None]
        stage.floor = max(bounds) if bounds else None
    return outcome


# -- the input ------------------------------------------------------------------------


def _computed(  # noqa: PLR0913 - the old state, and the new one
    pipeline: Pipeline, program: Program, place: Checkpoint, old: StoredPlan, last: Entry, choice: _Choice
) -> Migrated:
    spark = pipeline.session(program, place.folder)
    with active(spark):
        if problems := pipeline.check_types(program, spark):
            raise Refused(*problems)
        engine = _engine(spark, pipeline, program, place)
        try:
            parts = in_parts(place, engine)
            _check_retained(engine, last)
            claim(place, program.sinks, engine.stages, choice.pumps, engine.clock(), program.catalog.pumps)
            outcome = _floors(engine.stages, last, choice)
            engine.begin(last)
            with _retained():
                engine.take([replace(part, plan=0) for part in parts])
            entry = engine.commit(old, choice.kept)
            keep(place, of_now(pipeline.prints(program, spark)))
            return Migrated(entry["tick"], len(parts), {pump_of(name): words for name, words in outcome.items()})
        finally:
            engine.close()
            for stage in engine.stages.values():
                stage.close()


def _engine(spark: SparkSession, pipeline: Pipeline, program: Program, place: Checkpoint) -> Migration:
    engine = Migration(spark, program, place, pipeline.sources(program, place), pipeline.stages(program, place))
    engine.tables = {**pipeline.given_tables(program), **dict(pinned(place, [program]))}
    return engine


def _check_retained(engine: Migration, last: Entry) -> None:
    """Raise ``Refused`` (R448) at once if a source reports that a part of its input is no longer available."""
    with _retained():
        for name, source in engine.sources.items():
            if (notes := last["sources"].get(name)) is not None:
                start = {w: at for w, at in notes["first"].items() if w in notes["offsets"]}
                source.between(start, notes["offsets"], notes["state"])  # type: ignore[attr-defined]


@contextmanager
def _retained() -> Iterator[None]:
    """Translate errors about input that cannot be read any more."""
    try:
        yield
    except RowtimeError as error:
        code = error.problems[0].code
        if not code.startswith("R5") and code != "R407":
            raise
        what = f"some of the input that was read is gone: {error.problems[0].message}"
        hint = (
            "Nothing has changed. To begin with the input that is still there, start the new script with a "
            "--checkpoint of its own, and give its pumps other names or --take-over."
        )
        raise refuse("R448", what, hint) from error
