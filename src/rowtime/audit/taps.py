"""Taps: the data on each edge of a run, kept for a trace."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rowtime.core.clock import least
from rowtime.core.columns import ASKED_FROM, ASKED_UPTO, TRACE_ROW, TRACE_TICK
from rowtime.core.time import BEGINNING, shift
from rowtime.frames.frame import Frame
from rowtime.frames.tables import Column, put_together
from rowtime.frames.words import Untranslated
from rowtime.kernels.timeline import LAST, Timeline
from rowtime.operators.contract import Delta, Operator, quoted
from rowtime.state.checkpoint import folder_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLACE = (TRACE_TICK, TRACE_ROW)
_PLACES = [(place, "bigint") for place in PLACE]
HELD = 512 << 20
"""Bytes of rows that stay in memory."""


class Taps:
    """The data on each edge of a run; many rows as Parquet files below ``folder``.

    ``ticks``: the recorded numbers of its ticks; here they count from 0.
    """

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.ticks: list[int] = []
        self.bounds: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self.fires = FireTimes()
        self._fields: dict[str, Sequence[Column]] = {}
        self._tables: dict[str, list[tuple[int, pa.Table | Path]]] = defaultdict(list)
        self._bytes = 0
        self._whole: dict[str, tuple[int, Frame | None]] = {}  # all rows of an operator, up to a tick

    def __call__(self, node: Operator, delta: Delta) -> None:
        """Keep the results of an operator in the current tick."""
        tick = len(self.ticks)
        bound = least(delta.clocks.values()) if delta.clocks else BEGINNING
        if bound > (self.bounds[node.name][-1][1] if self.bounds[node.name] else BEGINNING):
            self.bounds[node.name].append((tick, bound))
        if delta.timeline is not None:
            self.fires.add(node.name, tick, delta.timeline)
        if delta.rows is None or not node.in_traces:
            return
        self._put(node.name, tick, delta.rows)

    def forget(self) -> None:
        """Drop the data of the current tick, which is run again."""
        tick = len(self.ticks)
        self._whole.clear()
        everything: tuple[dict[str, Any], ...] = (self.bounds, self._tables)
        for kept in everything:
            kept.update({name: [tapped for tapped in tables if tapped[0] != tick] for name, tables in kept.items()})

    def _put(self, name: str, tick: int, rows: Frame) -> None:
        """Keep rows, in the types of earlier ticks; those of many ticks are in files."""
        fields = self._fields.setdefault(name, rows.fields)
        if fields != rows.fields:
            rows = rows.selectExpr(
                *(f"CAST({quoted(column)} AS {kind}) AS {quoted(column)}" for column, kind in fields)
            )
        table = rows.toArrow()
        ticks, numbers = np.full(table.num_rows, tick, np.int64), np.arange(table.num_rows, dtype=np.int64)
        for place, values in zip(PLACE, (ticks, numbers), strict=True):
            table = table.append_column(place, pa.array(values))
        self._bytes += table.nbytes
        if self._bytes <= HELD:
            self._tables[name].append((tick, table))
            return
        path = self.folder / f"{folder_of(name)}-{tick:06d}.parquet"
        pq.write_table(table, path)
        self._tables[name].append((tick, path))

    def rows(self, name: str, since: int = 0) -> Frame | None:
        """Return the rows of an operator, in all ticks or from one on."""
        if since:
            return self._rows(name, since)
        upto, rows = self._whole.get(name, (-1, None))
        if upto != len(self.ticks):
            rows = self._rows(name, 0)
            self._whole[name] = len(self.ticks), rows
        return rows

    def _rows(self, name: str, since: int) -> Frame | None:
        kept = [table for at, table in self._tables[name] if at >= since]
        tables = [table if isinstance(table, pa.Table) else pq.read_table(table) for table in kept]
        tables = [table for table in tables if table.num_rows]
        return self.frame_of(tables, [*self._fields[name], *_PLACES]) if tables else None

    def frame(self, name: str, table: pa.Table) -> Frame:
        """Return found rows of an operator, with the spans asked for."""
        spans = [(span, "bigint") for span in (ASKED_FROM, ASKED_UPTO)]
        return self.frame_of([table], [*self._fields[name], *_PLACES, *spans])

    def places(self, places: Sequence[tuple[int, int]]) -> Frame:
        """Return some places as rows."""
        table = pa.table([pa.array([place[n] for place in places], pa.int64()) for n in (0, 1)], names=[*PLACE])
        return self.frame_of([table], _PLACES)

    def frame_of(self, tables: Sequence[pa.Table], fields: Sequence[Column]) -> Frame:
        """Return tables as a frame that several read."""
        frame = Frame.of(self.spark, put_together(fields, tables), fields)
        frame.share()
        return frame


def where(rows: Frame, condition: str) -> Frame:
    """Return the rows that satisfy a user's condition. Raises Spark's ``AnalysisException`` if that cannot be."""
    condition = names_quoted(condition)
    try:
        return rows.kept(condition)
    except Untranslated:
        rows.nothing.where(condition)  # it says why
        raise


def names_quoted(condition: str) -> str:
    """Return a user's condition with names in double quotes, as rowtime's SQL has them, quoted as in Spark's."""
    return _NAME.sub(lambda match: match[0] if match[1] is None else quoted(match[1].replace('""', '"')), condition)


_NAME: Final = re.compile(r"""'(?:[^'\\]|\\.)*'|`[^`]*`|"((?:[^"]|"")*)["]""", re.DOTALL)


def at_places(rows: Frame, places: Frame, how: str = "left_semi") -> Frame:
    """Return the rows at some places, or with ``left_anti`` all others."""
    wanted = places.selectExpr(*(f"{place} AS __at_{place}" for place in PLACE))
    return rows.joined(wanted, " AND ".join(f"{place} = __at_{place}" for place in PLACE), how)


def with_spans(rows: Frame, places: Frame) -> Frame:
    """Return the rows at some places, each with the span that is asked for there."""
    spans = [f"min({ASKED_FROM}) AS {ASKED_FROM}", f"max({ASKED_UPTO}) AS {ASKED_UPTO}"]
    wanted = places.grouped([*PLACE], spans).toDF(*(f"__at_{place}" for place in PLACE), ASKED_FROM, ASKED_UPTO)
    pairs = rows.joined(wanted, " AND ".join(f"{place} = __at_{place}" for place in PLACE), "inner")
    return pairs.selectExpr(*map(quoted, rows.columns), ASKED_FROM, ASKED_UPTO)


def in_order(rows: Frame, terms: Sequence[str], number: str, first: int) -> Frame:
    """Return the rows with their ``number`` in an order, from ``first`` on."""
    ordered = rows.in_order(terms)
    return ordered.with_column(number, "bigint", pa.array(np.arange(first, first + ordered.count(), dtype=np.int64)))


def first_in_order(rows: Frame, terms: Sequence[str], most: int = 1) -> Frame:
    """Return the first rows in an order."""
    return rows.in_order(terms).limit(most)


class FireTimes:
    """The bounds of each event time, by the tick and the position of the items that caused them.

    A row contributed to a fire if it came up to the item that caused the bound of the fire, and was not behind the
    discard age when it came (semantics 8.3).
    """

    def __init__(self) -> None:
        self._lines: dict[str, list[tuple[int, Timeline]]] = defaultdict(list)

    def add(self, event: str, tick: int, line: Timeline) -> None:
        """Record what the bound of an event time did in a tick."""
        self._lines[event].append((tick, line))

    def cut(self, event: str, fire: int) -> tuple[int, int]:
        """Return tick and position of the item that first caused a bound of ``fire`` (µs) or more."""
        for tick, line in self._lines[event]:
            at = int(np.searchsorted(line.values, fire))
            if at < len(line.values):
                return tick, int(line.positions[at])
        return self._lines[event][-1][0] if self._lines[event] else 0, LAST

    def refused(self, event: str, age: int, places: Sequence[tuple[int, int]], times: Sequence[int]) -> list[bool]:
        """Return whether rows at some places (tick, position) with these event times (µs) were too late for panes."""
        lines = dict(self._lines[event])
        verdicts = []
        for (tick, position), time in zip(places, times, strict=True):
            bound = int(lines[tick].at(np.array([position]))[0]) if tick in lines else BEGINNING
            verdicts.append(time < shift(bound, -age))
        return verdicts
