"""The recorded input of a checkpoint, run again in a scratch checkpoint.

The checkpoint records what a pipeline has read: positions, clocks, bounds set manually. A replay reads these ranges
again from the present sources: as one batch, except for the points that cut it (`state.cuts`), or tick by tick as far
as the journal goes back. If the plan changed, it changes here too, by the same rules. The replayed checkpoint is never
written.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rowtime.client.writer import EVERYONE
from rowtime.core.clock import least
from rowtime.core.columns import ROW_NUMBER
from rowtime.core.errors import Refused, refuse
from rowtime.core.stores import Place
from rowtime.core.time import END
from rowtime.operators.streams.stream import Stream
from rowtime.operators.streams.table import PINNED, tables_of
from rowtime.operators.streams.table_versions import kept_versions
from rowtime.plan.finite import is_finite
from rowtime.plan.formats.lake import LAKES
from rowtime.plan.upgrade import check_same
from rowtime.runtime.endings import recorded_end
from rowtime.runtime.engine import Engine
from rowtime.runtime.function_pins import check_replay
from rowtime.runtime.intake import Taken
from rowtime.runtime.narrow_tables import LIMITS, Narrowed
from rowtime.runtime.sinks.staging import Stage
from rowtime.runtime.skipped_rows import SEEN, shown_in
from rowtime.runtime.sources.contract import Slice
from rowtime.runtime.sources.statistics import unskipped
from rowtime.runtime.spark_paths import for_spark
from rowtime.state.checkpoint import Checkpoint, folder_of
from rowtime.state.cuts import noted
from rowtime.state.files import copy_folder
from rowtime.state.journal import Entry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rowtime.api.pipeline import Pipeline
    from rowtime.operators.sinks.sink import Sink as SinkNode
    from rowtime.plan.program import Program
    from rowtime.plan.stored import StoredPlan
    from rowtime.runtime.sinks.contract import Batch
    from rowtime.runtime.sources.contract import Repeatable, Source
    from rowtime.runtime.tick import GivenTable

    Later = tuple[Program, Mapping[str, Source], Mapping[str, Stage]]


@dataclass(frozen=True)
class Part:
    """A part of the input: everything up to what the entry ``until`` had read; ``settings`` take effect before it.

    ``plan``: the number of the plan with which it was read. ``skips``: those whose rows queries read in its first tick.
    """

    until: Entry
    settings: Sequence[Mapping[str, Any]] = ()
    plan: int = 0
    skips: Sequence[Mapping[str, Any]] = ()


@dataclass
class KeptSink:
    """Keeps the staged files of a sink in a folder, in their order, and delivers nothing.

    ``adopts``: files of results may be taken over unchanged; not for a table, which may have refused some of their
    rows.
    """

    place: Place
    files: list[Place] = field(default_factory=list)
    adopts: bool = True

    def folder(self, checkpoint: Place) -> Place:  # noqa: ARG002 - its own
        """Return the folder."""
        return self.place

    def publish(self, spark: SparkSession, node: SinkNode, batch: Batch) -> None:  # noqa: ARG002
        """Remember the files."""
        self.files.extend(batch.files)

    def recover(self, staged: Sequence[str]) -> None:
        """Do nothing: there was nothing before."""


class Replay(Engine):
    """An engine whose ticks take recorded parts, one after the other; ``later`` are the plans after its first."""

    later: Sequence[Later] = ()

    def run(self, parts: Sequence[Part]) -> Iterator[Part]:
        """Run the parts; yield each once its tick is committed."""
        for number in range(len(self.later) + 1):
            if number:
                self.go_over(*self.later[number - 1])
            for part in (part for part in parts if part.plan == number):
                self._part = part
                self.tick()
                yield part

    def _set_by_hand(self) -> Sequence[Mapping[str, Any]]:
        """Return the manual bounds; those for operators that a migration has removed are in no later plan."""
        names = {node.name for node in self.program.operators}
        return [setting for setting in self._part.settings if setting["operator"] in names]

    def _skips(self) -> Sequence[Mapping[str, Any]]:
        return [{**skip, SEEN: self.entry["tick"] + 1} for skip in self._part.skips]

    def _limits(self) -> Narrowed:
        return dict(self._part.until.get(LIMITS, {}))

    def _worth(self, taken: Mapping[str, Taken], notes: Mapping[str, Any]) -> bool:  # noqa: ARG002
        return True

    def _ask(self, node: Stream) -> tuple[Taken, dict[str, Any]]:
        source, until = cast("Repeatable", self.sources[node.name]), self._part.until
        if node.name not in until["sources"]:  # not read at that time
            return Taken(source, Slice({}, {}), [], [], []), {"offsets": {}, "first": {}, "state": {}, "away": {}}
        notes, clocks = until["sources"][node.name], until["clocks"][node.name]
        arrived = self._arrivals.of(until, node.name)
        before = self.entry["sources"].get(node.name, {"offsets": {}, "away": {}})
        start = {**{w: at for w, at in notes["first"].items() if w in notes["offsets"]}, **before["offsets"]}
        part = source.between(start, notes["offsets"], notes["state"])
        part = replace(part, arrived={w: arrived[w] for w in notes["offsets"] if w in arrived})
        if is_finite(node.source[0]) and ("ended" in notes or least(clocks.values()) >= END):
            # Before the position of an end was journaled, nothing was read after it.
            part = recorded_end(part, notes.get("ended", notes["offsets"]))
        present = sorted(w for w in _writers(notes) if w not in notes["away"])
        writers_before = _writers(before)
        moved = [w for w in _writers(notes) if part.end.get(w, 0) > part.start.get(w, 0)]
        left = sorted(w for w in notes["away"] if w in moved or (w in writers_before and w not in before["away"]))
        joined = [w for w in [*present, *left] if w not in writers_before or w in before["away"]]
        return Taken(source, part, present, joined, left), dict(notes)


def _writers(notes: Mapping[str, Any]) -> Collection[str]:
    return [w for w in notes["offsets"] if w != EVERYONE]


def recorded(checkpoint: Checkpoint, *, by_tick: bool = False) -> list[Part]:
    """Return the parts of everything that a checkpoint has read: as few as possible, or one per tick.

    ``by_tick``: a part per tick, as far back as the journal goes; everything before is one part. Raises ``Refused``:
    R405 if there is no checkpoint or no tick, R407 if cuts are missing.
    """
    last = checkpoint.journal.last() if checkpoint.begun else None
    if last is None:
        raise refuse(
            "R405",
            f"{checkpoint.folder} has no tick to run again",
            "Give the checkpoint folder of a pipeline that has run.",
        )
    since, anew = [plan.since or 0 for plan in checkpoint.later_plans(last)], _anew(checkpoint)
    ruling = [tick for tick in since if tick > anew]
    ends: dict[int, Entry] = {last["tick"]: last}
    settings: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for cut in noted(checkpoint.folder, last):
        ends[cut.before["tick"]] = cut.before
        settings[_reading(cut.before["tick"], since)] += cut.settings
    if by_tick:
        ends.update((entry["tick"], entry) for entry in checkpoint.journal.entries())
    skips = last.get("skipped", ())
    places = [-1, *sorted(tick for tick in ends if tick >= 0 and tick not in since)]
    if anew:  # the limits of tables when all before it was computed again
        took = {LIMITS: ends[anew - 1].get(LIMITS, {})}
        ends |= {tick: {**ends[tick], **took} for tick in places if 0 <= tick < anew}
    return [
        Part(ends[tick], settings[before], bisect_right(ruling, tick), shown_in(skips, _after(before, since)))
        for before, tick in zip(places, places[1:], strict=False)
    ]


def _anew(checkpoint: Checkpoint) -> int:
    """Return the tick in which a migration has computed the history again; 0 for none."""
    return 0 if checkpoint.plan is None else checkpoint.plan.anew


def in_parts(checkpoint: Checkpoint, engine: Replay) -> list[Part]:
    """Return one part per cut; one per tick if the times of rows depend on when they were read.

    Raises as `recorded`, and R407 if some of those ticks are missing.
    """
    stamped = [name for name, source in engine.sources.items() if not (source.steady or source.gives_rowtime)]
    parts = recorded(checkpoint, by_tick=bool(stamped) or _raised(checkpoint, engine))
    if stamped and parts[0].until["tick"] > 0:
        what = (
            f"the rows of {stamped[0]} got the time at which they were read, and the journal no longer has every tick"
        )
        raise refuse("R407", what, "Set the option rowtime.column.")
    return parts


def _raised(checkpoint: Checkpoint, engine: Replay) -> bool:
    """Return True if arrival times of rows in a log may have been raised to the time of an earlier reading."""
    control = (checkpoint.journal.last() or {}).get("control", {})
    return any(
        not source.steady and {"arrival", "mixed"} & {*control.get(name, {}).get("modes", {}).values()}
        for name, source in engine.sources.items()
    )


def _reading(tick: int, since: Collection[int]) -> int:
    """Return the last tick up to one that has read anything; ticks that change the plan do not."""
    while tick in since:
        tick -= 1
    return tick


def _after(tick: int, since: Collection[int]) -> int:
    """Return the first tick after one in which the plan did not change."""
    return next(later for later in count(tick + 1) if later not in since)


def replay(
    pipeline: Pipeline,
    checkpoint: Checkpoint,
    scratch: Path,
    part: Callable[[Program], Program] = lambda program: program,
) -> Replay:
    """Return an engine in ``scratch`` for the parts of a checkpoint, with `KeptSink` sinks. ``part``: of the program.

    Raises ``Refused``: R401 if the pipeline is not the checkpoint's, R407 if an earlier plan is no longer available,
    R450 if a function has changed.
    """
    programs = [part(program) for program in _programs(pipeline, checkpoint)]
    notes = checkpoint.folder / "sources"
    scratch.mkdir(parents=True, exist_ok=True)
    (scratch / ".lock").touch()  # it is a checkpoint, whatever it shares with the other one
    copy_folder(notes, scratch / "sources")
    place = Checkpoint(scratch.absolute())
    formats = {node.name: node.format for program in programs for node in program.sinks}
    sinks = {name: KeptSink(place.folder / "outputs" / folder_of(name)) for name in formats}
    for name, sink in sinks.items():
        sink.adopts = formats[name] not in LAKES
    kept = {name: Stage(sink, place.folder) for name, sink in sinks.items()}
    controls = (checkpoint.journal.last() or {}).get("control", {})
    for name, stage in kept.items():  # a sink that took over from another pump continues its numbers
        stage.base, stage.floor = controls.get(name, {}).get("base", 0), controls.get(name, {}).get("floor")
    stages = [{node.name: kept[node.name] for node in program.sinks} for program in programs]
    sources = [pipeline.sources(program, place) for program in programs]
    began = (checkpoint.journal.last() or {}).get("began", 0)
    first = programs[0]
    spark = pipeline.session(programs[-1], checkpoint.folder)
    check_replay(checkpoint, pipeline.prints(programs[-1], spark))
    engine = Replay(spark, first, place, sources[0], stages[0], clock=lambda: began)
    engine.later = list(zip(programs, sources, stages, strict=True))[1:]
    engine.skipped_in = checkpoint
    engine.tables = dict(pinned(checkpoint, programs))
    engine.start()
    return engine


def pinned(checkpoint: Checkpoint, programs: Sequence[Program]) -> Iterator[tuple[str, GivenTable]]:
    """Yield the static tables of the programs as the checkpoint has copied them, whatever they are now."""
    last = checkpoint.journal.last() or {}
    for node in (node for program in programs for node in tables_of(program.operators)):
        key = f"{node.name}/{PINNED}"
        if last.get("control", {}).get(node.name, {}).get("pinned") and key in last["schemas"]:
            paths = [for_spark(checkpoint.folder / path) for path, *_ in last["segments"].get(key, ())]
            yield node.table, partial(_copied, paths, last["schemas"][key])
        if (key := kept_versions(node.name)) in last["segments"]:
            paths = [for_spark(checkpoint.folder / path) for path, *_ in last["segments"][key]]
            yield key, partial(_copied, paths, last["schemas"][key])


def _copied(paths: Sequence[str], schema: Mapping[str, Any], spark: SparkSession) -> DataFrame:
    """Return the rows of a table in their order."""
    from pyspark.sql.types import StructType  # noqa: PLC0415 - not for those who only plan

    kind = StructType.fromJson({**schema})
    if not paths:
        return spark.createDataFrame([], kind)
    return unskipped(spark.read.schema(kind).parquet(*paths)).orderBy(ROW_NUMBER)


def _programs(pipeline: Pipeline, checkpoint: Checkpoint) -> list[Program]:
    """Return the programs that a checkpoint has had, the pipeline's own last."""
    program, last = pipeline.compile(checkpoint.folder, imports=True), checkpoint.journal.last()
    check_same(checkpoint.plan, program)
    later = [] if last is None else checkpoint.later_plans(last)
    plans = [checkpoint.first_plan, *later]
    anew = _anew(checkpoint)
    before = [plan for plan in plans[:-1] if (plan.since or 0) >= anew]
    return [*(_compiled(pipeline, plan) for plan in before), program]


def _compiled(pipeline: Pipeline, plan: StoredPlan) -> Program:
    """Return the program of a plan that the checkpoint no longer has."""
    hint = "Give it the same variables, functions and streams as before."
    try:
        program = pipeline.compile_instead(plan.sql, plan.values)
    except Refused as refused:
        what = f"the script before its change no longer compiles: {refused.problems[0].message}"
        raise refuse("R407", what, hint) from None
    if not plan.is_of(program.operators):
        raise refuse("R407", "the script before its change has another plan today", hint)
    return program
