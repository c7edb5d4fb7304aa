"""The recorded input of a checkpoint, run again in a scratch checkpoint.

What a pipeline has read stands in its checkpoint: positions, clocks, bounds set by hand. A replay
reads these ranges again, of the sources as they are now: as one batch, but for the moments that cut it
(`state.cuts`), or tick by tick as far as the journal goes back. Nothing of the checkpoint that is
replayed is written.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rowtime.client.writer import EVERYONE
from rowtime.core.clock import least
from rowtime.core.errors import refuse
from rowtime.core.time import END
from rowtime.operators.stream import Stream
from rowtime.runtime.engine import Engine, ended
from rowtime.runtime.intake import Taken
from rowtime.runtime.pipeline import Pipeline
from rowtime.runtime.sinks.staging import Stage
from rowtime.state.checkpoint import Checkpoint, folder_of
from rowtime.state.cuts import noted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.operators.sink import Sink as SinkNode
    from rowtime.plan.program import Program
    from rowtime.runtime.sinks.contract import Batch
    from rowtime.runtime.sources.contract import Repeatable

Entry = Mapping[str, Any]
FINITE = ("parquet", "csv", "json")


@dataclass(frozen=True)
class Part:
    """A part of the input: all up to what the entry ``until`` had read; ``settings`` take effect before it."""

    until: Entry
    settings: Sequence[Mapping[str, Any]] = ()


@dataclass
class KeptSink:
    """Keeps the staged files of a sink in a folder, in their order, and hands nothing over."""

    place: Path
    files: list[Path] = field(default_factory=list)

    def folder(self, checkpoint: Path) -> Path:  # noqa: ARG002 - its own
        """The folder."""
        return self.place

    def publish(self, spark: SparkSession, node: SinkNode, batch: Batch) -> None:  # noqa: ARG002
        """Remember the files."""
        self.files.extend(batch.files)

    def recover(self, staged: Sequence[str]) -> None:
        """Nothing was there before."""


class Replay(Engine):
    """An engine whose ticks take recorded parts, one after the other."""

    def run(self, parts: Sequence[Part]) -> Iterator[Part]:
        """Run the parts; each comes back once its tick is committed."""
        for part in parts:
            self._part = part
            self.tick()
            yield part

    def _set_by_hand(self) -> Sequence[Mapping[str, Any]]:
        return self._part.settings

    def _worth(self, taken: Mapping[str, Taken], notes: Mapping[str, Any]) -> bool:  # noqa: ARG002
        return True

    def _ask(self, node: Stream) -> tuple[Taken, dict[str, Any]]:
        source, until = cast("Repeatable", self.sources[node.name]), self._part.until
        notes, clocks = until["sources"][node.name], until["clocks"][node.name]
        before = self.entry["sources"].get(node.name, {"offsets": {}, "away": {}})
        start = {**{w: at for w, at in notes["first"].items() if w in notes["offsets"]}, **before["offsets"]}
        part = source.between(start, notes["offsets"], notes["state"])
        part = replace(part, arrived={w: clocks[w] for w in notes["offsets"] if w in clocks})
        if node.source[0] in FINITE and least(clocks.values()) >= END:
            part = ended(part)
        present = sorted(w for w in _writers(notes) if w not in notes["away"])
        known = _writers(before)
        joined = [w for w in present if w not in known or w in before["away"]]
        return Taken(source, part, present, joined), dict(notes)


def _writers(notes: Mapping[str, Any]) -> Collection[str]:
    return [w for w in notes["offsets"] if w != EVERYONE]


def recorded(checkpoint: Checkpoint, *, by_tick: bool = False) -> list[Part]:
    """The parts of all that a checkpoint has read: as few as there can be, or as many as there were.

    ``by_tick``: a part a tick, as far back as the journal goes; what came before is one part. Raises
    ``Refused``: R405 where there is no checkpoint or no tick, R407 where cuts are no longer there.
    """
    last = checkpoint.journal.last() if checkpoint.begun else None
    if last is None:
        raise refuse("R405", f"{checkpoint.folder} has no tick to run again", "Give the folder of a pipeline that ran.")
    ends: dict[int, Entry] = {last["tick"]: last}
    settings: dict[int, Sequence[Mapping[str, Any]]] = {}
    for cut in noted(checkpoint.folder, last):
        ends[cut.before["tick"]] = cut.before
        settings[cut.before["tick"]] = cut.settings
    if by_tick:
        ends.update((entry["tick"], entry) for entry in checkpoint.journal.entries())
    places = [-1, *sorted(tick for tick in ends if tick >= 0)]
    return [Part(ends[tick], settings.get(before, ())) for before, tick in zip(places, places[1:], strict=False)]


def replay(
    pipeline: Pipeline,
    checkpoint: Checkpoint,
    scratch: Path,
    part: Callable[[Program], Program] = lambda program: program,
) -> Replay:
    """An engine in ``scratch`` for the parts of a checkpoint; its sinks are `KeptSink`. ``part``: of the program.

    Raises ``Refused`` (R401) where the pipeline is not the one of the checkpoint.
    """
    program = pipeline.compile()
    checkpoint.check(program.described())
    program = part(program)
    notes = checkpoint.folder / "sources"
    if notes.is_dir():
        shutil.copytree(notes, scratch / "sources")
    place = Checkpoint(scratch.absolute())
    sources = pipeline.sources(program, place)
    stages = {
        n.name: Stage(KeptSink(place.folder / "outputs" / folder_of(n.name)), place.folder) for n in program.sinks
    }
    began = (checkpoint.journal.last() or {}).get("began", 0)
    engine = Replay(pipeline.session(program), program, place, sources, stages, clock=lambda: began)
    engine.start()
    return engine
