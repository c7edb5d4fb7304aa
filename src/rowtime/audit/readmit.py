"""Re-admission: rows that were too early return to their stream once time has caught up.

Semantics 7.2. They are written to the stream's log as items of the writer ``readmitted``, which then leaves, so that
nothing waits for it. The rows to write are first recorded in the checkpoint, with the writer's position: a crash in
between repeats nothing and loses nothing, because the position tells whether the rows are there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rowtime.client.home import Home
from rowtime.client.writer import Writer, open_writer
from rowtime.core.clock import least
from rowtime.core.errors import refuse
from rowtime.core.stores import ObjectPlace, Place, place_of
from rowtime.core.time import BEGINNING, END, wall_clock
from rowtime.operators.contract.gates import READMITTED
from rowtime.operators.events.bounded_events import BoundedEvents
from rowtime.operators.events.event_stream import EventStream
from rowtime.operators.gates.rejected import shown_as
from rowtime.operators.panes.event_time import EventTimed
from rowtime.operators.streams.stream import Stream
from rowtime.plan.stored import StoredPlan
from rowtime.state.checkpoint import Checkpoint, folder_of
from rowtime.state.files import make_folder, write_over
from rowtime.state.memory import read_table

WRITER = READMITTED
RowPlace = tuple[str, int]  # writer and position that a refused row had


@dataclass(frozen=True)
class Readmitted:
    """What became of the early rows of one gate: ``admitted`` now, still ``early``, ``late`` by now."""

    gate: str
    stream: str
    admitted: int
    early: int
    late: int


def readmit(
    checkpoint: str | Path | ObjectPlace, gate: str | None = None, *, home: Home | str | Path | None = None
) -> list[Readmitted]:
    """Write early rows that are due into their streams: those of one gate, or of all gates with a guard.

    A row is due if the guard would accept it now: its time is not above the gate's clock by more than the limit, not
    below the clock, and not too far above the arrival time that it would get. Raises ``Refused``: R405 for a folder
    that is not a checkpoint, R142 for a gate without a guard, or whose rows do not have the columns of the stream.
    """
    place = Checkpoint(place_of(checkpoint))
    plan, entry = place.plan, place.journal.last()
    if plan is None:
        raise refuse(
            "R405",
            f"{checkpoint} is not a checkpoint: it has no plan.json",
            "Give the checkpoint folder of a pipeline.",
        )
    controls = {} if entry is None else entry["control"]
    gates = [name for name, control in controls.items() if {"early", "ahead"} & control.keys()]
    guarded = [name for name in gates if not _unfit(plan, name)]
    if gate in gates and gate not in guarded:
        assert gate is not None
        raise refuse("R142", f"the early events of {gate} cannot be re-admitted: {_unfit(plan, gate)}")
    if gate is not None and gate not in guarded:
        listed = ", ".join(guarded) or "none"
        raise refuse("R142", f"{gate} has no guard, so no row is early there", f"Gates with a guard: {listed}.")
    opened = home if isinstance(home, Home) else Home(home)
    if entry is None:
        return []
    return [_Gate(place, plan, entry, opened, name).readmit() for name in ([gate] if gate else guarded)]


def _unfit(plan: StoredPlan, name: str) -> str:
    """Return why early events of a gate would change if they came back; empty if they would not."""
    gate = plan.operators.get(name)
    if gate is not None and gate.kind == BoundedEvents.kind:
        return "their bounds are those of another stream, which has gone on"
    if gate is not None and gate.kind == EventStream.kind and gate.fields["shape"]["kind"] in ("EDGE", "BY"):
        return "an edge is matched with those of its own writer, and these would come from another"
    return ""


def _highest(control: Mapping[str, Any], clock: int) -> int:
    """Return the time (µs) up to which a guard would accept a row that arrives now."""
    by_mark = clock + control["early"] if "early" in control else END
    return min(by_mark, wall_clock() + control["ahead"] - 1) if "ahead" in control else by_mark


@dataclass(frozen=True)
class _Gate:
    place: Checkpoint
    plan: StoredPlan
    entry: Mapping[str, Any]
    home: Home
    name: str

    @property
    def notes(self) -> Place:
        """Return the record of written rows, one line per write; under the gate's first name."""
        name, first, _ = self.place.spans(self.name)[0]
        return self.place.folder / "readmitted" / f"{folder_of(f'{name}@{first}' if first else name)}.jsonl"

    def readmit(self) -> Readmitted:
        stream = self._stream()
        with open_writer(stream, home=self.home, writer=WRITER) as writer:
            rows = self._early(self._done(writer))
            control = self.entry["control"][self.name]
            clock = self._clock(control, stream)
            times = rows["refused_time"].cast(pa.int64())
            late = pc.less(times, clock)
            highest = _highest(control, max([clock, *self._reached(control)]))
            due = pc.and_(pc.invert(late), pc.less_equal(times, highest))
            admitted = rows.filter(due)
            if admitted.num_rows:
                self._write(writer, self._columns(admitted, writer, stream), _places(admitted))
                writer.close(leave=True)
        below = pc.sum(late).as_py() or 0
        return Readmitted(self.name, stream, admitted.num_rows, rows.num_rows - admitted.num_rows - below, below)

    @property
    def _of_events(self) -> bool:
        return self.plan.operators[self.name].kind in (EventTimed.kind, EventStream.kind)

    def _reached(self, control: Mapping[str, Any]) -> list[int]:
        """Return how far each writer's event times have come; a guard of events judges by these, not by the bound."""
        if self.plan.operators[self.name].kind == EventTimed.kind:
            return [*control.get("highest", {}).values()]
        return [highest for highest, _ in control.get("marks", {}).values()] if self._of_events else []

    def _clock(self, control: Mapping[str, Any], stream: str) -> int:
        if self.plan.operators[self.name].kind == EventTimed.kind:
            return int(control.get("bound", BEGINNING))
        if "followed" in control:  # it judges by its marks, and the stream judges rows that come back
            return max(least(self._clocks(stream).values()), least(control.get("marks", {}).values()))
        return max(int(control.get("clock", BEGINNING)), least(self._clocks(self.name).values()))

    def _clocks(self, name: str) -> Mapping[str, int]:
        return self.entry["clocks"].get(name, {})  # type: ignore[no-any-return]

    def _stream(self) -> str:
        """Return the one stream below the gate, or the one whose guard judges a pump's rows."""
        owner = self.name.partition(".")[0]
        if owner in self.plan.formats:
            return owner
        below, streams = [self.name], []
        while below:
            name = below.pop()
            below += self.plan.operators[name].inputs
            streams += [name] if self.plan.operators[name].kind == Stream.kind else []
        if len(streams) != 1:
            which = ", ".join(streams)
            raise refuse(
                "R142", f"the rows of {self.name} come from several streams ({which}); a row does not say which"
            )
        return streams[0]

    def _early(self, done: set[RowPlace]) -> pa.Table:
        """Return the early rows that were not written yet, by time."""
        files = self.place.rejected(self.name, self.entry["tick"])
        if not files:
            return pa.table({"refused_time": pa.array([], pa.timestamp("us", "UTC"))})
        table = pa.concat_tables([read_table(file) for file in files], promote_options="permissive")
        table = table.filter(pc.equal(table["reason"], "EARLY"))
        new = [place not in done for place in _places(table)]
        keys = ("refused_time", "writer", "position")
        return table.filter(pa.array(new, pa.bool_())).sort_by([(key, "ascending") for key in keys])

    def _columns(self, rows: pa.Table, writer: Writer, stream: str) -> pa.Table:
        assert writer.schema is not None
        # A guard of the stream judges rowtimes; one of a T-sort or of events judges a column.
        ours = self.name.partition(".")[0] == stream and not self._of_events
        gives = {"rowtime": rows["refused_time"]} if ours else {}
        columns = {name.lower(): name for name in rows.column_names}
        column_of = {name: columns.get(shown_as(name).lower()) for name in writer.schema.names}
        missing = [name for name, column in column_of.items() if column is None]
        if missing:
            what = f"the rows of {self.name} no longer have all columns of {stream}: {', '.join(missing)} is gone"
            raise refuse("R142", what, "Select them below the guard, or insert the rows from the ledger yourself.")
        return pa.table({**{name: rows[column] for name, column in column_of.items()}, **gives})

    def _done(self, writer: Writer) -> set[RowPlace]:
        return {
            (name, position)
            for line in self._lines()
            if writer.position >= line["first"] + len(line["rows"])
            for name, position in line["rows"]
        }

    def _lines(self) -> Iterator[dict[str, Any]]:
        text = self.notes.read_text() if self.notes.exists() else ""
        yield from (json.loads(line) for line in text.splitlines() if line.endswith("}"))

    def _write(self, writer: Writer, rows: pa.Table, places: Sequence[RowPlace]) -> None:
        make_folder(self.notes.parent)
        # Drop what was recorded and never written: its positions are used now.
        kept = [line for line in self._lines() if writer.position >= line["first"] + len(line["rows"])]
        kept.append({"first": writer.position, "rows": [list(place) for place in places]})
        write_over(self.notes, "".join(json.dumps(line) + "\n" for line in kept).encode())
        writer.insert(rows)


def _places(rows: pa.Table) -> list[RowPlace]:
    if "writer" not in rows.column_names:
        return []
    return list(zip(rows["writer"].to_pylist(), rows["position"].to_pylist(), strict=True))
