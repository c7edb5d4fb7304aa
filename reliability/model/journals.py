"""Turns the journal of a pipeline and the commits of each sink into a behaviour that the model should have.

Rows are counted only where the journal cuts them: the rows of a tick become one row of the model. So a sink whose
commits end between two ticks, or has a tick twice or not at all, gives a behaviour that the model does not have.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from rowtime.client.home import Home
from rowtime.client.log_items import Rows
from rowtime.client.stream_log import entries_of
from rowtime.core.stores import ObjectPlace, Place, place_of
from rowtime.plan.stored import StoredOperator
from rowtime.runtime.claims import pump_of
from rowtime.runtime.file_form import lines_of
from rowtime.runtime.sinks.directory import files_of
from rowtime.runtime.sinks.iceberg_table import iceberg_table
from rowtime.runtime.sinks.lake_rows import app_of
from rowtime.runtime.sinks.staging import TEXT_FORMATS
from rowtime.runtime.sinks.stream_log import writer_of
from rowtime.state.checkpoint import Checkpoint
from rowtime.state.memory import read_table

DELTA, ICEBERG, DATABASE = "delta", "iceberg", "jdbc"
KINDS: Final[Mapping[str, str]] = {
    "parquet": "directory",
    **dict.fromkeys(TEXT_FORMATS, "directory"),
    "log": "log",
    DELTA: "lake",
    ICEBERG: "lake",
    DATABASE: "database",
}
Counted = Callable[[str], Sequence[int]]
"""Returns how many rows each transaction has added to a table, oldest first."""
BETWEEN: Final = 1_000_000  # stands for a number of rows at which no tick ends


@dataclass(frozen=True)
class Behaviour:
    """Entries of a journal in terms of the model, and how many rows the target had after each commit to it."""

    name: str
    kind: str
    place: str
    entries: Sequence[Mapping[str, int]]
    commits: Sequence[int]
    published: int

    @property
    def what(self) -> object:
        """All but the name."""
        entries = tuple(tuple(entry.values()) for entry in self.entries)
        return self.kind, self.place, entries, tuple(self.commits), self.published


def behaviours(checkpoint: Place, home: Place, name: str, transactions: Counted | None = None) -> list[Behaviour]:
    """Return one for each sink that the model knows and whose commits can be read.

    Those of a database need its ``transactions``; a table with a key does not show them, because rows replace others.
    """
    place = Checkpoint(checkpoint)
    plan = place.plan
    entries = [(number, place.journal.read(number)) for number in place.journal.numbers()]
    if plan is None or not entries:
        return []
    sinks = [one for one in plan.operators.values() if one.kind == "sink" and _shows_commits(one, transactions)]
    found = []
    for sink in sinks:
        format_ = sink.fields["format"]
        given = Given([_told(number, entry, sink.name) for number, entry in entries], place.published)
        counts = _counts(sink, place, home, transactions)
        where = "store" if isinstance(checkpoint, ObjectPlace) else "disk"
        found.append(given.behaviour(f"{name}, {sink.name}", KINDS[format_], where, counts))
    return found


@dataclass(frozen=True)
class Given:
    """The entries of a journal, of which the first may have been pruned: number, tick, epoch, rows, first named row."""

    entries: Sequence[tuple[int, int, int, int, int]]
    published: int

    def behaviour(self, name: str, kind: str, place: str, counts: Iterable[int]) -> Behaviour:
        """Return the behaviour if the sink had so many rows after each of its commits."""
        number, tick, epoch, rows, _ = self.entries[0]
        whole = number == 0
        first = (-1, -1, 0, 0) if whole else (number, tick, epoch, rows)
        later = self.entries if whole else self.entries[1:]
        cuts = sorted({first[3], *(entry[3] for entry in later)})
        at = {rows: index for index, rows in enumerate(cuts)}
        told = [
            {
                "num": number - first[0],
                "tick": tick - first[1],
                "epoch": epoch - first[2],
                "rows": at[rows],
                "from": at.get(named, BETWEEN),
            }
            for number, tick, epoch, rows, named in later
        ]
        shown = [at.get(rows, BETWEEN) for rows in counts if whole or rows > first[3]]
        return Behaviour(name, kind, place, told, shown, max(0, self.published - first[1]))


def _told(number: int, entry: Mapping[str, Any], sink: str) -> tuple[int, int, int, int, int]:
    control = entry.get("control", {}).get(sink, {})
    rows = control.get("sequence") or 0
    base = control.get("base") or 0
    staged = entry.get("outputs", {}).get(sink)
    named = rows if staged is None else staged["first"]
    return number, entry["tick"], entry.get("epoch", 0), max(0, rows - base), max(0, named - base)


def _shows_commits(sink: StoredOperator, transactions: Counted | None) -> bool:
    if sink.fields["format"] == DATABASE:
        return transactions is not None and "key" not in dict(sink.fields["options"])
    return sink.fields["format"] in KINDS


def _counts(sink: StoredOperator, checkpoint: Checkpoint, home: Place, transactions: Counted | None) -> list[int]:
    """Return how many rows of the pump its target had after each commit."""
    options, pump = dict(sink.fields["options"]), pump_of(sink.name)
    if transactions is not None and sink.fields["format"] == DATABASE:
        return _running(transactions(options["dbtable"]))
    if sink.fields["format"] == "log":
        log = Home(home).log_path(options["stream"])
        return _running(entry.count for entry in entries_of(log, writer_of(pump)) if isinstance(entry, Rows))
    if sink.fields["format"] == DELTA:
        return _marks(place_of(options["path"]), app_of(checkpoint.identity, pump))
    if sink.fields["format"] == ICEBERG:
        return iceberg_table(options, pump).marks(app_of(checkpoint.identity, pump))
    ticks: dict[str, int] = {}
    for file in files_of(Path(options["path"]).absolute(), pump, checkpoint.identity):
        tick = file.name.split("-")[1]
        ticks[tick] = ticks.get(tick, 0) + _rows(file, headed=options.get("header") == "true")
    return _running(rows for rows in ticks.values() if rows)


def _rows(file: Place, *, headed: bool) -> int:
    if ".parquet" in file.name:
        return int(read_table(file).num_rows)
    return len(lines_of(file)) - int(headed)


def _running(counts: Iterable[int]) -> list[int]:
    total, found = 0, []
    for count in counts:
        total += count
        found.append(total)
    return found


def _marks(table: Place, app: str) -> list[int]:
    """Return how many rows of a pump a Delta table has by the mark of each version."""
    found = []
    versions: Iterable[Place] = (table / "_delta_log").glob("*.json")
    for version in sorted(versions, key=attrgetter("name")):
        actions = map(json.loads, version.read_bytes().splitlines())
        found += [one["txn"]["version"] for one in actions if one.get("txn", {}).get("appId") == f"{app}/rows"]
    return found
