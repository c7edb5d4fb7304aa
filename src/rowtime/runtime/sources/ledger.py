"""The ledger as a source (`plan.bind.ledger`): the counts of the gates in a tick come from the entry of that tick.

How many rows a gate has accepted is known once the jobs of the tick have ended, so the next tick reads the counts, from
the journal. A crash in between changes nothing. Gates that rows of the ledger itself reach are omitted: each such tick
would make rows for another one.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from rowtime.core.clock import least
from rowtime.core.columns import ARRIVAL, POSITION, ROWTIME, WRITER
from rowtime.core.stores import Place
from rowtime.core.time import BEGINNING, END, EPOCH
from rowtime.operators.contract import quoted, walk
from rowtime.operators.streams.stream import streams_of
from rowtime.plan.bind.ledger import ADJUSTED, COLUMNS, REASONS
from rowtime.plan.difference import owner_of, statements_of
from rowtime.runtime.sources.contract import Limits, Offsets, Slice, Source
from rowtime.state.files import append, begin, damaged, make_folder, write_over

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rowtime.core.stores import Place
    from rowtime.plan.program import Program
    from rowtime.state.journal import Journal

THE_WRITER: Final = "ledger"
_BITS: Final = 20  # a tick has fewer than 2**20 gates
Line = Mapping[str, Any]
"""A tick in the book: its number, when it was committed and when its rows arrived (µs UTC), and its gates."""


class LedgerSource(Source):
    """The ledger of a pipeline with a ``program``, from its own journal, as a ``Source`` of the stream ``name``.

    ``notes``: the folder of its book. ``from_now``: ticks before the first start are not read.
    """

    in_band = False
    decodes = False
    gives_rowtime = False
    steady = True

    def __init__(self, name: str, journal: Journal, program: Program, notes: Place, *, from_now: bool) -> None:
        self._journal, self._from_now = journal, from_now
        self._gates = _Gates(name, program)
        self._book = LedgerBook(notes)
        self._waiting: dict[int, Mapping[str, Any]] = {}  # entries that were examined and are not committed as read
        self._seen = -1  # the last examined tick

    def discover(self, start: Offsets, limits: Limits, state: Mapping[str, Any]) -> tuple[Slice, Mapping[str, Any]]:  # noqa: ARG002 - a tick has few gates
        """Return the counts of the ticks committed since; also write them to the book."""
        first = start.get(THE_WRITER)
        entries = self._entries(first or 0)
        if first is None and self._from_now:
            first, entries = self._seen + 1, []
        first, arrival = first or 0, state.get("arrival", BEGINNING)
        lines = []
        for entry in entries:
            arrival = max(arrival, entry["at"])
            lines.append(self._line(entry, arrival))
        count, checksum = state.get("listed", 0), state.get("sum", 0)
        if lines:
            count, checksum = self._book.add(count, checksum, [json.dumps(line).encode() for line in lines])
        end = lines[-1]["tick"] + 1 if lines else first
        return _slice(first, end, lines), {"listed": count, "sum": checksum, "arrival": arrival}

    def between(self, start: Offsets, end: Offsets, state: Mapping[str, Any]) -> Slice:
        """Return the ticks between two, from the book. Raises ``Failure`` (R406) if it is damaged."""
        first, last = start.get(THE_WRITER, 0), end[THE_WRITER]
        lines = [json.loads(line) for line in self._book.read(state["listed"], state["sum"])]
        return _slice(first, last, [line for line in lines if first <= line["tick"] < last])

    def read(self, spark: SparkSession, part: Slice) -> DataFrame:
        """Return a row for each tick and gate."""
        kinds = [*(f"{quoted(name)} {kind}" for name, kind in COLUMNS), f"{POSITION} BIGINT", f"{ARRIVAL} TIMESTAMP"]
        rows = spark.createDataFrame([row for line in part.detail["lines"] for row in _rows(line)], ", ".join(kinds))
        names = [quoted(name) for name, _ in COLUMNS]
        none = f"CAST(NULL AS TIMESTAMP) AS {ROWTIME}"
        return rows.selectExpr(*names, none, f"'{THE_WRITER}' AS {WRITER}", POSITION, ARRIVAL)

    def finished(self, at: Offsets) -> bool:  # noqa: ARG002
        """Return False: another tick may come."""
        return False

    def _entries(self, first: int) -> list[Mapping[str, Any]]:
        """Return the entries from a tick on whose gates have counted rows; each is read once."""
        last = self._journal.last()
        if last is not None and last["tick"] > self._seen:
            followed = last["tick"] == self._seen + 1
            new = [last] if followed else [one for one in self._journal.entries() if one["tick"] > self._seen]
            self._waiting |= {one["tick"]: one for one in new if self._gates.refusals(one)}
            self._seen = last["tick"]
        self._waiting = {tick: entry for tick, entry in self._waiting.items() if tick >= first}
        return [*self._waiting.values()]

    def _line(self, entry: Mapping[str, Any], arrival: int) -> Line:
        gates = [
            [gate, self._gates.streams(gate), counts, _bound(entry["clocks"].get(gate))]
            for gate, counts in sorted(self._gates.refusals(entry).items())
        ]
        return {"tick": entry["tick"], "at": entry["at"], "arrived": arrival, "gates": gates}


class _Gates:
    """A program's gates in the plan, except those that rows of the ledger reach."""

    def __init__(self, name: str, program: Program) -> None:
        self._operators, statements = program.operators, statements_of(program.written)
        self._owner = {node.name: owner_of(node.name, statements) for node in self._operators}
        reached = {node.name for node in self._operators if any(below.name == name for below in walk(node))}
        self._own = reached | {self._owner[node] for node in reached}

    def refusals(self, entry: Mapping[str, Any]) -> Mapping[str, Mapping[str, int]]:
        """Return the gates that counted rows in a tick, with their counts."""
        return {gate: counts for gate, counts in entry["ledger"].items() if counts.get("in") and gate not in self._own}

    def streams(self, gate: str) -> str:
        """Return the streams whose rows come to a gate."""
        nodes = [node for node in self._operators if node.name == gate]
        nodes = nodes or [node for node in self._operators if self._owner[node.name] == gate]
        below = [part for node in nodes for part in walk(node)]
        return ", ".join(dict.fromkeys(stream.name for stream in streams_of(below)))


def _slice(first: int, end: int, lines: Sequence[Line]) -> Slice:
    many = sum(len(line["gates"]) for line in lines)
    arrived = {THE_WRITER: lines[-1]["arrived"]} if lines else {}
    return Slice({THE_WRITER: first}, {THE_WRITER: end}, arrived=arrived, rows=many, detail={"lines": [*lines]})


def _bound(clocks: Mapping[str, int] | None) -> int | None:
    """Return the bound of a gate, if there is one in the range of times."""
    bound = BEGINNING if clocks is None else least(clocks.values())
    return bound if BEGINNING < bound < END else None


def _rows(line: Line) -> Iterator[tuple[Any, ...]]:
    for nth, (gate, streams, counts, bound) in enumerate(line["gates"]):
        refused = [counts.get(reason, 0) for reason in REASONS]
        yield (
            *(line["tick"], _at(line["at"]), gate, streams, counts["in"], counts["accepted"]),
            *(sum(refused), *refused, counts.get(ADJUSTED, 0), _at(bound)),
            *((line["tick"] << _BITS) + nth, _at(line["arrived"])),
        )


def _at(micros: int | None) -> datetime | None:
    return None if micros is None else EPOCH + timedelta(microseconds=micros)


LINES: Final = 1_000


class LedgerBook:
    """The lines of one stream, in the folder ``notes`` of its checkpoint; a line has no line feed.

    A tick's journal entry is removed some ticks later, but `verify` and `trace` read a query's input again. The book is
    a sequence of files of `LINES` lines each. Only the last one grows, so that a store need not write everything again.
    A checksum covers all lines; the journal has it, with their number. Later lines belong to a tick that did not
    commit, and are overwritten.
    """

    def __init__(self, notes: Place) -> None:
        self._folder = notes
        self._known: tuple[int, list[bytes]] | None = None  # the number of the last file, and its content

    def add(self, count: int, checksum: int, lines: Sequence[bytes]) -> tuple[int, int]:
        """Write lines after the first ``count``, which have the ``checksum``; return their number and checksum.

        Raises ``Failure`` (R406) if the last file does not have the lines that should be there.
        """
        make_folder(self._folder)
        while lines:
            number, before = divmod(count, LINES)
            new, lines = lines[: LINES - before], lines[LINES - before :]
            self._extend(number, before, [line + b"\n" for line in new])
            count, checksum = count + len(new), _sum(new, checksum)
        return count, checksum

    def read(self, number_of_lines: int, checksum: int) -> Iterator[bytes]:
        """The first lines of the book. Raises ``Failure`` (R406) at the end if they do not have the checksum."""
        left, total = number_of_lines, 0
        for number in count():
            lines = self._lines(number)[:left]
            left, total = left - len(lines), _sum([line[:-1] for line in lines], total)
            yield from (line[:-1] for line in lines)
            if len(lines) < LINES:
                break
        if left or total != checksum:
            raise damaged(f"{self._folder}, the book of a ledger, is not as rowtime wrote it")

    def _extend(self, number: int, before: int, new: Sequence[bytes]) -> None:
        stored = self._known[1] if self._known is not None and self._known[0] == number else self._lines(number)
        if len(stored) < before:
            raise damaged(f"{self._path(number)} has {len(stored)} of the {before} lines that were read")
        path, lines = self._path(number), [*stored[:before], *new]
        more = bool(before) and len(stored) == before
        self._known = number, lines
        begin(path, lambda: self._written(path, b"".join(new if more else lines), more=more))

    def _written(self, path: Place, data: bytes, *, more: bool) -> None:
        try:
            (append if more else write_over)(path, data)
        except BaseException:
            self._known = None  # the content is unknown
            raise

    def _lines(self, number: int) -> list[bytes]:
        """Return the whole lines of a file."""
        path = self._path(number)
        content = path.read_bytes() if path.exists() else b""
        return [line + b"\n" for line in content.split(b"\n")[:-1]]

    def _path(self, number: int) -> Place:
        return self._folder / f"ledger-{number:06d}.jsonl"


def _sum(lines: Sequence[bytes], at: int) -> int:
    for line in lines:
        at = zlib.crc32(line, at)
    return at
