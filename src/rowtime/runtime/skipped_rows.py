"""Skipped rows for the queries that read ``pump.rejected``: they come in the first tick after the skip.

A skip is a fact from outside (semantics 3). The entry of that tick records which skips its queries have read and at
which rowtime, and the recorded input is cut before it. The ledger has counted the rows with the skip, so nothing is
counted here. Their rowtime is the clock of the query, so no promise is broken. A stream of refused rows that has ended
gets no more rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, Final

import pyarrow.compute as pc

from rowtime.core.clock import least
from rowtime.core.columns import POSITION, ROWTIME, WRITER
from rowtime.core.stores import Place
from rowtime.core.time import END, MIN_MICROS
from rowtime.expr.store_assignment import as_read
from rowtime.frames.frame import Frame
from rowtime.operators.contract import quoted
from rowtime.operators.gates.rejected import ADDED, Rejected, readers_of, shown_as
from rowtime.plan.program import Program
from rowtime.runtime.skipping import is_skipped
from rowtime.runtime.tick import RunningTick
from rowtime.state.checkpoint import Checkpoint
from rowtime.state.memory import read_table

Skip = Mapping[str, Any]
SEEN: Final = "seen"  # the tick in which queries read the rows of a skip


def seen_by(program: Program, entry: Mapping[str, Any], tick: int) -> list[Skip]:
    """Return the skips of an entry as they are after the next tick; those that it shows also have a ``rowtime`` (µs).

    A skip that no query reads, or that is older than the query, is not shown. If its stream of refused rows has ended,
    it stays as it is.
    """
    skips: list[Skip] = []
    for skip in entry.get("skipped", ()):
        readers = readers_of(program.operators, skip["pump"])
        clocks = [entry["clocks"][node.name] for node in readers if node.name in entry["clocks"]]
        if SEEN in skip or (clocks and any(least(by_writer.values()) >= END for by_writer in clocks)):
            skips.append(skip)
            continue
        reached = [at for by_writer in clocks for at in by_writer.values() if at < END]
        clock = {"rowtime": max([MIN_MICROS, *reached])} if clocks else {}
        skips.append({**skip, SEEN: tick, **clock})
    return skips


def shown_in(skips: Sequence[Skip], tick: int) -> list[Skip]:
    """Return the skips whose rows queries read in a tick."""
    return [skip for skip in skips if skip.get(SEEN) == tick and "rowtime" in skip]


def show(running: RunningTick, program: Program, place: Checkpoint, skips: Sequence[Skip]) -> None:
    """Give the rows of skips to the queries that read them; ``place`` is the checkpoint that has the rows."""
    for skip in skips:
        for reader in readers_of(program.operators, skip["pump"])[:1]:  # readers of one gate all read the same
            parts = [_rows(running, program, reader, skip, file) for file in _files(place, skip)]
            if parts:
                gate = reader.failing or reader.gate.name
                running.skipped.setdefault(gate, []).append(reduce(lambda one, two: one.unionByName(two), parts))


def _files(place: Checkpoint, skip: Skip) -> Iterator[Place]:
    entry = place.journal.last() or {"tick": -1}
    for file in filter(is_skipped, place.rejected(skip["pump"], entry["tick"])):
        ends = pc.min_max(read_table(file, columns=["position"])["position"]).as_py()
        if any(ends["min"] < part["first"] + part["count"] and ends["max"] >= part["first"] for part in skip["parts"]):
            yield file


def _rows(running: RunningTick, program: Program, reader: Rejected, skip: Skip, file: Place) -> Frame:
    """Return a file of skipped rows, which has the columns of the target, in the form of the query's refused rows."""
    rows = running.frame(reader, read_table(file))
    edges = [edge for edge in program.edges if edge.pump == skip["pump"]]
    taken = {assigned.source: assigned.name for edge in edges for assigned in edge.assigned if assigned.source}
    types = dict(zip(reader.gate.emits().names, running.types(reader.gate), strict=True))
    own = []
    for column in reader.columns:
        stored, kind = shown_as(taken.get(column.name, column.name)), as_read(types.get(column.name) or "STRING")
        value = f"try_cast({quoted(stored)} AS {kind})" if stored in rows.columns else f"CAST(NULL AS {kind})"
        own.append(f"{value} AS {quoted(shown_as(column.name))}")
    at = f"timestamp_micros({skip['rowtime']}L)"
    added_columns = {added.name: f"CAST({added.name} AS {added.type})" for added in ADDED} | {"refused_by": at}
    places = [f"{at} AS {ROWTIME}", f"writer AS {WRITER}", f"position AS {POSITION}"]
    return rows.selectExpr(*own, *(f"{value} AS {name}" for name, value in added_columns.items()), *places)
