"""Pipelines over random data: the shapes of the SQL examples with every kind of sink, and queries of Nexmark.

A case is in one folder, which is all that a death leaves: inputs, home, checkpoint, outputs. All of its input is there
from the beginning, and a tick takes one file of each writer, so that every run has the same ticks.
"""

from __future__ import annotations

import json
import os
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import rowtime as rt
from examples.nexmark import events, queries
from reliability.crash.lakes import LAKES, Tables, others_write, rows_of_tables, tables_below
from reliability.crash.shapes import SHAPES, TIMED, Tally
from reliability.crash.writes import Seen, watched
from rowtime.client.log_items import Rows
from rowtime.client.stream_log import scan
from rowtime.core.stores import Place
from rowtime.core.time import END
from rowtime.state.checkpoint import Checkpoint
from rowtime.state.memory import read_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.client.home import Home
    from rowtime.runtime.engine import Engine

TICKS = 3  # that take rows
NEXMARK = ("q0", "q2", "q3", "q5", "q7", "q8", "q11", "q13", "q14", "q16", "q17", "q20")
SCRIPTS = {**SHAPES, **LAKES}
KINDS = (*SHAPES, *NEXMARK, *LAKES)
State = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """One pipeline over the data of a number, in one folder."""

    number: int
    folder: Path

    tears: ClassVar[bool] = True  # a file of its checkpoint may be there in part

    @property
    def told(self) -> str:
        """The text by which a process of its own creates the case."""
        return str(self.number)

    @property
    def check(self) -> Place:
        """The checkpoint."""
        return self.folder / "check"

    @property
    def home(self) -> Place:
        """Where its streams and their logs are."""
        return self.folder / "home"

    @property
    def name(self) -> str:
        """The name of its pipeline."""
        return KINDS[self.number % len(KINDS)]

    def make(self) -> None:
        """Write all input."""
        if self.name in NEXMARK:
            events.write(self.folder / "in", 900 + self.number % 7 * 50, TICKS)
            return
        (self.folder / "out").mkdir(parents=True, exist_ok=True)  # for the catalog of lake tables
        home = self.define()
        chance = random.Random(f"crash {self.number}")
        for tick in range(TICKS):
            for stream in (one for one in "ab" if home.definition(one)):
                for writer in ("w1", "w2"):
                    with rt.writer(stream, home=self.home, writer=writer) as log:
                        log.insert(_rows_of(chance, tick, timed=self.name in TIMED))
                        if tick == TICKS - 1:
                            log.end()

    def define(self) -> Home:
        """Define the stream logs, so that clients find them before the pipeline runs; the others have paths."""
        made = self.pipeline(None)
        for stream in (one for one in made.compile().defines if one.format == "log"):
            made.home.define(stream.name, stream.as_json(), replace=True)
        return made.home

    def pipeline(self, spark: SparkSession | None) -> rt.Pipeline:
        """Return the pipeline; a function appends its rows to a file with their sequence numbers."""
        if self.name in NEXMARK:
            # As a URL: the path of a table is Spark's own, and the default file system of a cluster may be any.
            given = (self.folder / "in").absolute().as_uri()
            made = queries.pipeline(self.name, given, self.home, spark)
        else:
            made = rt.Pipeline(spark, home=self.home).sql(self.script()).function("tally", Tally)
        return made.sink("result", _appending(self.folder / "received.jsonl"))

    def script(self) -> str:
        """Return the SQL of a pipeline that is not a query of Nexmark."""
        return SCRIPTS[self.name].format(out=self.folder / "out")

    def engine(self, spark: SparkSession | None) -> Engine:
        """Return a driver, which begins with recovery."""
        return self.pipeline(spark)._engine(self.check, self.limits, ends=True)  # noqa: SLF001 - tick by tick

    @property
    def limits(self) -> rt.Limits:
        """The limits of a tick: a file of each writer."""
        return rt.Limits(files=1 if self.name in NEXMARK else 2)

    @property
    def tick(self) -> int:
        """Return the last committed tick; -1 for none."""
        last = Checkpoint(self.check).journal.last()
        return -1 if last is None else int(last["tick"])

    def state(self) -> State:
        """Return the state after recovery: rows with sequence numbers, refused rows, ledger, bounds."""
        place = Checkpoint(self.check)
        entry = place.journal.last()
        if entry is None:
            return {"files": self._seen(), "log": [], "received": [], "totals": {}}
        gates = {gate: place.rejected(gate, entry["tick"]) for gate in entry["totals"]}
        return {
            "files": self._seen(),
            "log": _logged(self.home / "logs" / "merged"),
            "received": _received(self.folder / "received.jsonl"),
            "totals": entry["totals"],
            "rejected": {gate: sorted(map(repr, _rows(paths))) for gate, paths in gates.items() if paths},
            "sinks": {
                name: _without_link(control) for name, control in entry["control"].items() if "sequence" in control
            },
            "clocks": entry["clocks"],
            "adds up": all(
                counts["in"] == sum(n for reason, n in counts.items() if reason not in ("in", "ADJUSTED"))
                for counts in entry["totals"].values()
            ),
        }

    def others_write(self) -> Mapping[str, int]:
        """Let other programs write to the lake tables of the case. Return how often they did what."""
        return others_write(self.tables())

    def tables(self) -> Tables:
        """The lake tables of the case."""
        return tables_below(self.folder / "out") if self.has_tables else {}

    @property
    def has_tables(self) -> bool:
        """Return True if its output is in lake tables, which may not exist yet."""
        return self.name in LAKES

    def pull(self) -> None:
        """Copy remote data into the folder, before the folder is copied."""

    def push(self) -> None:
        """Restore remote data from the folder."""

    @contextmanager
    def watched(self, seen: Seen) -> Iterator[threading.RLock]:
        """Call ``seen`` before each write of this process; what it raises is raised there. Yields the lock it holds."""
        with watched(self.folder, seen) as turn:
            yield turn

    def _seen(self) -> Mapping[str, list[str]]:
        return rows_of_tables(self.tables()) if self.has_tables else _files(self.folder / "out")


def close(engine: Engine) -> None:
    """Release the locks, as the death of a process does."""
    engine.close()
    engine.stop()


def _rows_of(chance: random.Random, tick: int, *, timed: bool) -> list[dict[str, Any]]:
    """Return the rows of one insert: ``timed`` rows have a rowtime; some come again with the end that they lacked."""
    rows = [_row(chance, tick) for _ in range(chance.randint(1, 5))]
    open_ = [row for row in rows if row["ev"] and not row["till"] and chance.random() < 0.5]
    rows += [{**row, "till": row["ev"] + chance.randint(1, 60) * 1_000_000} for row in open_]
    return [{**row, "rowtime": row["ev"]} for row in rows] if timed else rows


def _row(chance: random.Random, tick: int) -> dict[str, Any]:
    at = START + (tick * 40 + chance.randint(0, 50)) * 1_000_000
    late = chance.random() < 0.1
    at = START if late else at
    return {
        "k": f"k{chance.randint(0, 2)}",
        "v": chance.choice((None, *range(9))),
        "ev": None if chance.random() < 0.1 else at,
        "till": None if chance.random() < 0.3 else at + chance.randint(-5, 60) * 1_000_000,
    }


START = 1_704_103_200_000_000  # 2024-01-01 10:00 UTC, µs
assert START < END


def _appending(path: Path) -> Callable[[rt.Batch], None]:
    def take(batch: rt.Batch) -> None:
        if not batch.count:
            return
        rows = enumerate(batch.table().to_pylist(), batch.first)
        with path.open("a") as file:
            file.write("".join(json.dumps([number, repr(row)]) + "\n" for number, row in rows))
            file.flush()
            os.fsync(file.fileno())

    return take


def _received(path: Path) -> list[str]:
    """Return the rows that were received; a torn line counts as not received."""
    rows: list[tuple[int, str]] = []
    for line in path.read_text().splitlines() if path.exists() else ():
        with suppress(ValueError):
            number, row = json.loads(line)
            rows.append((number, row))
    return once(rows)


def once(rows: Iterable[tuple[int, str]]) -> list[str]:
    """Return the rows by their numbers, or what is wrong: repeated ones have to be equal, and none may be missing."""
    found: dict[int, str] = {}
    for number, row in rows:
        if found.setdefault(number, row) != row:
            return [f"row {number} is {found[number]} and {row}"]
    if sorted(found) != list(range(len(found))):
        return [f"numbers are missing: {sorted(found)}"]
    return [found[number] for number in range(len(found))]


def _files(out: Path) -> dict[str, list[str]]:
    """Return the content of each directory for a plain reader, as a set of rows or lines."""
    folders = sorted(out.iterdir()) if out.is_dir() else []
    found = {folder.name: sorted(p for p in folder.glob("*") if p.name[0] not in "_.") for folder in folders}
    return {name: sorted(repr(row) for path in paths for row in seen(path)) for name, paths in found.items() if paths}


def seen(path: Path) -> list[Any]:
    """Return the rows or lines of a file."""
    if path.suffix == ".parquet":
        return _rows([path])
    lines = path.read_text().splitlines()
    header = path.suffix == ".csv" and lines[0].startswith("rowtime,")  # each file has one, or none has
    return lines[1:] if header else lines


def _without_link(control: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a sink remembers, without the links of its target's content, which each run chooses."""
    kept = {name: value for name, value in control.items() if name != "link"}
    return {**kept, "proof": control["proof"][:1]} if "proof" in control else kept


def _rows(paths: Sequence[Place]) -> list[Any]:
    return [row for path in paths for row in read_table(path).to_pylist()]


def _logged(log: Place) -> list[str]:
    """Return the rows of each writer of the log in their order, their sequence numbers; a pump is a writer."""
    found = sorted(scan(log, {}).items()) if log.is_dir() else []
    entries = (entry for _, its in found for entry in its if isinstance(entry, Rows))
    rows = (row for entry in entries for row in _rows([log / entry.path]))
    return [repr({name: value for name, value in row.items() if name not in ("__p", "__a")}) for row in rows]
